package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Sum returns the SHA-256 of the values as little-endian float32.
func (t Tensor) Sum() string {
	h := sha256.New()
	block := make([]byte, 0, 1<<14)
	for chunk := range slices.Chunk(t.Data, cap(block)/4) {
		block = block[:0]
		for _, v := range chunk {
			block = binary.LittleEndian.AppendUint32(block, math.Float32bits(v))
		}
		h.Write(block)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Sum returns a SHA-256 of the name, shape and values of all tensors, in order of name. It is equal for equal weights, regardless of
// metadata.
func Sum(tensors map[string]Tensor) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		fmt.Fprintf(h, "%q %v %s\n", name, tensors[name].Shape, tensors[name].Sum())
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
