// Package protobuf reads protocol buffer messages field by field, without a schema.
package protobuf

import "google.golang.org/protobuf/encoding/protowire"

// Visit receives a field: content for messages and strings, number with the bits for other types.
type Visit func(field protowire.Number, number uint64, content []byte) error

// Fields calls visit for each field of a message. It returns the first error of visit, or damaged if the bytes are not a message.
func Fields(b []byte, damaged error, visit Visit) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return damaged
		}
		b = b[n:]
		var number uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var small uint32
			small, n = protowire.ConsumeFixed32(b)
			number = uint64(small)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return damaged
		}
		b = b[n:]
		if err := visit(field, number, content); err != nil {
			return err
		}
	}
	return nil
}
