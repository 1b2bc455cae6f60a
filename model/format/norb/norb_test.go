package norb

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slotscope/model/expect"
)

// matrix returns a file: magic, number of axes, at least three sizes, elements.
func matrix(magic uint32, shape []int, elements []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(shape)))
	for i := range max(3, len(shape)) {
		size := 1
		if i < len(shape) {
			size = shape[i]
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(size))
	}
	return append(b, elements...)
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if strings.HasSuffix(name, ".gz") {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(b)
		_ = z.Close()
		b = packed.Bytes()
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var pixels = []byte("abcdefghijklmnopqrstuvwx")

func TestMatrix(t *testing.T) {
	for _, name := range []string{"dat.mat", "dat.mat.gz"} {
		m, err := Open(write(t, name, matrix(bytesMagic, []int{2, 2, 2, 3}, pixels)))
		if err != nil || !slices.Equal(m.Shape, []int{2, 2, 2, 3}) || m.Size != 1 {
			t.Fatal(m, err)
		}
		defer m.Close()
		b := make([]byte, 12)
		for _, want := range []string{"abcdefghijkl", "mnopqrstuvwx"} {
			if err := m.Next(b); err != nil || string(b) != want {
				t.Errorf("%q, %v", b, err)
			}
		}
		if err := m.End(); err != nil {
			t.Error(err)
		}
		expect.Says(t, m.Next(b), name, "byte 48", "incomplete") // 24 of header, 24 of elements

		m, err = Open(write(t, name, matrix(intsMagic, []int{2}, []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if v, err := m.Ints(); err != nil || !slices.Equal(v, []int32{1, -1}) {
			t.Errorf("%v, %v", v, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	whole := matrix(bytesMagic, []int{2, 2, 2, 3}, pixels)
	for name, c := range map[string]struct {
		b     []byte
		parts []string
	}{
		"float.mat":   {matrix(0x1e3d4c51, []int{1}, nil), []string{"32-bit floats"}},
		"other.mat":   {[]byte("something else entirely"), []string{"other.mat", "not a NORB binary matrix"}},
		"short.mat":   {whole[:40], []string{"short.mat", "[2 2 2 3]", "incomplete"}},
		"long.mat":    {append(slices.Clone(whole), 0), []string{"48 bytes", "it has 49"}},
		"header.mat":  {whole[:14], []string{"within its header"}},
		"axes.mat":    {matrix(bytesMagic, make([]int, 9), nil), []string{"9 axes"}},
		"huge.mat.gz": {matrix(bytesMagic, []int{1 << 20, 1 << 20, 1 << 20}, nil), []string{"more bytes than it has"}},
	} {
		_, err := Open(write(t, name, c.b))
		expect.Says(t, err, c.parts...)
	}
	m, err := Open(write(t, "a.mat", whole))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = m.Ints()
	expect.Says(t, err, "24 elements of 1 bytes", "are not labels")
	_, err = Open(filepath.Join(t.TempDir(), "none.mat"))
	expect.Says(t, err, "none.mat")
	bad := filepath.Join(t.TempDir(), "bad.mat.gz")
	if err := os.WriteFile(bad, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Open(bad)
	expect.Says(t, err, "bad.mat.gz", "not a gzip")
}

func FuzzOpen(f *testing.F) {
	f.Add(matrix(bytesMagic, []int{2, 2, 2, 3}, pixels))
	f.Add(matrix(intsMagic, []int{2}, pixels[:8]))
	path := filepath.Join(f.TempDir(), "fuzz.mat")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			return
		}
		defer m.Close()
		if m.Size == 4 {
			if _, err := m.Ints(); err != nil {
				t.Fatalf("a file of the right size: %v", err)
			}
		}
	})
}
