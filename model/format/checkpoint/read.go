package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"slotscope/model"
)

const (
	metaKey   = "__metadata__"
	maxHeader = 100 << 20 // bytes; the limit of the reference implementation
	maxAxes   = 32
)

// Read reads the checkpoint at path. The error for a damaged file says where the damage is. Reading never takes more memory than about
// four times the file's size.
func Read(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("reading checkpoint: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return File{}, fmt.Errorf("reading checkpoint: %w", err)
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("reading checkpoint %s: not a regular file", path)
	}
	out, err := Decode(f, info.Size())
	if err != nil {
		return File{}, fmt.Errorf("reading checkpoint %s: %w", path, err)
	}
	return out, nil
}

// ReadFS is like Read for a file system, such as an embedded one.
func ReadFS(fsys fs.FS, name string) (File, error) {
	raw, err := fs.ReadFile(fsys, name)
	if err != nil {
		return File{}, fmt.Errorf("reading checkpoint: %w", err)
	}
	out, err := Decode(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return File{}, fmt.Errorf("reading checkpoint %s: %w", name, err)
	}
	return out, nil
}

// Decode reads a checkpoint of size bytes.
func Decode(r io.ReaderAt, size int64) (File, error) {
	head, start, err := readHeader(r, size)
	if err != nil {
		return File{}, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(head, &raw); err != nil {
		return File{}, fmt.Errorf("the header is not a JSON object: %w", err)
	}
	out := File{Meta: map[string]string{}, Tensors: make(map[string]Tensor, len(raw))}
	if meta, ok := raw[metaKey]; ok {
		if err := out.setMeta(meta); err != nil {
			return File{}, err
		}
		delete(raw, metaKey)
	}
	entries, err := parseEntries(raw)
	if err != nil {
		return File{}, err
	}
	if err := checkLayout(entries, size-start); err != nil {
		return File{}, err
	}
	for _, e := range entries {
		data, err := readTensor(r, start, e)
		if err != nil {
			return File{}, fmt.Errorf("tensor %q: %w", e.name, err)
		}
		out.Tensors[e.name] = Tensor{Shape: e.Shape, Data: data}
	}
	return out, nil
}

// Hash returns the SHA-256 of a file's bytes in hexadecimal.
func Hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing checkpoint: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hashing checkpoint: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// readHeader returns the JSON header and the offset at which the data starts.
func readHeader(r io.ReaderAt, size int64) ([]byte, int64, error) {
	if size < 8 {
		return nil, 0, fmt.Errorf("%d bytes are too few for a safetensors file", size)
	}
	var prefix [8]byte
	if err := readFull(r, prefix[:], 0); err != nil {
		return nil, 0, err
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > maxHeader {
		return nil, 0, fmt.Errorf("the header claims %d bytes, above the limit of %d; the file is damaged or not a safetensors file", length, maxHeader)
	}
	if int64(length) > size-8 {
		return nil, 0, fmt.Errorf("the header claims %d bytes, but only %d follow; the file is truncated", length, size-8)
	}
	head := make([]byte, length)
	return head, 8 + int64(length), readFull(r, head, 8)
}

// setMeta moves config and step from the metadata to their fields and keeps the rest.
func (f *File) setMeta(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, &f.Meta); err != nil {
		return fmt.Errorf("the metadata is not a JSON object of strings: %w", err)
	}
	if f.Meta == nil {
		f.Meta = map[string]string{}
	}
	if config, ok := f.Meta["config"]; ok {
		if err := model.ReadJSON(strings.NewReader(config), &f.Config); err != nil {
			return fmt.Errorf("the configuration cannot be read: %w", err)
		}
	}
	if step, ok := f.Meta["step"]; ok {
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 {
			return fmt.Errorf("the step %q is not a number of steps", step)
		}
		f.Step = n
	}
	for _, key := range []string{"config", "step", "format"} {
		delete(f.Meta, key)
	}
	return nil
}

// named is an entry with its tensor's name.
type named struct {
	name string
	entry
}

// parseEntries returns the tensors in the order of their data.
func parseEntries(raw map[string]json.RawMessage) ([]named, error) {
	entries := make([]named, 0, len(raw))
	for name, body := range raw {
		var e struct {
			DType   *string  `json:"dtype"`
			Shape   *[]int   `json:"shape"`
			Offsets *[]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, fmt.Errorf("tensor %q: its header entry cannot be read: %w", name, err)
		}
		if e.DType == nil || e.Shape == nil || e.Offsets == nil || len(*e.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %q: its header entry lacks dtype, shape or two data_offsets", name)
		}
		entries = append(entries, named{name, entry{*e.DType, *e.Shape, [2]int64(*e.Offsets)}})
	}
	slices.SortFunc(entries, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.Offsets[1], b.Offsets[1]), cmp.Compare(a.name, b.name))
	})
	return entries, nil
}

