package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
)

func sample(t testing.TB) File {
	t.Helper()
	config, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	config.LambdaVal = 0.1 // a number without an exact binary form
	return File{Config: config, Step: 1234, Meta: map[string]string{"engine": "cpu", "why": "a “sentence”\n"}, Tensors: map[string]Tensor{
		"encoder.0.weight": {Shape: []int{2, 1, 2}, Data: []float32{1, -2.5, float32(math.Inf(-1)), math.SmallestNonzeroFloat32}},
		"symbols":          {Shape: []int{1, 3}, Data: []float32{0.1, 0.2, 0.3}},
		"scalar":           {Shape: []int{}, Data: []float32{7}},
		"empty":            {Shape: []int{0, 4}, Data: []float32{}},
	}}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "step-000001234.safetensors")
	want := sample(t)
	for range 2 { // the second replaces the first
		if err := Write(path, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read differs from written (-written +read):\n%s", diff)
	}
	if names := list(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("the folder has %v, want only the checkpoint", names)
	}
}

func TestReadFS(t *testing.T) {
	var raw bytes.Buffer
	if err := Encode(&raw, sample(t)); err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{"a/model.safetensors": {Data: raw.Bytes()}}
	got, err := ReadFS(fsys, "a/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(t), got); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadFS(fsys, "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

// TestFormat checks the bytes of the format: u64 length, JSON, data; the header is padded to a multiple of 8.
func TestFormat(t *testing.T) {
	var raw bytes.Buffer
	if err := Encode(&raw, File{Tensors: map[string]Tensor{"b": {[]int{1}, []float32{2}}, "a": {[]int{1}, []float32{1}}}}); err != nil {
		t.Fatal(err)
	}
	b := raw.Bytes()
	size := binary.LittleEndian.Uint64(b)
	head, data := string(b[8:8+size]), b[8+size:]
	if size%8 != 0 || !strings.HasPrefix(head, "{") {
		t.Errorf("header of %d bytes: %q", size, head)
	}
	for _, part := range []string{`"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`, `"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}`, `"step":"0"`} {
		if !strings.Contains(head, part) {
			t.Errorf("header %s lacks %s", head, part)
		}
	}
	if want := []byte{0, 0, 128, 63, 0, 0, 0, 64}; !bytes.Equal(data, want) {
		t.Errorf("data %v, want %v", data, want)
	}
}

// TestDTypes reads 1, -2 and 0.5 in every supported dtype.
func TestDTypes(t *testing.T) {
	for dtype, data := range map[string]string{
		"F32":  "\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f",
		"F64":  "\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\xe0\x3f",
		"F16":  "\x00\x3c\x00\xc0\x00\x38",
		"BF16": "\x80\x3f\x00\xc0\x00\x3f",
	} {
		got, err := decode(fmt.Sprintf(`{"t":{"dtype":%q,"shape":[3],"data_offsets":[0,%d]}}`, dtype, len(data)), data)
		if err != nil {
			t.Errorf("%s: %v", dtype, err)
			continue
		}
		if diff := cmp.Diff(map[string]Tensor{"t": {[]int{3}, []float32{1, -2, 0.5}}}, got.Tensors); diff != "" {
			t.Errorf("%s: %s", dtype, diff)
		}
	}
}

// TestForeignMetadata: a file from another program may lack our metadata and keeps its own.
func TestForeignMetadata(t *testing.T) {
	got, err := decode(`{"__metadata__":{"format":"pt","author":"someone"}}`, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(File{Meta: map[string]string{"author": "someone"}, Tensors: map[string]Tensor{}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestDamage: every damage is an error that says what is damaged and where.
func TestDamage(t *testing.T) {
	const one = `{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	for name, c := range map[string]struct{ head, data, want string }{
		"not JSON":              {`{"t":`, "", "the header is not a JSON object"},
		"a list":                {`[1]`, "", "the header is not a JSON object"},
		"data cut short":        {one, "1234567", `tensor "t": bytes 0 to 8 lie outside the 7 bytes of data`},
		"bytes after the end":   {one, "123456789", "1 bytes follow the last tensor"},
		"unknown dtype":         {strings.Replace(one, "F32", "I64", 1), "12345678", `dtype "I64" is not supported; use F32`},
		"shape of more":         {strings.Replace(one, "[2]", "[3]", 1), "12345678", `tensor "t": 8 bytes do not hold shape [3] of F32`},
		"shape of half":         {strings.Replace(one, "[0,8]", "[0,7]", 1), "1234567", `tensor "t": 7 bytes do not hold`},
		"negative shape":        {strings.Replace(one, "[2]", "[-2]", 1), "12345678", "shape [-2] is impossible"},
		"endless shape":         {strings.Replace(one, "[2]", "[4294967296,4294967296,4]", 1), "12345678", "is impossible"},
		"fractional shape":      {strings.Replace(one, "[2]", "[2.5]", 1), "12345678", `tensor "t": its header entry cannot be read`},
		"many axes":             {strings.Replace(one, "[2]", "[2"+strings.Repeat(",1", 40)+"]", 1), "12345678", "a shape with 41 axes"},
		"negative offset":       {strings.Replace(one, "[0,8]", "[-8,0]", 1), "12345678", "lie outside"},
		"offsets backwards":     {strings.Replace(one, "[0,8]", "[8,0]", 1), "12345678", "lie outside"},
		"offsets beyond":        {strings.Replace(one, "[0,8]", "[0,9223372036854775807]", 1), "12345678", "lie outside"},
		"one offset":            {strings.Replace(one, "[0,8]", "[0]", 1), "12345678", "lacks dtype, shape or two data_offsets"},
		"no shape":              {`{"t":{"dtype":"F32","data_offsets":[0,8]}}`, "12345678", "lacks dtype, shape or two data_offsets"},
		"entry not an object":   {`{"t":3}`, "", `tensor "t": its header entry cannot be read`},
		"a hole":                {strings.Replace(one, "[0,8]", "[4,12]", 1), "123456789012", "bytes 0 to 4 before it belong to no tensor"},
		"overlap":               {`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, "123456789012", `tensor "b": its data at byte 4 overlaps`},
		"metadata of numbers":   {`{"__metadata__":{"step":3}}`, "", "the metadata is not a JSON object of strings"},
		"step not a number":     {`{"__metadata__":{"step":"soon"}}`, "", `the step "soon" is not a number of steps`},
		"step below 0":          {`{"__metadata__":{"step":"-1"}}`, "", `the step "-1" is not a number of steps`},
		"configuration garbled": {`{"__metadata__":{"config":"{"}}`, "", "the configuration cannot be read"},
		"unknown parameter":     {`{"__metadata__":{"config":"{\"warp\":1}"}}`, "", `unknown field "warp"`},
	} {
		_, err := decode(c.head, c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestTruncation: a file truncated anywhere, or with a false length, is an error, and memory is not allocated from a false length.
func TestTruncation(t *testing.T) {
	var raw bytes.Buffer
	if err := Encode(&raw, sample(t)); err != nil {
		t.Fatal(err)
	}
	for n := range raw.Len() {
		if _, err := Decode(bytes.NewReader(raw.Bytes()[:n]), int64(n)); err == nil {
			t.Fatalf("a file cut at byte %d of %d was read", n, raw.Len())
		}
	}
	// The size may be stale if the file shrank before it was read.
	if _, err := Decode(bytes.NewReader(raw.Bytes()[:raw.Len()-1]), int64(raw.Len())); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("a file that shrank gives %v", err)
	}
	for _, length := range []uint64{90 << 20, maxHeader + 1, math.MaxUint64} {
		lie := binary.LittleEndian.AppendUint64(nil, length)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(bytes.NewReader(lie), 8)
		runtime.ReadMemStats(&after)
		if err == nil || after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("a header that claims %d bytes: %v, %d bytes allocated", length, err, after.TotalAlloc-before.TotalAlloc)
		}
	}
}

func TestReadOfWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder gives %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

// TestFailedWriteKeepsTheFormer: a failed write leaves the old checkpoint and no other file.
func TestFailedWriteKeepsTheFormer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.safetensors")
	if err := Write(path, sample(t)); err != nil {
		t.Fatal(err)
	}
	former, err := Hash(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := sample(t)
	bad.Tensors["symbols"] = Tensor{Shape: []int{2, 3}, Data: []float32{1}}
	if err := Write(path, bad); err == nil || !strings.Contains(err.Error(), `tensor "symbols" of shape [2 3] has 1 numbers`) {
		t.Errorf("a tensor without its numbers gives %v", err)
	}
	bad.Tensors = map[string]Tensor{"__metadata__": {[]int{1}, []float32{1}}}
	if err := Write(path, bad); err == nil {
		t.Error("a tensor under the metadata's name was written")
	}
	if err := Write(filepath.Join(dir, "none", "c"), sample(t)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder gives %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "taken"), sample(t)); err == nil {
		t.Error("a folder was replaced by a checkpoint")
	}
	now, err := Hash(path)
	if err != nil || now != former {
		t.Errorf("the checkpoint changed from %s to %s (%v)", former, now, err)
	}
	if names := list(t, dir); len(names) != 2 {
		t.Errorf("the folder has %v, want c.safetensors and taken", names)
	}
}

func TestHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abc")
	if err := os.WriteFile(path, []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2's example
	if got, err := Hash(path); err != nil || got != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

// FuzzDecode: Decode returns for any bytes, and what it accepts can be written and read again.
func FuzzDecode(f *testing.F) {
	var raw bytes.Buffer
	if err := Encode(&raw, sample(f)); err != nil {
		f.Fatal(err)
	}
	f.Add(raw.Bytes())
	f.Add(file(`{"t":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, "ab"))
	f.Add(file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}`, "12345678"))
	f.Add(file(`{}`, ""))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := Decode(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		total := 0
		for _, tensor := range first.Tensors {
			total += len(tensor.Data)
		}
		if total > len(b) {
			t.Fatalf("%d numbers out of %d bytes", total, len(b))
		}
		var again bytes.Buffer
		if err := Encode(&again, first); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		second, err := Decode(bytes.NewReader(again.Bytes()), int64(again.Len()))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		for name, tensor := range first.Tensors {
			for i, v := range tensor.Data {
				if w := second.Tensors[name].Data[i]; math.Float32bits(v) != math.Float32bits(w) {
					t.Fatalf("%q: number %d is %v, then %v", name, i, v, w)
				}
			}
		}
	})
}

func file(head, data string) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...)
}

func decode(head, data string) (File, error) {
	raw := file(head, data)
	return Decode(bytes.NewReader(raw), int64(len(raw)))
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
