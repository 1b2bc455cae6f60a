package data

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slotscope/model/expect"
)

// element returns a data element of a MATLAB file, padded to 8 bytes.
func element(kind uint32, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(append(b, data...), make([]byte, -len(data)&7)...)
}

// carFile returns a level 5 MATLAB file with im [128, 128, 3, 3, 2], in which every view has one brightness: 10·azimuth + 50·elevation + car.
func carFile(car byte) []byte {
	var dims, pixels []byte
	for _, d := range []uint32{128, 128, 3, 3, 2} {
		dims = binary.LittleEndian.AppendUint32(dims, d)
	}
	for e := range byte(2) {
		for a := range byte(3) {
			pixels = append(pixels, bytes.Repeat([]byte{10*a + 50*e + car}, 128*128*3)...)
		}
	}
	body := bytes.Join([][]byte{element(6, []byte{9, 0, 0, 0, 0, 0, 0, 0}), element(5, dims), element(1, []byte("im")), element(2, pixels)}, nil)
	head := append(make([]byte, 124), 0, 1, 'I', 'M')
	return append(head, element(14, body)...)
}

func TestCars3D(t *testing.T) {
	info := beginning(cars3dInfo, 2, 3, 4)
	dir := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	archive := tar.NewWriter(z)
	for _, car := range []int{2, 0, 3, 1} { // unsorted, and next to other data
		name, b := fmt.Sprintf("car_%03d_mesh.mat", car), carFile(byte(car))
		err := errors.Join(os.WriteFile(filepath.Join(dir, name), b, 0o600),
			archive.WriteHeader(&tar.Header{Name: "data/sprites/" + name, Mode: 0o600, Size: 1}), second(archive.Write([]byte{0})),
			archive.WriteHeader(&tar.Header{Name: "data/cars/" + name, Mode: 0o600, Size: int64(len(b))}), second(archive.Write(b)))
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "nips2015-analogy-data.tar.gz")
	if err := errors.Join(archive.Close(), z.Close(), os.WriteFile(file, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, files := range map[string]carFiles{dir: carsInFolder, file: carsInTar} {
		source, err := openCars3D(info, path, files)
		source = opened(t, source, err)
		told(t, source, []int{6, 12, 18, 24})
		images := stream(t, source, 0)
		classes := make([]int, 3)
		for n := range info.Len {
			Grid(info.Sizes()).Classes(classes, n)
			want := byte(50*classes[0] + 10*classes[1] + classes[2])
			if p := images[n*12288 : (n+1)*12288]; bytes.Count(p, []byte{want}) != 12288 {
				t.Fatalf("%s: the view of classes %v is %d, not %d", path, classes, p[0], want)
			}
		}
		if rest := stream(t, source, 20); !bytes.Equal(rest, images[20*12288:]) {
			t.Error("images from 20 on differ")
		}
	}
	_, err := openCars3D(cars3dInfo, dir, carsInFolder)
	expect.Says(t, err, dir, "4 .mat files", "183 cars")
	source, err := openCars3D(beginning(cars3dInfo, 2, 3, 5), file, carsInTar)
	source = opened(t, source, err)
	expect.Says(t, source.Stream(t.Context(), 0, nil), file, "4 of 5 cars")
	source, err = openCars3D(beginning(cars3dInfo, 2, 2, 4), file, carsInTar)
	source = opened(t, source, err)
	expect.Says(t, source.Stream(t.Context(), 0, nil), "car_002_mesh.mat", "[128 128 3 3 2]", "[128 128 3 2 2]")
	if err := os.WriteFile(file, packed.Bytes()[:packed.Len()/2], 0o600); err != nil {
		t.Fatal(err)
	}
	source, err = openCars3D(info, file, carsInTar)
	source = opened(t, source, err)
	expect.Says(t, source.Stream(t.Context(), 0, nil), file, "unexpected EOF")
}

// told checks that a source reports its progress before it yields images.
func told(t *testing.T, s Source, want []int) {
	t.Helper()
	var done []int
	if err := s.(prepared).prepare(t.Context(), func(n int) { done = append(done, n) }); err != nil || !slices.Equal(done, want) {
		t.Errorf("it reported %v images, want %v: %v", done, want, err)
	}
}

func second(_ int, err error) error { return err }

// norbFile writes a binary matrix.
func norbFile(t *testing.T, dir, name string, magic uint32, shape []int, elements []byte) string {
	t.Helper()
	b := binary.LittleEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(shape)))
	for i := range max(3, len(shape)) {
		size := 1
		if i < len(shape) {
			size = shape[i]
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(size))
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, append(b, elements...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func ints(values ...int32) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func TestSmallNORB(t *testing.T) {
	info := beginning(smallNORBInfo, 2, 2, 1, 2, 1) // 2 categories, 2 instances, 2 azimuths
	dir := t.TempDir()
	write := func(azimuths ...int32) (paths []string) {
		for half := range int32(2) { // instance 1 is for training, 0 for testing
			var dat, other []byte
			for _, azimuth := range azimuths {
				for category := range int32(2) {
					first := byte(100*category + 20*(1-half) + azimuth)
					dat = append(dat, bytes.Repeat([]byte{first}, 96*96)...)
					dat = append(dat, bytes.Repeat([]byte{255}, 96*96)...) // the second camera
					other = append(other, ints(1-half, 0, azimuth, 0)...)
				}
			}
			name := smallNORBHalves[half]
			paths = append(paths,
				norbFile(t, dir, name+"-dat.mat", 0x1e3d4c55, []int{4, 2, 96, 96}, dat),
				norbFile(t, dir, name+"-cat.mat", 0x1e3d4c54, []int{4}, ints(0, 1, 0, 1)),
				norbFile(t, dir, name+"-info.mat", 0x1e3d4c54, []int{4, 4}, other))
		}
		return paths
	}
	paths := write(2, 0)
	source, err := openSmallNORB(info, paths)
	source = opened(t, source, err)
	told(t, source, []int{4, 8})
	images, classes := stream(t, source, 0), make([]int, 5)
	for n := range info.Len {
		Grid(info.Sizes()).Classes(classes, n)
		want := byte(100*classes[0] + 20*classes[1] + 2*classes[3])
		if p := images[n*4096 : (n+1)*4096]; bytes.Count(p, []byte{want}) != 4096 {
			t.Fatalf("the image of classes %v is %d, not %d", classes, p[0], want)
		}
	}
	_, err = openSmallNORB(beginning(smallNORBInfo, 2, 3, 1, 2, 1), paths)
	expect.Says(t, err, "-training-cat.mat", "-testing-cat.mat", "lack", "[0 2 0 0 0]")
	_, err = openSmallNORB(info, []string{paths[0], paths[1], paths[2], paths[0], paths[1], paths[2]})
	expect.Says(t, err, "training-info.mat", "row 0", "twice")
	_, err = openSmallNORB(info, []string{paths[0], paths[2], paths[1], paths[3], paths[4], paths[5]})
	expect.Says(t, err, "training-info.mat", "[4 4]", "1 columns")
	_, err = openSmallNORB(info, write(2, 4))
	expect.Says(t, err, "row 2", "factor 3")
	paths = write(2, 0)
	if err := os.Truncate(paths[3], 1000); err != nil {
		t.Fatal(err)
	}
	source, err = openSmallNORB(info, paths)
	source = opened(t, source, err)
	expect.Says(t, source.Stream(t.Context(), 0, nil), "testing-dat.mat", "incomplete")
}
