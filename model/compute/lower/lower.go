//go:build cgo

// Package lower writes graphs as the StableHLO programs that XLA compiles, through GoMLX's XLA backend, but without a plugin and so
// without a device: an operation that the backend refuses is found on any machine. Nothing can be executed.
package lower

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/go-xla/pkg/stablehlo"
	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/xla"
)

// ErrLowered is what compiling ends with, once the program is written.
var ErrLowered = errors.New("the program is written; without a plugin it is not compiled")

// Backend is XLA's for so many devices, none of which is there.
type Backend struct {
	*xla.Backend

	mu       sync.Mutex
	programs []string
}

// New gives the backend what its builders ask for: that there is a plugin, a client and a number of devices.
func New(devices int) *Backend {
	b := new(xla.Backend)
	set(b, "plugin", new(pjrt.Plugin))
	set(b, "client", new(pjrt.Client))
	set(b, "capabilities", xla.Capabilities.Clone())
	set(b, "numDevices", devices)
	return &Backend{Backend: b}
}

// Programs are those written so far, in their order.
func (b *Backend) Programs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.programs...)
}

// Finalize frees nothing, for there is nothing.
func (b *Backend) Finalize() {}

// IsFinalized is never true.
func (b *Backend) IsFinalized() bool { return false }

// Builder is XLA's, but for Compile.
func (b *Backend) Builder(name string) backends.Builder {
	return &builder{b.Backend.Builder(name).(*xla.Builder), b}
}

type builder struct {
	*xla.Builder
	to *Backend
}

// Compile has XLA's builder write the program, and ends with ErrLowered where that succeeds.
func (b *builder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	refused := b.write(outputs, shardings)
	program, err := get[*stablehlo.Builder](b.Builder, "builder").Build()
	if err != nil {
		return nil, fmt.Errorf("writing the program: %w", errors.Join(refused, err))
	}
	b.to.mu.Lock()
	defer b.to.mu.Unlock()
	b.to.programs = append(b.to.programs, string(program))
	return nil, ErrLowered
}

// write ends with an error, at the latest for want of a plugin; asking how many devices it has is a panic.
func (b *builder) write(outputs []backends.Op, shardings []*backends.ShardingSpec) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	_, err = b.Builder.Compile(outputs, shardings)
	return err
}

// set and get reach fields that the backend keeps to itself.
func set(of any, name string, value any) {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}

func get[T any](of any, name string) T {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Interface().(T)
}
