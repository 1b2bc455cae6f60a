//go:build cgo

package lower

import (
	"fmt"
	"reflect"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// buffer is an input in host memory with a nominal device.
type buffer struct {
	device backends.DeviceNum
	shape  shapes.Shape
	flat   any
}

// HasSharedBuffers returns true: the host and the devices share memory.
func (b *Backend) HasSharedBuffers() bool { return true }

// NewSharedBuffer returns a buffer of zeros.
func (b *Backend) NewSharedBuffer(device backends.DeviceNum, shape shapes.Shape) (backends.Buffer, any, error) {
	if int(device) >= b.NumDevices() {
		return nil, nil, fmt.Errorf("there is no device %d of %d", device, b.NumDevices())
	}
	n := shape.Size()
	flat := reflect.MakeSlice(reflect.SliceOf(shape.DType.GoType()), n, n).Interface()
	return &buffer{device, shape, flat}, flat, nil
}

// BufferFromFlatData copies data from the host.
func (b *Backend) BufferFromFlatData(device backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	to, room, err := b.NewSharedBuffer(device, shape)
	if err == nil {
		reflect.Copy(reflect.ValueOf(room), reflect.ValueOf(flat))
	}
	return to, err
}

// BufferToFlatData copies data to the host.
func (b *Backend) BufferToFlatData(from backends.Buffer, flat any) error {
	reflect.Copy(reflect.ValueOf(flat), reflect.ValueOf(from.(*buffer).flat))
	return nil
}

// BufferCopyToDevice copies a buffer from one device to another.
func (b *Backend) BufferCopyToDevice(from backends.Buffer, device backends.DeviceNum) (backends.Buffer, error) {
	source := from.(*buffer)
	return b.BufferFromFlatData(device, source.flat, source.shape)
}

// BufferData returns the memory of a buffer.
func (b *Backend) BufferData(of backends.Buffer) (any, error) { return of.(*buffer).flat, nil }

// BufferShape returns the shape of a buffer.
func (b *Backend) BufferShape(of backends.Buffer) (shapes.Shape, error) {
	return of.(*buffer).shape, nil
}

// BufferDeviceNum returns the nominal device of a buffer.
func (b *Backend) BufferDeviceNum(of backends.Buffer) (backends.DeviceNum, error) {
	return of.(*buffer).device, nil
}

// BufferFinalize does nothing; Go frees the buffer.
func (b *Backend) BufferFinalize(backends.Buffer) error { return nil }
