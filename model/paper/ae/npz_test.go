package ae

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// array holds one NumPy array: numbers as float32, or text.
type array struct {
	shape []int
	data  []float32
	text  string
}

// readNPZ reads every array of an .npz archive, by name.
func readNPZ(t *testing.T, path string) map[string]array {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]array{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r)
		r.Close()
		if err == nil {
			out[strings.TrimSuffix(f.Name, ".npy")], err = readNPY(raw)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", path, f.Name, err)
		}
	}
	return out
}

var npyHeader = regexp.MustCompile(`'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([^)]*)\)`)

// readNPY reads version 1 of the format: magic, u16 header length, a Python literal, then the data, first axis slowest or fastest.
func readNPY(raw []byte) (array, error) {
	if len(raw) < 10 || string(raw[:8]) != "\x93NUMPY\x01\x00" {
		return array{}, fmt.Errorf("not an .npy file of version 1")
	}
	end := 10 + int(binary.LittleEndian.Uint16(raw[8:]))
	head := npyHeader.FindStringSubmatch(string(raw[10:end]))
	if head == nil {
		return array{}, fmt.Errorf("unsupported header %q", raw[10:end])
	}
	a, count := array{}, 1
	for part := range strings.SplitSeq(head[3], ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil {
			a.shape, count = append(a.shape, n), count*n
		}
	}
	err := a.fill(head[1], raw[end:], count)
	if head[2] == "True" && err == nil {
		a.data = rowMajor(a.data, a.shape)
	}
	return a, err
}

// rowMajor reorders data whose first axis runs fastest.
func rowMajor(data []float32, shape []int) []float32 {
	out, index := make([]float32, 0, len(data)), make([]int, len(shape))
	for range data {
		from, stride := 0, 1
		for axis, n := range shape {
			from += index[axis] * stride
			stride *= n
		}
		out = append(out, data[from])
		for axis := len(shape) - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return out
}

func (a *array) fill(dtype string, body []byte, count int) error {
	le := binary.LittleEndian
	if strings.HasPrefix(dtype, "<U") { // UTF-32
		for i := 0; i < len(body); i += 4 {
			if c := le.Uint32(body[i:]); c != 0 {
				a.text += string(rune(c))
			}
		}
		return nil
	}
	width := map[string]int{"<f4": 4, "<f8": 8, "<i4": 4, "<i8": 8}[dtype]
	if width == 0 || len(body) != count*width {
		return fmt.Errorf("%d bytes are not %d elements of %q", len(body), count, dtype)
	}
	for i := 0; i < len(body); i += width {
		switch dtype {
		case "<f4":
			a.data = append(a.data, math.Float32frombits(le.Uint32(body[i:])))
		case "<f8":
			a.data = append(a.data, float32(math.Float64frombits(le.Uint64(body[i:]))))
		case "<i4":
			a.data = append(a.data, float32(int32(le.Uint32(body[i:]))))
		case "<i8":
			a.data = append(a.data, float32(int64(le.Uint64(body[i:]))))
		}
	}
	return nil
}

// writeNPY writes float32 data as version 1 of the format.
func writeNPY(t *testing.T, path string, shape []int, data []float32) {
	t.Helper()
	dims := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(shape)), ","), "[]")
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }", dims)
	for (10+len(head)+1)%64 != 0 {
		head += " "
	}
	raw := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(raw[8:], uint16(len(head)+1))
	raw = append(raw, head+"\n"...)
	for _, v := range data {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}
