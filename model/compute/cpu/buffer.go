//go:build cgo

package cpu

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"

	"slotscope/model/compute/cpu/kernel"
)

// Buffer holds the elements of one tensor, row-major, in host memory. All buffers are shared: clients may read and write them.
type Buffer struct {
	shape shapes.Shape
	mem   []byte      // at least shape.Memory() bytes, aligned to 64 bytes
	gone  atomic.Bool // finalized or donated
}

// align is the multiple of bytes to which memory is rounded up: the size of a cache line and of an AVX-512 register.
const align = 64

// padded rounds a size in bytes up to whole cache lines, at least one.
func padded(n int) int { return max(align, (n+align-1)/align*align) }

// newMemory returns unzeroed memory of at least n bytes, aligned to 64 bytes.
func newMemory(n int) []byte {
	n = padded(n)
	return kernel.Memory(n, align)
}

// take returns memory of at least n bytes, that of a finalized buffer if there is one of this size; its content is undefined.
func (b *Backend) take(n int) []byte {
	n = padded(n)
	if pool, ok := b.free.Load(n); ok {
		if mem, ok := pool.(*sync.Pool).Get().(*[]byte); ok {
			return *mem
		}
	}
	return newMemory(n)
}

// give keeps memory that is no longer used for take.
func (b *Backend) give(mem []byte) {
	if b.finalized.Load() || len(mem) == 0 {
		return
	}
	pool, ok := b.free.Load(len(mem))
	if !ok {
		pool, _ = b.free.LoadOrStore(len(mem), &sync.Pool{})
	}
	pool.(*sync.Pool).Put(&mem)
}

func (b *Backend) newBuffer(shape shapes.Shape) *Buffer {
	return &Buffer{shape: shape, mem: b.take(int(shape.Memory()))}
}

// bytes returns the elements of the buffer as bytes.
func (u *Buffer) bytes() []byte { return u.mem[:u.shape.Memory()] }

// flat returns the buffer as a slice of its Go type.
func (u *Buffer) flat() any { return flatSlice(u.shape.DType, u.mem, u.shape.Size()) }

// flatSlice returns n elements of memory as a slice of the data type's Go type.
func flatSlice(dtype dtypes.DType, mem []byte, n int) any {
	return reflect.SliceAt(dtype.GoType(), unsafe.Pointer(unsafe.SliceData(mem)), n).Interface()
}

// flatBytes returns a slice of a supported type as bytes, with its data type and length.
func flatBytes(flat any) (mem []byte, dtype dtypes.DType, n int, err error) {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice {
		return nil, dtypes.InvalidDType, 0, errors.Errorf("flat data must be a slice, got %T", flat)
	}
	dtype = dtypes.FromGoType(v.Type().Elem())
	if dtype == dtypes.InvalidDType {
		return nil, dtype, 0, errors.Errorf("no data type for %T", flat)
	}
	n = v.Len()
	return unsafe.Slice((*byte)(v.UnsafePointer()), n*dtype.Size()), dtype, n, nil
}

// buffer converts a client's argument to a live buffer of this engine, or returns an error if it is none.
func (b *Backend) buffer(action string, any backends.Buffer) (*Buffer, error) {
	if err := b.checkLive(action); err != nil {
		return nil, err
	}
	u, ok := any.(*Buffer)
	if !ok || u == nil {
		return nil, errors.Errorf("cpu engine: %s of a %T, which is not a buffer of this engine", action, any)
	}
	if u.gone.Load() {
		return nil, errors.Errorf("cpu engine: %s of a buffer %s that was finalized or donated", action, u.shape)
	}
	return u, nil
}

// BufferFinalize makes the memory of a buffer available to other buffers.
func (b *Backend) BufferFinalize(buffer backends.Buffer) error {
	u, err := b.buffer("BufferFinalize", buffer)
	if err != nil {
		return err
	}
	if u.gone.Swap(true) {
		return errors.Errorf("cpu engine: buffer %s finalized twice concurrently", u.shape)
	}
	b.give(u.mem)
	return nil
}

// BufferShape returns the shape of a buffer.
func (b *Backend) BufferShape(buffer backends.Buffer) (shapes.Shape, error) {
	u, err := b.buffer("BufferShape", buffer)
	if err != nil {
		return shapes.Invalid(), err
	}
	return u.shape, nil
}

// BufferDeviceNum returns 0: there is one device.
func (b *Backend) BufferDeviceNum(buffer backends.Buffer) (backends.DeviceNum, error) {
	_, err := b.buffer("BufferDeviceNum", buffer)
	return 0, err
}

// BufferToFlatData copies a buffer into a slice of its Go type and of exactly its size.
func (b *Backend) BufferToFlatData(buffer backends.Buffer, flat any) error {
	u, err := b.buffer("BufferToFlatData", buffer)
	if err != nil {
		return err
	}
	mem, err := matchFlat("BufferToFlatData", flat, u.shape)
	if err == nil {
		copy(mem, u.bytes())
	}
	return err
}

// BufferFromFlatData copies a slice of the shape's Go type and size into a new buffer.
func (b *Backend) BufferFromFlatData(device backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	if err := b.checkLive("BufferFromFlatData"); err != nil {
		return nil, err
	}
	if err := b.checkDevice(device); err != nil {
		return nil, err
	}
	mem, err := matchFlat("BufferFromFlatData", flat, shape)
	if err != nil {
		return nil, err
	}
	u := b.newBuffer(shape.Clone())
	copy(u.mem, mem)
	return u, nil
}

func matchFlat(action string, flat any, shape shapes.Shape) ([]byte, error) {
	mem, dtype, n, err := flatBytes(flat)
	if err != nil {
		return nil, err
	}
	if dtype != shape.DType || n != shape.Size() {
		return nil, errors.Errorf("cpu engine: %s of %d elements of %s for shape %s", action, n, dtype, shape)
	}
	return mem, nil
}

func (b *Backend) checkDevice(device backends.DeviceNum) error {
	if device != 0 {
		return errors.Errorf("cpu engine: device %d does not exist; the only device is 0", device)
	}
	return nil
}

// HasSharedBuffers returns true: buffers are host memory.
func (b *Backend) HasSharedBuffers() bool { return true }

// NewSharedBuffer returns a buffer of zeros and its elements as a slice of its Go type.
func (b *Backend) NewSharedBuffer(device backends.DeviceNum, shape shapes.Shape) (backends.Buffer, any, error) {
	if err := b.checkLive("NewSharedBuffer"); err != nil {
		return nil, nil, err
	}
	if err := b.checkDevice(device); err != nil {
		return nil, nil, err
	}
	u := b.newBuffer(shape.Clone())
	clear(u.mem)
	return u, u.flat(), nil
}

// BufferData returns the elements of the buffer, not a copy, as a slice of their Go type.
func (b *Backend) BufferData(buffer backends.Buffer) (any, error) {
	u, err := b.buffer("BufferData", buffer)
	if err != nil {
		return nil, err
	}
	return u.flat(), nil
}

// BufferCopyToDevice returns an error: there is only one device.
func (b *Backend) BufferCopyToDevice(buffer backends.Buffer, device backends.DeviceNum) (backends.Buffer, error) {
	return nil, errors.Errorf("cpu engine: device %d does not exist; the only device is 0", device)
}