// checkLayout checks the dtype, shape and offsets of every tensor. Together they must cover the size bytes of data exactly once.
func checkLayout(entries []named, size int64) error {
	end := int64(0)
	for _, e := range entries {
		width, ok := widths[e.DType]
		if !ok {
			return fmt.Errorf("tensor %q: dtype %q is not supported; use F32, F64, F16 or BF16", e.name, e.DType)
		}
		count, err := elements(e.Shape)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", e.name, err)
		}
		from, to := e.Offsets[0], e.Offsets[1]
		switch {
		case from < 0 || to < from || to > size:
			return fmt.Errorf("tensor %q: bytes %d to %d lie outside the %d bytes of data; the file is truncated or damaged", e.name, from, to, size)
		case from < end:
			return fmt.Errorf("tensor %q: its data at byte %d overlaps the previous tensor, which ends at %d", e.name, from, end)
		case from > end:
			return fmt.Errorf("tensor %q: bytes %d to %d before it belong to no tensor", e.name, end, from)
		case count != (to-from)/width || (to-from)%width != 0:
			return fmt.Errorf("tensor %q: %d bytes do not hold shape %v of %s", e.name, to-from, e.Shape, e.DType)
		}
		end = to
	}
	if end != size {
		return fmt.Errorf("%d bytes follow the last tensor", size-end)
	}
	return nil
}

// widths are the bytes per element of the supported dtypes.
var widths = map[string]int64{"F32": 4, "F64": 8, "F16": 2, "BF16": 2}

// elements returns the number of elements of a shape.
func elements(shape []int) (int64, error) {
	if len(shape) > maxAxes {
		return 0, fmt.Errorf("a shape with %d axes is not supported; the limit is %d", len(shape), maxAxes)
	}
	n := int64(1)
	for _, d := range shape {
		if d < 0 || (d > 0 && n > math.MaxInt64/8/int64(d)) {
			return 0, fmt.Errorf("shape %v is impossible", shape)
		}
		n *= int64(d)
	}
	return n, nil
}

// readTensor reads a tensor with a checked layout, block by block.
func readTensor(r io.ReaderAt, start int64, e named) ([]float32, error) {
	width := widths[e.DType]
	out := make([]float32, 0, (e.Offsets[1]-e.Offsets[0])/width)
	block := make([]byte, min(1<<16, e.Offsets[1]-e.Offsets[0]))
	for at := e.Offsets[0]; at < e.Offsets[1]; at += int64(len(block)) {
		block = block[:min(int64(len(block)), e.Offsets[1]-at)]
		if err := readFull(r, block, start+at); err != nil {
			return nil, err
		}
		out = appendFloats(out, block, e.DType)
	}
	return out, nil
}

func appendFloats(out []float32, block []byte, dtype string) []float32 {
	le := binary.LittleEndian
	for i := int64(0); i < int64(len(block)); i += widths[dtype] {
		switch dtype {
		case "F32":
			out = append(out, math.Float32frombits(le.Uint32(block[i:])))
		case "F64":
			out = append(out, float32(math.Float64frombits(le.Uint64(block[i:]))))
		case "F16":
			out = append(out, float16.Frombits(le.Uint16(block[i:])).Float32())
		case "BF16":
			out = append(out, math.Float32frombits(uint32(le.Uint16(block[i:]))<<16))
		}
	}
	return out
}

// readFull fills b from offset. It reports an early end as a truncated file.
func readFull(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the file ends at byte %d; it is truncated", offset+int64(n))
	}
	return err
}
