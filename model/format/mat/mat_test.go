package mat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model"
	"slotscope/model/expect"
)

func content(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFind(t *testing.T) {
	for _, name := range []string{"plain.mat", "packed.mat"} {
		a, err := Find(content(t, name), "im")
		if err != nil || !slices.Equal(a.Shape, []int{8, 6, 3, 4, 2}) {
			t.Fatal(name, a.Shape, err)
		}
		i := 0
		for e := range 2 {
			for az := range 4 {
				for c := range 3 {
					for x := range 6 {
						for y := range 8 {
							if want := byte(7*az + 13*e + 3*y + 5*x + 11*c); a.Data[i] != want {
								t.Fatalf("%s: element %d is %d, not %d", name, i, a.Data[i], want)
							}
							i++
						}
					}
				}
			}
		}
		tiny, err := Find(content(t, name), "tiny") // its data is in the tag
		if err != nil || !slices.Equal(tiny.Shape, []int{1, 2}) || !bytes.Equal(tiny.Data, []byte{1, 2}) {
			t.Error(name, tiny, err)
		}
		_, err = Find(content(t, name), "other")
		expect.Says(t, err, `"other"`, "double")
		_, err = Find(content(t, name), "s")
		expect.Says(t, err, "text")
		_, err = Find(content(t, name), "absent")
		expect.Says(t, err, `"absent"`)
		if !errors.Is(err, model.ErrNotFound) {
			t.Error("a missing array is not model.ErrNotFound")
		}
	}
}

func TestRefusals(t *testing.T) {
	_, err := Find([]byte("MATLAB 7.3 MAT-file"), "im")
	expect.Says(t, err, "7.3", "HDF5")
	_, err = Find([]byte("something else"), "im")
	expect.Says(t, err, "not a level 5 MATLAB file")
	b := content(t, "packed.mat")
	_, err = Find(b[:len(b)/2], "im")
	expect.Says(t, err, "at byte", "ends early")
	big := bytes.Clone(b)
	copy(big[124:], "\x01\x00MI")
	_, err = Find(big, "im")
	expect.Says(t, err, "big-endian")
	changed := bytes.Clone(b)
	changed[len(changed)/2] ^= 0xff
	_, err = Find(changed, "tiny")
	expect.Says(t, err, "at byte")
	plain := content(t, "plain.mat")
	at := bytes.Index(plain, []byte{8, 0, 0, 0, 6, 0, 0, 0, 3, 0, 0, 0})
	binary.LittleEndian.PutUint32(plain[at:], 9)
	_, err = Find(plain, "im")
	expect.Says(t, err, `"im"`, "damaged", "[9 6 3")
}

func FuzzFind(f *testing.F) {
	for _, name := range []string{"plain.mat", "packed.mat"} {
		f.Add(content(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, name := range []string{"im", "tiny"} {
			if a, err := Find(b, name); err == nil && len(a.Data) > (len(b)+1)*maxRatio {
				t.Fatalf("%d bytes hold %d", len(b), len(a.Data))
			}
		}
	})
}

// TestAll reads arrays of every numeric class.
func TestAll(t *testing.T) {
	for _, name := range []string{"plain.mat", "packed.mat"} {
		all, err := All(content(t, name))
		if err != nil {
			t.Fatal(name, err)
		}
		find := func(array string) Numbers {
			i := slices.IndexFunc(all, func(n Numbers) bool { return n.Name == array })
			if i < 0 {
				t.Fatalf("%s: no array %q", name, array)
			}
			return all[i]
		}
		if tiny := find("tiny"); tiny.Err != nil || tiny.Float || !slices.Equal(tiny.Values, []float64{1, 2}) || !slices.Equal(tiny.Shape, []int{1, 2}) {
			t.Errorf("%s: %+v", name, tiny)
		}
		if other := find("other"); other.Err != nil || !other.Float || len(other.Values) == 0 {
			t.Errorf("%s: %+v", name, other)
		}
	}
}

func FuzzAll(f *testing.F) {
	for _, name := range []string{"plain.mat", "packed.mat"} {
		f.Add(content(f, name))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		all, _ := All(content)
		for _, a := range all {
			n := 1
			for _, s := range a.Shape {
				n *= s
			}
			if a.Err == nil && n != len(a.Values) {
				t.Errorf("%d values of shape %v", len(a.Values), a.Shape)
			}
		}
	})
}

// TestOpen reads arrays on demand and finds what All finds.
func TestOpen(t *testing.T) {
	for _, name := range []string{"plain.mat", "packed.mat"} {
		f, err := Open("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		want, err := All(content(t, name))
		if err != nil || len(want) != len(f.Arrays) {
			t.Fatalf("%s: %d arrays, want %d, %v", name, len(f.Arrays), len(want), err)
		}
		for i, a := range f.Arrays {
			w := want[i]
			if a.Name != w.Name || (a.Err == nil) != (w.Err == nil) {
				t.Errorf("%s: %q, %v", name, a.Name, a.Err)
			}
			if a.Err != nil {
				expect.Says(t, a.Err, "text")
				continue
			}
			r, err := a.Stream()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil || !slices.Equal(a.Shape, w.Shape) || len(b) != len(w.Values)*a.Size || (a.InPlace() == nil) != (name == "packed.mat") {
				t.Fatalf("%s: %q: %v, %d bytes, %v", name, a.Name, a.Shape, len(b), err)
			}
			if at := a.InPlace(); at != nil {
				there := make([]byte, len(b))
				if _, err := at.ReadAt(there, 0); err != nil || !bytes.Equal(there, b) {
					t.Errorf("%s: %q in place: %v", name, a.Name, err)
				}
			}
			if a.Size == 1 && float64(b[len(b)-1]) != w.Values[len(b)-1] {
				t.Errorf("%s: %q ends %d", name, a.Name, b[len(b)-1])
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	at := func(b []byte) string {
		path := filepath.Join(t.TempDir(), "own.mat")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, err := Open(at([]byte("something else")))
	expect.Says(t, err, "own.mat", "not a level 5 MATLAB file")
	for _, name := range []string{"plain.mat", "packed.mat"} {
		b := content(t, name)
		_, err = Open(at(b[:len(b)/2]))
		expect.Says(t, err, "own.mat", "at byte", "ends early")
	}
	b := content(t, "packed.mat")
	broken := false
	for i := 200; i < len(b); i += 3 { // a changed byte is noticed, at the latest by the checksum
		changed := bytes.Clone(b)
		changed[i] ^= 0x40
		f, err := Open(at(changed))
		if err != nil {
			broken = true
			continue
		}
		for _, a := range f.Arrays {
			if r, err := a.Stream(); a.Err == nil && err == nil {
				if _, err := io.ReadAll(r); err != nil {
					broken = true
				}
			}
		}
		f.Close()
	}
	if !broken {
		t.Error("damage was not noticed")
	}
}
