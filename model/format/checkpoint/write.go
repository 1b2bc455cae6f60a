package checkpoint

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/x448/float16"

	"slotscope/model/whole"
)

// entry is one tensor in a safetensors header; Offsets count from the end of the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Write writes a checkpoint to path atomically: it writes a temporary file, syncs it, renames it and syncs the folder.
func Write(path string, f File) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing checkpoint %s: %w", path, err)
		}
	}()
	if _, _, err := header(f, float32Type); err != nil {
		return err // before creating a file
	}
	return whole.Write(path, func(w *os.File) error { return Encode(w, f) })
}

// Encode writes a checkpoint to w in the safetensors format: u64 length, JSON header, F32 data in order of name.
func Encode(w io.Writer, f File) error { return encode(w, f, float32Type) }

// EncodeHalf is like Encode with 16-bit numbers (F16), rounded to nearest.
func EncodeHalf(w io.Writer, f File) error { return encode(w, f, float16Type) }

const (
	float32Type = "F32"
	float16Type = "F16"
)

func encode(w io.Writer, f File, dtype string) error {
	head, names, err := header(f, dtype)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<20)
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(head)))
	out.Write(size[:])
	out.Write(head)
	for _, name := range names {
		if err := writeFloats(out, f.Tensors[name].Data, dtype); err != nil {
			return err
		}
	}
	return out.Flush()
}

// header returns the JSON header, padded so that the data begins at a multiple of 8, and the names in the order of their data.
func header(f File, dtype string) ([]byte, []string, error) {
	meta, err := metadata(f)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]any{metaKey: meta}
	names, offset := slices.Sorted(maps.Keys(f.Tensors)), int64(0)
	for _, name := range names {
		t := f.Tensors[name]
		count, err := elements(t.Shape)
		if err != nil || count != int64(len(t.Data)) || name == metaKey {
			return nil, nil, fmt.Errorf("tensor %q of shape %v has %d numbers", name, t.Shape, len(t.Data))
		}
		all[name] = entry{dtype, append([]int{}, t.Shape...), [2]int64{offset, offset + widths[dtype]*count}}
		offset += widths[dtype] * count
	}
	head, err := json.Marshal(all)
	if err != nil {
		return nil, nil, err
	}
	for len(head)%8 != 0 {
		head = append(head, ' ')
	}
	if len(head) > maxHeader {
		return nil, nil, fmt.Errorf("the header takes %d bytes, but readers accept at most %d", len(head), maxHeader)
	}
	return head, names, nil
}

func metadata(f File) (map[string]string, error) {
	config, err := json.Marshal(f.Config)
	if err != nil {
		return nil, err
	}
	meta := map[string]string{}
	maps.Copy(meta, f.Meta)
	meta["format"], meta["config"], meta["step"] = "pt", string(config), strconv.Itoa(f.Step)
	return meta, nil
}

func writeFloats(w io.Writer, data []float32, dtype string) error {
	const block = 4096
	le, out := binary.LittleEndian, make([]byte, 0, 4*block)
	for chunk := range slices.Chunk(data, block) {
		out = out[:0]
		for _, v := range chunk {
			if dtype == float16Type {
				out = le.AppendUint16(out, float16.Fromfloat32(v).Bits())
			} else {
				out = le.AppendUint32(out, math.Float32bits(v))
			}
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
	}
	return nil
}
