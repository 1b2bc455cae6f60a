//go:build cgo

package cpu

import (
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/pkg/errors"
)

// Builder collects the nodes of one computation until Compile. Only one goroutine may use it.
type Builder struct {
	notimplemented.Builder

	backend *Backend
	name    string
	nodes   []*node // each after its inputs
	inputs  []*node // parameters, in order of creation
	done    bool    // compiled
}

var _ backends.Builder = (*Builder)(nil)

// node is one operation of the graph, or one result of an operation with several results.
type node struct {
	id     int
	op     backends.OpType
	shape  shapes.Shape
	in     []*node
	args   any  // parameters of the operation other than its inputs; the type depends on the operation
	split  bool // of a product: operands may be multiplied as two bfloat16 parts each
	halves bool // of a product: the program's result is bfloat16, so that the value may be rounded
	narrow bool // the value is float32, but stored as bfloat16

	results []*node // of an operation with several results; the node itself then has no value
	parent  *node   // of a result: the operation
}

// parameter is the args of a Parameter.
type parameter struct {
	name  string
	index int
}

// constant is the args of a Constant: its elements.
type constant []byte

// Name returns the name of the computation.
func (b *Builder) Name() string { return b.name }

// OpShape returns the shape of an operation's result.
func (b *Builder) OpShape(op backends.Op) (shapes.Shape, error) {
	in, err := b.operands("OpShape", op)
	if err != nil {
		return shapes.Invalid(), err
	}
	return in[0].shape, nil
}

// add appends a node with inputs that operands has checked.
func (b *Builder) add(op backends.OpType, shape shapes.Shape, args any, in ...*node) *node {
	n := &node{id: len(b.nodes), op: op, shape: shape, in: in, args: args}
	b.nodes = append(b.nodes, n)
	return n
}

// addResults appends a node with several results, and one node for each of them.
func (b *Builder) addResults(op backends.OpType, results []shapes.Shape, args any, in ...*node) []*node {
	parent := b.add(op, shapes.Invalid(), args, in...)
	for _, shape := range results {
		r := b.add(op, shape, nil, parent)
		r.parent = parent
		parent.results = append(parent.results, r)
	}
	return parent.results
}

// operands checks that the ops are nodes of this builder and that it is not compiled yet.
func (b *Builder) operands(action string, ops ...backends.Op) ([]*node, error) {
	if b.done {
		return nil, errors.Errorf("cpu engine: %s added to computation %q, which is already compiled", action, b.name)
	}
	if err := b.backend.checkLive(action); err != nil {
		return nil, err
	}
	in := make([]*node, len(ops))
	for i, op := range ops {
		n, ok := op.(*node)
		if !ok || n == nil {
			return nil, errors.Errorf("cpu engine: operand %d of %s is a %T, not a node of this engine", i, action, op)
		}
		if n.id >= len(b.nodes) || b.nodes[n.id] != n {
			return nil, errors.Errorf("cpu engine: operand %d of %s belongs to another computation than %q", i, action, b.name)
		}
		in[i] = n
	}
	return in, nil
}

// guard turns a panic of shape inference into an error that names the operation.
func guard(op backends.OpType, err *error) {
	if p := recover(); p != nil {
		*err = errors.Errorf("cpu engine: %s cannot be built: %v", op, p)
	}
}

// Parameter adds an input of the computation. Execute takes inputs in order of creation.
func (b *Builder) Parameter(name string, shape shapes.Shape, sharding *backends.ShardingSpec) (backends.Op, error) {
	if _, err := b.operands("Parameter"); err != nil {
		return nil, err
	}
	if sharding != nil {
		return nil, errors.Wrapf(notimplemented.NotImplementedError, "cpu engine: parameter %q cannot be sharded", name)
	}
	if err := checkDType("parameter "+name, shape.DType); err != nil {
		return nil, err
	}
	n := b.add(backends.OpTypeParameter, shape.Clone(), parameter{name: name, index: len(b.inputs)})
	b.inputs = append(b.inputs, n)
	return n, nil
}

// Constant adds a copy of the slice flat, with the given dimensions.
func (b *Builder) Constant(flat any, dims ...int) (op backends.Op, err error) {
	defer guard(backends.OpTypeConstant, &err)
	if _, err := b.operands("Constant"); err != nil {
		return nil, err
	}
	mem, dtype, n, err := flatBytes(flat)
	if err != nil {
		return nil, err
	}
	if err := checkDType("constant", dtype); err != nil {
		return nil, err
	}
	shape := shapes.Make(dtype, dims...)
	if shape.Size() != n {
		return nil, errors.Errorf("cpu engine: constant of shape %s given %d elements", shape, n)
	}
	return b.constant(shape, mem), nil
}

// constant adds a constant with a copy of mem.
func (b *Builder) constant(shape shapes.Shape, mem []byte) *node {
	own := newMemory(len(mem))
	copy(own, mem)
	return b.add(backends.OpTypeConstant, shape, constant(own[:len(mem)]))
}

func checkDType(what string, dtype dtypes.DType) error {
	if !capabilities.DTypes[dtype] {
		return errors.Errorf("cpu engine: %s has data type %s, which is not supported", what, dtype)
	}
	return nil
}

// DeviceAssignment accepts device 0 only.
func (b *Builder) DeviceAssignment(devices ...backends.DeviceNum) error {
	if !slices.Equal(devices, []backends.DeviceNum{0}) {
		return errors.Errorf("cpu engine: computation %q assigned to devices %v; the only device is 0", b.name, devices)
	}
	return nil
}

// Compile plans the computation of the outputs. The builder cannot be used afterwards.
func (b *Builder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (exec backends.Executable, err error) {
	if len(shardings) > 0 && slices.ContainsFunc(shardings, func(s *backends.ShardingSpec) bool { return s != nil }) {
		return nil, errors.Wrapf(notimplemented.NotImplementedError, "cpu engine: outputs of %q cannot be sharded", b.name)
	}
	outs, err := b.operands("Compile", outputs...)
	if err != nil {
		return nil, err
	}
	for i, n := range outs {
		if n.results != nil {
			return nil, errors.Errorf("cpu engine: output %d of %q has several results; pick one", i, b.name)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Errorf("cpu engine: computation %q cannot be compiled: %v", b.name, p)
		}
	}()
	b.done = true
	return compile(b, outs)
}
