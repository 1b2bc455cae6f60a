//go:build cgo

package cpu

import (
	"runtime/debug"
	"sync/atomic"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"

	"slotscope/model/compute/cpu/kernel"
)

// Executable is a compiled computation. Several goroutines may execute it concurrently.
type Executable struct {
	backend   *Backend
	name      string
	inputs    []*node
	outputs   []*node
	steps     []*step
	layout    *layout
	frames    frames
	finalized atomic.Bool
}

var _ backends.Executable = (*Executable)(nil)

// frame is the memory of one execution: an arena and the arguments of each step.
type frame struct {
	arena   []byte
	out, in [][][]byte
	inputs  []patch // arguments that point to inputs
	outputs []patch // arguments that point to outputs
	flight  flight
}

// patch is an argument that changes with each call.
type patch struct {
	index int     // of the input or output
	to    *[]byte // the argument
}

// compile makes a graph executable.
func compile(b *Builder, outs []*node) (*Executable, error) {
	p := newPlan(b, outs)
	e := &Executable{backend: b.backend, name: b.name, inputs: b.inputs, outputs: outs, steps: p.steps, layout: newLayout(p)}
	return e, nil
}

func (e *Executable) newFrame() *frame {
	f := &frame{arena: newMemory(e.layout.arena)}
	f.flight.jobs = make([]*kernel.Job, len(e.steps))
	for i, s := range e.steps {
		out, in := f.arguments(e.layout.out[i]), f.arguments(e.layout.in[i])
		f.out, f.in = append(f.out, out), append(f.in, in)
		if s.until > 0 {
			var after []*kernel.Job
			for _, j := range s.after {
				after = append(after, f.flight.jobs[j])
			}
			f.flight.jobs[i] = kernel.NewJob(func(pool *kernel.Pool) { s.run(pool, out, in) }, after...)
		}
	}
	return f
}

// arguments resolves homes; the arguments for inputs and outputs are set at each call.
func (f *frame) arguments(homes []home) [][]byte {
	args := make([][]byte, len(homes))
	for k, h := range homes {
		switch h.kind {
		case inArena:
			args[k] = f.arena[h.at : h.at+h.bytes : h.at+h.bytes]
		case inConstant:
			args[k] = h.mem
		case inInput:
			f.inputs = append(f.inputs, patch{h.index, &args[k]})
		case inOutput:
			f.outputs = append(f.outputs, patch{h.index, &args[k]})
		}
	}
	return args
}

// Finalize makes the computation unusable; running executions continue to their end.
func (e *Executable) Finalize() { e.finalized.Store(true) }

// Inputs returns names and shapes of the parameters, in order of creation.
func (e *Executable) Inputs() (names []string, inputs []shapes.Shape) {
	for _, n := range e.inputs {
		names = append(names, n.args.(parameter).name)
		inputs = append(inputs, n.shape)
	}
	return names, inputs
}

// Outputs returns the shapes of the results.
func (e *Executable) Outputs() (outputs []shapes.Shape) {
	for _, n := range e.outputs {
		outputs = append(outputs, n.shape)
	}
	return outputs
}

// Execute computes the outputs. Donated inputs are invalid afterwards, and outputs may use their memory.
func (e *Executable) Execute(inputs []backends.Buffer, donate []bool, device backends.DeviceNum) ([]backends.Buffer, error) {
	in, err := e.check(inputs, donate, device)
	if err != nil {
		return nil, err
	}
	f := e.frames.get()
	if f == nil {
		f = e.newFrame()
	}
	out := e.results(in, donate)
	if err := e.run(f, in, out); err != nil {
		return nil, err // the frame is dropped
	}
	e.frames.put(f)
	e.release(in, donate, out)
	results := make([]backends.Buffer, len(out))
	for k, u := range out {
		results[k] = u
	}
	return results, nil
}

