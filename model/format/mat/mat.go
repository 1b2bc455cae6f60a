// Package mat reads numeric arrays from level 5 MATLAB files, plain or compressed. Errors name unsupported features.
//
// Names follow The MathWorks, "MAT-File Format", 2023, chapter 1, "Level 5 MAT-File Format".
package mat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"

	"slotscope/model"
)

// Array is a numeric array of class uint8, first axis fastest.
type Array struct {
	Shape []int
	Data  []byte
}

// Data element types.
const (
	miINT8       = 1
	miUINT8      = 2
	miINT32      = 5
	miUINT32     = 6
	miMATRIX     = 14
	miCOMPRESSED = 15
)

// classes are the names of array classes, by number.
var classes = []string{"", "a cell array", "a structure", "an object", "text", "a sparse array", "double", "single", "int8", "uint8", "int16",
	"uint16", "int32", "uint32", "int64", "uint64"}

const mxUINT8 = 9

// maxRatio is above the maximum compression ratio of deflate.
const maxRatio = 1040

// Find reads the array with a name from the content of a file. The error wraps model.ErrNotFound if there is none.
func Find(content []byte, name string) (a Array, err error) {
	found := false
	err = each(content, func(data []byte) error {
		if a, found, err = matrix(data, name); found && err == nil {
			return errEnough
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("there is no array %q: %w", name, model.ErrNotFound)
	}
	if err != nil {
		return Array{}, err
	}
	return a, nil
}

// errEnough stops each without an error.
var errEnough = errors.New("enough")

// each visits the arrays of a file, uncompressed.
func each(content []byte, visit func(data []byte) error) error {
	rest, err := body(content)
	if err != nil {
		return err
	}
	for len(rest) > 0 {
		at := len(content) - len(rest)
		kind, data, next, err := element(rest)
		if err == nil && kind == miCOMPRESSED {
			kind, data, err = inflate(data)
		}
		if err != nil {
			return fmt.Errorf("the element at byte %d: %w", at, err)
		}
		if rest = next; kind != miMATRIX {
			continue
		}
		if err := visit(data); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return fmt.Errorf("the array at byte %d: %w", at, err)
		}
	}
	return nil
}

// body checks the header and returns what follows it.
func body(content []byte) ([]byte, error) {
	switch {
	case len(content) >= 128 && string(content[124:128]) == "\x00\x01IM":
		return content[128:], nil
	case len(content) >= 128 && string(content[126:128]) == "MI":
		return nil, errors.New("big-endian MATLAB files are not supported; save it again on a little-endian machine")
	case bytes.HasPrefix(content, []byte("MATLAB 7.3")):
		return nil, errors.New("MATLAB files of version 7.3 are HDF5; save it with -v7 for level 5")
	}
	return nil, errors.New("not a level 5 MATLAB file")
}

var errEnds = errors.New("the file is damaged or incomplete: it ends early")

// element splits off a data element: its tag, then its data, padded to 8 bytes unless compressed. For small elements, the upper half of
// the type word is the size, and the data is in the tag.
func element(b []byte) (kind uint32, data, next []byte, err error) {
	if len(b) < 8 {
		return 0, nil, nil, errEnds
	}
	kind, size := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if small := kind >> 16; small != 0 {
		if small > 4 {
			return 0, nil, nil, errors.New("the file is damaged: a small element has more than 4 bytes")
		}
		return kind & 0xffff, b[4 : 4+small], b[8:], nil
	}
	b = b[8:]
	if uint64(size) > uint64(len(b)) {
		return 0, nil, nil, errEnds
	}
	end := int(size)
	if kind != miCOMPRESSED {
		end = min((end+7)&^7, len(b))
	}
	return kind, b[:size], b[end:], nil
}

// inflate decompresses the element in a compressed one. It checks the claimed size against the maximum ratio of deflate.
func inflate(packed []byte) (kind uint32, data []byte, err error) {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return 0, nil, err
	}
	defer z.Close()
	tag := make([]byte, 8)
	if _, err := io.ReadFull(z, tag); err != nil {
		return 0, nil, errEnds
	}
	kind, size := binary.LittleEndian.Uint32(tag), binary.LittleEndian.Uint32(tag[4:])
	if kind>>16 != 0 || uint64(size) > uint64(len(packed)+1)*maxRatio {
		return 0, nil, fmt.Errorf("the file is damaged: %d bytes cannot decompress to %d", len(packed), size)
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(z, data); err != nil {
		return 0, nil, fmt.Errorf("unpacking: %w", err)
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(z, 8)); err != nil { // padding, then the checksum
		return 0, nil, fmt.Errorf("unpacking: %w", err)
	}
	return kind, data, nil
}

// heads splits off the flags, dimensions and name of an array; the numbers follow.
func heads(b []byte) (parts [3][]byte, rest []byte, err error) {
	for i, want := range []uint32{miUINT32, miINT32, miINT8} {
		kind, data, next, err := element(b)
		if err != nil {
			return parts, nil, err
		}
		if kind != want {
			return parts, nil, fmt.Errorf("the file is damaged: found an element of type %d, want type %d", kind, want)
		}
		parts[i], b = data, next
	}
	return parts, b, nil
}

// matrix reads an array if it has the given name.
func matrix(b []byte, name string) (Array, bool, error) {
	parts, b, err := heads(b)
	if err != nil || string(parts[2]) != name {
		return Array{}, false, err
	}
	if len(parts[0]) < 4 {
		return Array{}, false, errEnds
	}
	if class := parts[0][0]; class != mxUINT8 || parts[0][1]&8 != 0 {
		return Array{}, false, fmt.Errorf("%q has class %s; save it as a real uint8 array", name, className(class))
	}
	kind, data, _, err := element(b)
	if err != nil {
		return Array{}, false, err
	}
	if kind != miUINT8 {
		return Array{}, false, fmt.Errorf("%q is stored as data type %d; only bytes (%d) are supported", name, kind, miUINT8)
	}
	a := Array{Data: data}
	return a, true, a.setShape(name, parts[1])
}

func className(class byte) string {
	if int(class) < len(classes) && class > 0 {
		return classes[class]
	}
	return fmt.Sprint(class)
}

func (a *Array) setShape(name string, dims []byte) error {
	n := uint64(1)
	for ; len(dims) >= 4; dims = dims[4:] {
		d := binary.LittleEndian.Uint32(dims)
		a.Shape = append(a.Shape, int(d))
		if n *= uint64(d); n > uint64(len(a.Data)) {
			break
		}
	}
	if n != uint64(len(a.Data)) || len(a.Shape) < 2 {
		return fmt.Errorf("the file is damaged: %q has %d bytes for shape %v …", name, len(a.Data), a.Shape)
	}
	return nil
}
