package data

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model/expect"
)

// TestMATLAB reads images and labels of both kinds of MATLAB files, written by SciPy and h5py (testdata/make.py), and adds them.
func TestMATLAB(t *testing.T) {
	for _, c := range []struct {
		file    string
		axes    string
		factors []Factor
		classes []int
		kind    Kind
		note    string
	}{
		{"level5.mat", "hwcn", []Factor{{"factor_0", []string{"1", "2", "10"}}}, []int{0, 0, 0, 0, 1, 1, 1, 2}, Packed, ""},
		{"level5_plain.mat", "hwcn", []Factor{{"factor_0", []string{"2", "10"}}}, []int{0, 1}, Placed, "Arrays not used: text."},
		{"level5_python.mat", "nhwc", []Factor{{"factor_0", []string{"0", "1", "2"}}, {"factor_1", []string{"0", "1", "2", "3"}}},
			[]int{0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3}, Packed, ""},
		{"level73.mat", "hwcn", []Factor{{"factor_0", []string{"1", "2", "10"}}}, []int{0, 0, 0, 0, 1, 1, 1, 2}, Packed, ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			catalogue := catalogue(t)
			asked := Request{From: filepath.Join(must(os.Getwd())(t), "testdata", c.file)}
			p := must(catalogue.Preview(t.Context(), asked))(t)
			if diff := cmp.Diff(c.factors, p.Info.Factors); diff != "" || p.Axes != c.axes || len(p.Used) != 2 || p.Info.Note != c.note {
				t.Errorf("axes %s, used %q, note %q, %s", p.Axes, p.Used, p.Info.Note, diff)
			}
			set := add(t, catalogue, asked)
			index := make([]int, len(c.classes)/len(c.factors))
			for i := range index {
				index[i] = i
			}
			classes, images := make([]int, len(c.classes)), make([]byte, len(index)*64*64*3)
			if err := set.Classes(classes, index); err != nil || !slices.Equal(classes, c.classes) {
				t.Errorf("classes %v, %v", classes, err)
			}
			if err := set.Images(images, index); err != nil || set.Info().Len != len(index) {
				t.Fatalf("%d images, %v", set.Info().Len, err)
			}
			patterned(t, images, 0)
			if e := must(catalogue.Entry(t.Context(), set.Info().Name))(t); e.Kind != c.kind {
				t.Errorf("it is %s", e.Kind)
			}
		})
	}
	cut := filepath.Join(t.TempDir(), "cut.mat")
	whole := must(os.ReadFile("testdata/level5.mat"))(t)
	if err := os.WriteFile(cut, whole[:len(whole)-400], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openOwn(t, cut)
	expect.Says(t, err, "cut.mat", "ends early")
}

// TestAxes chooses the likeliest order of axes: MATLAB's own, unless labels or square images speak for another.
func TestAxes(t *testing.T) {
	for _, c := range []struct {
		shape  []int // as in the file, the last axis fastest
		matlab bool
		labels int // the number that agrees with labels
		want   string
	}{
		{[]int{9, 8, 8, 3}, false, 0, "nhwc"}, {[]int{9, 3, 8, 8}, false, 0, "nchw"}, {[]int{9, 3, 8, 3}, false, 0, "nhwc"}, {[]int{9, 8, 7}, false, 7, "nhw"},
		{[]int{9, 3, 8, 7}, true, 0, "ncwh"}, {[]int{3, 8, 8, 9}, true, 0, "cwhn"}, {[]int{7, 8, 1, 9}, true, 0, "whcn"}, {[]int{9, 8, 8, 3}, true, 0, "nhwc"},
		{[]int{9, 8, 7}, true, 0, "nwh"}, {[]int{9, 8, 7}, true, 7, "whn"}, {[]int{8, 8, 9}, true, 0, "whn"}, {[]int{8, 8, 9}, true, 8, "nwh"},
	} {
		a := &array{matlab: c.matlab}
		a.Shape = c.shape
		if got, err := axesOf(a, "", func(n int) bool { return n == c.labels }); got != c.want || err != nil {
			t.Errorf("%v, MATLAB %v, labels %d: %q, %v; want %q", c.shape, c.matlab, c.labels, got, err, c.want)
		}
	}
}

// TestOrientation reads images whose axes are in an unusual order when told so, in place and packed.
func TestOrientation(t *testing.T) {
	turned := func(path, axes string) Source { // as testdata/make.py has it, n × y × x × c
		t.Helper()
		f := must(arraysFormat.Open(t.Context(), path, Reading{Orientation: axes}))(t)
		t.Cleanup(func() { f.Close() })
		return f
	}
	upright := stream(t, turned("testdata/fortran.npy", ""), 0)
	swapped := turned("testdata/fortran.npy", "N, W, H, C")
	images := stream(t, swapped, 0)
	if images[(64*2+5)*3+1] != upright[(64*5+2)*3+1] {
		t.Error("rows and columns are not swapped")
	}
	file := func(shape string, b []byte) string {
		return filepath.Join(unpacked(t, map[string][]byte{"own.npy": npyFile("|u1", shape, b)}), "own.npy")
	}
	ramp := make([]byte, 2*64*64) // n is the last axis
	for i := range ramp {
		ramp[i] = byte(i%2*100 + i/2%64)
	}
	last := turned(file("(64, 64, 2)", ramp), "hwn")
	if info := last.Info(); info.Len != 2 || info.C != 1 {
		t.Fatalf("%+v", info)
	}
	if images := stream(t, last, 0); images[70] != 6 || images[64*64+70] != 106 {
		t.Errorf("the images begin %v and %v", images[:3], images[64*64:][:3])
	}
	columns := make([]byte, 2*64*64) // each column is as bright as its number
	for i := range columns {
		columns[i] = byte(i / 64 % 64)
	}
	placed := turned(file("(2, 64, 64)", columns), "nwh").(InPlace)
	images = make([]byte, 64*64)
	if err := placed.ReadImages(images, []int{1}); err != nil || images[63] != 63 || images[64*9+5] != 5 {
		t.Errorf("in place, the second row begins %v, %v", images[64:70], err)
	}
	for axes, says := range map[string]string{
		"nhw": `"nhw" does not name the 4 axes`, "nhhc": "write each of n (images), h (rows), w (columns) and c (channels) once", "nhcw": "64 channels",
	} {
		_, err := arraysFormat.Open(t.Context(), "testdata/fortran.npy", Reading{Orientation: axes})
		expect.Says(t, err, "orientation: ", says)
	}
}
