package play

import (
	"bytes"

	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// Coder is a fake network.
type Coder struct {
	Enc func(images []byte, batch int) ([]int32, error)
	Dec func(codes []int32, batch int) ([]byte, error)
}

func (c Coder) encode(images []byte, batch int) ([]int32, error) { return c.Enc(images, batch) }
func (c Coder) decode(codes []int32, batch int) ([]byte, error)  { return c.Dec(codes, batch) }
func (c Coder) finalize()                                        {}

// NewModel returns a Model with a fake network.
func NewModel(c Coder, file checkpoint.File, image ae.Image) *Model { return newModel(c, file, image) }

// Opened returns the number of open checkpoints.
func (l *Library) Opened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// GridCode returns the code of a real number.
func GridCode(v float32) int32 { return gridCode(v) }

// Chunk returns a PNG chunk.
func Chunk(kind string, body []byte) []byte {
	var out bytes.Buffer
	chunk(&out, kind, body)
	return out.Bytes()
}
