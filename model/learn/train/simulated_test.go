package train

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// simulated is an engine with several devices on top of one with a single device. It replaces XLA's partitioner: a program is written for
// whole batches, and each device receives and returns its own parts. It checks that copies are equal on all devices.
type simulated struct {
	backends.Backend
	devices int
	split   int // inputs shared among devices so far
}

// simBuffer is on one of the devices.
type simBuffer struct {
	backends.Buffer
	device backends.DeviceNum
}

func (s *simulated) NumDevices() int        { return s.devices }
func (s *simulated) HasSharedBuffers() bool { return false }
func (s *simulated) Finalize()              {}

func (s *simulated) BufferFromFlatData(device backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	if int(device) >= s.devices {
		return nil, fmt.Errorf("no device %d", device)
	}
	b, err := s.Backend.BufferFromFlatData(0, flat, shape)
	return &simBuffer{b, device}, err
}

func (s *simulated) BufferToFlatData(b backends.Buffer, flat any) error {
	return s.Backend.BufferToFlatData(b.(*simBuffer).Buffer, flat)
}

func (s *simulated) BufferData(b backends.Buffer) (any, error) {
	return nil, fmt.Errorf("device memory")
}

func (s *simulated) BufferShape(b backends.Buffer) (shapes.Shape, error) {
	return s.Backend.BufferShape(b.(*simBuffer).Buffer)
}

func (s *simulated) BufferDeviceNum(b backends.Buffer) (backends.DeviceNum, error) {
	return b.(*simBuffer).device, nil
}

func (s *simulated) BufferFinalize(b backends.Buffer) error {
	return s.Backend.BufferFinalize(b.(*simBuffer).Buffer)
}

func (s *simulated) BufferCopyToDevice(b backends.Buffer, device backends.DeviceNum) (backends.Buffer, error) {
	flat, shape, err := s.flat(b)
	if err != nil {
		return nil, err
	}
	return s.BufferFromFlatData(device, flat, shape)
}

// flat copies a buffer to the host.
func (s *simulated) flat(b backends.Buffer) (any, shapes.Shape, error) {
	shape, err := s.BufferShape(b)
	if err != nil {
		return nil, shape, err
	}
	n := shape.Size()
	flat := reflect.MakeSlice(reflect.SliceOf(shape.DType.GoType()), n, n).Interface()
	return flat, shape, s.BufferToFlatData(b, flat)
}

func (s *simulated) Builder(name string) backends.Builder {
	return &simBuilder{Builder: s.Backend.Builder(name), on: s, devices: 1}
}

type simBuilder struct {
	backends.Builder
	on      *simulated
	devices int
	inputs  []*backends.ShardingSpec
	spread  bool
}

func (b *simBuilder) DistributedAutoSharding(meshes ...backends.Mesh) error {
	b.devices, b.spread = 1, true
	for _, size := range meshes[0].AxesSizes {
		b.devices *= size
	}
	return nil
}

func (b *simBuilder) DeviceAssignment(devices ...backends.DeviceNum) error {
	if len(devices) != b.devices {
		return fmt.Errorf("%d devices assigned, want %d", len(devices), b.devices)
	}
	return nil
}

func (b *simBuilder) Parameter(name string, shape shapes.Shape, spec *backends.ShardingSpec) (backends.Op, error) {
	b.inputs = append(b.inputs, spec)
	return b.Builder.Parameter(name, shape, nil)
}

func (b *simBuilder) Compile(outputs []backends.Op, specs []*backends.ShardingSpec) (backends.Executable, error) {
	for _, spec := range specs {
		if axisOf(spec) >= 0 {
			return nil, fmt.Errorf("result is sharded: %+v", spec)
		}
	}
	inner, err := b.Builder.Compile(outputs, nil)
	return &simExecutable{inner, b}, err
}

// axisOf returns the sharded axis, −1 for none.
func axisOf(spec *backends.ShardingSpec) int {
	if spec != nil {
		for axis, names := range spec.Axes {
			if len(names) > 0 {
				return axis
			}
		}
	}
	return -1
}

type simExecutable struct {
	backends.Executable
	of *simBuilder
}

// Execute takes and returns the buffers of the first device, then those of the second, and so on.
func (e *simExecutable) Execute(inputs []backends.Buffer, donate []bool, _ backends.DeviceNum) ([]backends.Buffer, error) {
	s, each := e.of.on, len(e.of.inputs)
	if len(inputs) != each*e.of.devices {
		return nil, fmt.Errorf("%d inputs for %d of %d devices", len(inputs), each, e.of.devices)
	}
	whole := make([]backends.Buffer, each)
	for i := range whole {
		var parts []backends.Buffer
		for device := range e.of.devices {
			part := inputs[device*each+i]
			if on := part.(*simBuffer).device; int(on) != device {
				return nil, fmt.Errorf("input %d of device %d is on device %d", i, device, on)
			}
			parts = append(parts, part)
		}
		b, err := s.join(parts, axisOf(e.of.inputs[i]))
		if err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		whole[i] = b.(*simBuffer).Buffer
	}
	results, err := e.Executable.Execute(whole, nil, 0)
	if err != nil {
		return nil, err
	}
	var all []backends.Buffer
	for device := range backends.DeviceNum(e.of.devices) {
		for _, r := range results {
			b, err := s.BufferCopyToDevice(&simBuffer{r, 0}, device)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		}
	}
	return all, nil
}

// join concatenates the parts of an input along an axis; without an axis, it checks that they are equal.
func (s *simulated) join(parts []backends.Buffer, axis int) (backends.Buffer, error) {
	first, shape, err := s.flat(parts[0])
	if err != nil || len(parts) == 1 {
		return parts[0], err
	}
	all := []reflect.Value{reflect.ValueOf(first)}
	for _, part := range parts[1:] {
		flat, _, err := s.flat(part)
		if err != nil {
			return nil, err
		}
		if axis < 0 && !bytes.Equal(fmt.Append(nil, flat), fmt.Append(nil, first)) {
			return nil, fmt.Errorf("copies of %s differ between devices", shape)
		}
		all = append(all, reflect.ValueOf(flat))
	}
	if axis < 0 {
		return parts[0], nil
	}
	s.split++
	rows, row := 1, 1
	for a, dim := range shape.Dimensions {
		if a < axis {
			rows *= dim
		} else {
			row *= dim
		}
	}
	joined := reflect.MakeSlice(all[0].Type(), 0, rows*row*len(parts))
	for r := range rows {
		for _, part := range all {
			joined = reflect.AppendSlice(joined, part.Slice(r*row, (r+1)*row))
		}
	}
	wide := shape.Clone()
	wide.Dimensions[axis] *= len(parts)
	return s.BufferFromFlatData(0, joined.Interface(), wide)
}
