// Package onnx writes neural networks as ONNX models, opset 13: nodes, weights, and named inputs and outputs.
//
// Field numbers are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	opset     = 13
	irVersion = 7 // the format version that introduced opset 13
)

// Type is the type of a tensor's elements.
type Type int

// Supported element types.
const (
	Float32 Type = 1
	Int64   Type = 7
)

// Graph is a network under construction. The zero Graph is empty and ready for use. Every method that adds a tensor returns its name.
type Graph struct {
	inputs, outputs, nodes, weights []byte // fields of GraphProto
	named                           map[string]bool
	count                           int
}

// Attribute is a setting of a node.
type Attribute struct {
	name  string
	value any // int, []int or float64
}

// Int returns an integer attribute.
func Int(name string, v int) Attribute { return Attribute{name, v} }

// Ints returns an attribute of several integers.
func Ints(name string, v ...int) Attribute { return Attribute{name, v} }

// Float returns a float32 attribute.
func Float(name string, v float64) Attribute { return Attribute{name, v} }

// Batch is the size of the dynamic batch axis in a shape.
const Batch = -1

// Input declares an input.
func (g *Graph) Input(name string, t Type, shape ...int) string {
	g.inputs = message(g.inputs, 11, valueInfo(name, t, shape))
	return name
}

// Output declares a tensor as the output name.
func (g *Graph) Output(name, tensor string, t Type, shape ...int) {
	g.node("Identity", []string{tensor}, []string{name}, nil)
	g.outputs = message(g.outputs, 12, valueInfo(name, t, shape))
}

// Weights adds a constant tensor of float32 numbers. Adding a name again returns the existing tensor.
func (g *Graph) Weights(name string, shape []int, data []float32) string {
	return g.constant(name, Float32, shape, func() []byte {
		raw := make([]byte, 0, 4*len(data))
		for _, v := range data {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		return raw
	})
}

// Scalar adds a constant number.
func (g *Graph) Scalar(v float64) string {
	return g.Weights(fmt.Sprintf("scalar:%g", v), nil, []float32{float32(v)})
}

// Integers adds a constant list of int64 numbers.
func (g *Graph) Integers(values ...int) string {
	name := "integers"
	if len(values) <= 8 {
		name = fmt.Sprintf("integers:%v", values)
	} else {
		name = fmt.Sprintf("integers:%d", g.next())
	}
	return g.constant(name, Int64, []int{len(values)}, func() []byte {
		raw := make([]byte, 0, 8*len(values))
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(int64(v)))
		}
		return raw
	})
}

func (g *Graph) constant(name string, t Type, shape []int, raw func() []byte) string {
	if g.named[name] {
		return name
	}
	if g.named == nil {
		g.named = map[string]bool{}
	}
	g.named[name] = true
	var tensor []byte
	for _, d := range shape {
		tensor = varint(tensor, 1, d)
	}
	tensor = varint(tensor, 2, int(t))
	tensor = text(tensor, 8, name)
	tensor = message(tensor, 9, raw())
	g.weights = message(g.weights, 5, tensor)
	return name
}

// Add adds a node with one output.
func (g *Graph) Add(op string, inputs []string, attributes ...Attribute) string {
	return g.AddN(op, 1, inputs, attributes...)[0]
}

// AddN adds a node with n outputs.
func (g *Graph) AddN(op string, n int, inputs []string, attributes ...Attribute) []string {
	outputs := make([]string, n)
	for i := range outputs {
		outputs[i] = fmt.Sprintf("%s:%d", op, g.next())
	}
	g.node(op, inputs, outputs, attributes)
	return outputs
}

func (g *Graph) next() int {
	g.count++
	return g.count
}

func (g *Graph) node(op string, inputs, outputs []string, attributes []Attribute) {
	var node []byte
	for _, name := range inputs {
		node = text(node, 1, name)
	}
	for _, name := range outputs {
		node = text(node, 2, name)
	}
	node = text(node, 3, outputs[0])
	node = text(node, 4, op)
	for _, a := range attributes {
		node = message(node, 5, a.encode())
	}
	g.nodes = message(g.nodes, 1, node)
}

func (a Attribute) encode() []byte {
	b := text(nil, 1, a.name)
	kind := 0
	switch v := a.value.(type) {
	case float64:
		kind = 1
		b = protowire.AppendTag(b, 2, protowire.Fixed32Type)
		b = protowire.AppendFixed32(b, math.Float32bits(float32(v)))
	case int:
		kind = 2
		b = varint(b, 3, v)
	case []int:
		kind = 7
		for _, i := range v {
			b = varint(b, 8, i)
		}
	}
	return varint(b, 20, kind)
}

// Write writes the model with its name, description and metadata.
func (g *Graph) Write(w io.Writer, name, about string, meta ...[2]string) error {
	graph := text(nil, 2, name)
	size := len(g.nodes) + len(graph) + len(g.weights) + len(g.inputs) + len(g.outputs)
	head := varint(nil, 1, irVersion)
	head = text(head, 2, "slotscope")
	head = text(head, 6, about)
	head = message(head, 8, varint(nil, 2, opset))
	for _, m := range meta {
		head = message(head, 14, text(text(nil, 1, m[0]), 2, m[1]))
	}
	head = protowire.AppendTag(head, 7, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(size))
	for _, part := range [][]byte{head, g.nodes, graph, g.weights, g.inputs, g.outputs} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("writing ONNX model %s: %w", name, err)
		}
	}
	return nil
}

// valueInfo returns a ValueInfoProto: a name with a type and a shape.
func valueInfo(name string, t Type, shape []int) []byte {
	var dims []byte
	for _, d := range shape {
		if d == Batch {
			dims = message(dims, 1, text(nil, 2, "N"))
		} else {
			dims = message(dims, 1, varint(nil, 1, d))
		}
	}
	tensor := message(varint(nil, 1, int(t)), 2, dims)
	return message(text(nil, 1, name), 2, message(nil, 1, tensor))
}

func varint(b []byte, field protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(int64(v)))
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}