// check converts the inputs and compares them with the parameters.
func (e *Executable) check(inputs []backends.Buffer, donate []bool, device backends.DeviceNum) ([]*Buffer, error) {
	if e.finalized.Load() {
		return nil, errors.Errorf("cpu engine: computation %q executed after Finalize", e.name)
	}
	if err := e.backend.checkLive("Execute"); err != nil {
		return nil, err
	}
	if err := e.backend.checkDevice(device); err != nil {
		return nil, err
	}
	if len(inputs) != len(e.inputs) {
		return nil, errors.Errorf("cpu engine: computation %q takes %d inputs, got %d", e.name, len(e.inputs), len(inputs))
	}
	if len(donate) != 0 && len(donate) != len(inputs) {
		return nil, errors.Errorf("cpu engine: computation %q got %d inputs and %d donations", e.name, len(inputs), len(donate))
	}
	in := make([]*Buffer, len(inputs))
	for i, n := range e.inputs {
		u, err := e.backend.buffer("Execute", inputs[i])
		if err != nil {
			return nil, errors.WithMessagef(err, "input %d (%s) of %q", i, n.args.(parameter).name, e.name)
		}
		if !u.shape.Equal(n.shape) {
			return nil, errors.Errorf("cpu engine: input %d (%s) of %q must have shape %s, got %s",
				i, n.args.(parameter).name, e.name, n.shape, u.shape)
		}
		in[i] = u
	}
	return in, nil
}

// results returns the buffers of the outputs: in the memory of donated inputs as planned, otherwise new.
func (e *Executable) results(in []*Buffer, donate []bool) []*Buffer {
	out := make([]*Buffer, len(e.outputs))
	for k, n := range e.outputs {
		if i := e.layout.reuse[k]; i >= 0 && len(donate) > 0 && donate[i] && once(in, in[i]) {
			out[k] = &Buffer{shape: n.shape, mem: in[i].mem}
			continue
		}
		out[k] = e.backend.newBuffer(n.shape)
	}
	return out
}

// once reports whether u is given as exactly one input.
func once(in []*Buffer, u *Buffer) bool {
	times := 0
	for _, v := range in {
		if v == u {
			times++
		}
	}
	return times == 1
}

// run computes every step, then copies the outputs that no step writes directly.
func (e *Executable) run(f *frame, in, out []*Buffer) (err error) {
	at := -1
	defer func() {
		if p := recover(); p != nil {
			f.flight.abandon()
			what := "copying of outputs"
			if at < len(e.steps) {
				what = e.steps[max(at, 0)].describe()
			}
			err = errors.Errorf("cpu engine: %s failed in %q: %v\n%s", what, e.name, p, debug.Stack())
		}
	}()
	f.patch(in, out)
	if p := e.backend.profile.Load(); p != nil {
		p.run(e, f, &at)
	} else {
		for i, s := range e.steps {
			f.flight.join(e.steps, i, &at)
			at = i
			if !f.flight.start(e.backend.workers, i) {
				s.run(e.backend.workers, f.out[i], f.in[i])
			}
		}
		f.flight.join(e.steps, len(e.steps), &at)
	}
	at = len(e.steps)
	for k, o := range e.layout.outputs {
		if o.copy {
			copy(out[k].bytes(), f.find(o.from, in, out))
		}
	}
	f.patch(nil, nil)
	return nil
}

// patch sets the arguments that point to a call's inputs and outputs; nil removes them.
func (f *frame) patch(in, out []*Buffer) {
	for _, p := range f.inputs {
		*p.to = nil
		if in != nil {
			*p.to = in[p.index].bytes()
		}
	}
	for _, p := range f.outputs {
		*p.to = nil
		if out != nil {
			*p.to = out[p.index].bytes()
		}
	}
}

func (f *frame) find(h home, in, out []*Buffer) []byte {
	switch h.kind {
	case inInput:
		return in[h.index].bytes()
	case inOutput:
		return out[h.index].bytes()
	case inConstant:
		return h.mem
	}
	return f.arena[h.at : h.at+h.bytes]
}

// release invalidates donated inputs and recycles the memory of those that no output uses.
func (e *Executable) release(in []*Buffer, donate []bool, out []*Buffer) {
	for i, u := range in {
		if len(donate) == 0 || !donate[i] || u.gone.Swap(true) {
			continue
		}
		reused := false
		for k := range out {
			reused = reused || e.layout.reuse[k] == i && len(out[k].mem) > 0 && &out[k].mem[0] == &u.mem[0]
		}
		if !reused {
			e.backend.give(u.mem)
		}
	}
}
