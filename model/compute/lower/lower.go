//go:build cgo

// Package lower translates graphs to the StableHLO programs that XLA compiles, with GoMLX's XLA backend but without a plugin or a device, to
// detect operations that the backend does not support on any machine. It cannot execute programs.
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

// ErrLowered is returned by Compile once the program is written.
var ErrLowered = errors.New("the program was written but not compiled, since there is no plugin")

// Backend is an XLA backend for nonexistent devices.
type Backend struct {
	*xla.Backend

	mu       sync.Mutex
	programs []string
}

// New returns a backend with what its builders need: a plugin, a client and a number of devices.
func New(devices int) *Backend {
	b := new(xla.Backend)
	set(b, "plugin", new(pjrt.Plugin))
	set(b, "client", new(pjrt.Client))
	set(b, "capabilities", xla.Capabilities.Clone())
	set(b, "numDevices", devices)
	return &Backend{Backend: b}
}

// Programs returns the programs written so far, in order.
func (b *Backend) Programs() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.programs...)
}

// Finalize does nothing.
func (b *Backend) Finalize() {}

// IsFinalized returns false.
func (b *Backend) IsFinalized() bool { return false }

// Builder returns XLA's builder with a different Compile.
func (b *Backend) Builder(name string) backends.Builder {
	return &builder{b.Backend.Builder(name).(*xla.Builder), b}
}

type builder struct {
	*xla.Builder
	to *Backend
}

// Compile writes the program with XLA's builder and returns ErrLowered on success.
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

// write always returns an error, at the latest because there is no plugin. It recovers from a panic of the missing plugin.
func (b *builder) write(outputs []backends.Op, shardings []*backends.ShardingSpec) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	_, err = b.Builder.Compile(outputs, shardings)
	return err
}

// set and get access unexported fields of the backend.
func set(of any, name string, value any) {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}

func get[T any](of any, name string) T {
	field := reflect.ValueOf(of).Elem().FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Interface().(T)
}
