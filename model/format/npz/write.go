package npz

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Data is an array to write, in C order.
type Data struct {
	Name   string
	Shape  []int
	Values any // []uint8, []int32, []int64, []float32, []float64 or []string
}

// Write writes an archive for np.load, compressed as by np.savez_compressed. Elements are little-endian; text is UTF-32.
func Write(w io.Writer, arrays ...Data) error {
	archive := zip.NewWriter(w)
	for _, a := range arrays {
		if err := a.write(archive); err != nil {
			return fmt.Errorf("writing array %q: %w", a.Name, err)
		}
	}
	return archive.Close()
}

func (a Data) write(archive *zip.Writer) error {
	w, err := archive.CreateHeader(&zip.FileHeader{Name: a.Name + ".npy", Method: zip.Deflate})
	if err != nil {
		return err
	}
	return WriteArray(w, a)
}

// WriteArray writes one .npy array, without its name.
func WriteArray(w io.Writer, a Data) error {
	descr, n, values := a.describe()
	if descr == "" {
		return fmt.Errorf("elements of type %T are not supported", a.Values)
	}
	if h := (Header{Shape: a.Shape}); h.Len() != n {
		return fmt.Errorf("%d elements do not fill shape %v", n, a.Shape)
	}
	if _, err := io.WriteString(w, header(descr, a.Shape)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, values)
}

// describe returns the elements' NumPy type, their number, and the values for binary.Write.
func (a Data) describe() (descr string, n int, values any) {
	switch v := a.Values.(type) {
	case []uint8:
		return "|u1", len(v), v
	case []int32:
		return "<i4", len(v), v
	case []int64:
		return "<i8", len(v), v
	case []float32:
		return "<f4", len(v), v
	case []float64:
		return "<f8", len(v), v
	case []string:
		letters, width := utf32(v)
		return fmt.Sprintf("<U%d", width), len(v), letters
	}
	return "", 0, nil
}

// utf32 concatenates texts, each padded with zeros to the length of the longest.
func utf32(texts []string) (letters []int32, width int) {
	width = 1
	for _, t := range texts {
		width = max(width, utf8.RuneCountInString(t))
	}
	letters = make([]int32, width*len(texts))
	for i, t := range texts {
		copy(letters[i*width:], []rune(t))
	}
	return letters, width
}

// header returns a version 1 header, padded so that the elements begin at a multiple of 64 bytes.
func header(descr string, shape []int) string {
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d,", d)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	text += strings.Repeat(" ", 63-(10+len(text))%64) + "\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
}
