package npz

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/expect"
)

func written(t *testing.T, arrays ...Data) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, arrays...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "written.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var everyKind = []Data{
	{"bytes", []int{3}, []uint8{0, 1, 255}},
	{"codes", []int{2, 3}, []int32{1, 2, 3, 4, 5, -6}},
	{"long", []int{1}, []int64{1 << 40}},
	{"single", []int{2, 1}, []float32{0.5, -3}},
	{"double", []int{2}, []float64{1e300, 0.1}},
	{"names", []int{2}, []string{"floor hue", "größe"}},
	{"none", []int{0, 4}, []int32{}},
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f := expect.Open(t, Open, written(t, everyKind...))
	for _, want := range everyKind {
		a := array(t, f, want.Name)
		if d := cmp.Diff(a.Shape, want.Shape); d != "" {
			t.Errorf("%s: %s", want.Name, d)
		}
	}
	codes, err := array(t, f, "codes").Ints()
	if d := cmp.Diff(codes, []int{1, 2, 3, 4, 5, -6}); d != "" || err != nil {
		t.Error(d, err)
	}
	names, err := array(t, f, "names").Strings()
	if d := cmp.Diff(names, []string{"floor hue", "größe"}); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestNumPyReadsWhatIsWritten(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("no Python with NumPy")
	}
	script := `import numpy, sys
f = numpy.load(sys.argv[1])
print(f["bytes"].tolist(), f["codes"].tolist(), f["long"].tolist(), f["single"].tolist(), f["double"].tolist(), f["names"].tolist(), f["none"].shape, f["codes"].dtype)`
	out, err := exec.Command(python, "-c", script, written(t, everyKind...)).CombinedOutput()
	want := "[0, 1, 255] [[1, 2, 3], [4, 5, -6]] [1099511627776] [[0.5], [-3.0]] [1e+300, 0.1] ['floor hue', 'größe'] (0, 4) int32\n"
	if err != nil || string(out) != want {
		t.Errorf("NumPy prints %s (%v), want %s", out, err, want)
	}
}

func TestWriteRefuses(t *testing.T) {
	for _, a := range []Data{{"short", []int{3}, []int32{1}}, {"kind", []int{1}, []complex64{1}}} {
		if err := Write(&bytes.Buffer{}, a); err == nil {
			t.Errorf("%s was written", a.Name)
		}
	}
}
