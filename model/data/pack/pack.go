// Package pack implements a file format for images of equal size with random access.
//
// A file is written once, from the first image to the last, under a temporary name. Writing can be resumed after an interruption, and
// a complete file is renamed to its final name. Integers are little-endian:
//
//	"SLOTPACK"  version uint32  length of the header uint32  images on disk uint64
//	header      JSON
//	sums        CRC-32C of every block of 256 images, uint32 each
//	labels      class of every factor of every image, uint16, [Len, Factors]
//	order       images sorted by their labels, uint32, [Len] if there are labels
//	images      [Len, Each] bytes, starting at a multiple of 4096
package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	magic   = "SLOTPACK"
	version = 1
	fixed   = 24      // bytes before the header
	page    = 4096    // where images begin
	block   = 256     // images under one checksum
	largest = 1 << 24 // maximum bytes of a header
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header describes a packed file.
type Header struct {
	Len     int             `json:"len"`     // images
	Each    int             `json:"each"`    // bytes of an image; 0 if only labels are stored
	Factors int             `json:"factors"` // labels of an image; 0 for none
	Info    json.RawMessage `json:"info"`    // for the caller
	Origin  string          `json:"origin"`  // source of the images; writing is resumed only for the same origin
}

// plan holds the offsets of the parts of a file, in bytes from its start.
type plan struct{ sums, labels, order, images, end int64 }

func (h Header) plan(encoded int) plan {
	var p plan
	p.sums = roundUp(fixed+int64(encoded), 8)
	p.labels = p.sums + 4*int64(h.blocks())
	p.order = roundUp(p.labels+2*int64(h.Len)*int64(h.Factors), 8)
	p.images = p.order
	if h.Factors > 0 {
		p.images += 4 * int64(h.Len)
	}
	p.images = roundUp(p.images, page)
	p.end = p.images + int64(h.Len)*int64(h.Each)
	return p
}

func (h Header) blocks() int { return (h.Len + block - 1) / block }

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// Size returns the size in bytes of a file with this header.
func (h Header) Size() (int64, error) {
	encoded, err := h.encode()
	return h.plan(len(encoded)).end, err
}

func (h Header) encode() ([]byte, error) {
	if h.Len < 1 || h.Len > 1<<31 || h.Each < 0 || h.Each > 1<<28 || h.Factors < 0 || h.Factors > 1<<12 {
		return nil, fmt.Errorf("%d images of %d bytes with %d labels cannot be packed", h.Len, h.Each, h.Factors)
	}
	encoded, err := json.Marshal(h)
	if err == nil && len(encoded) > largest {
		err = fmt.Errorf("a header of %d bytes is too long", len(encoded))
	}
	return encoded, err
}

// preamble returns everything before the sums.
func preamble(encoded []byte, done int) []byte {
	var b bytes.Buffer
	b.WriteString(magic)
	binary.Write(&b, binary.LittleEndian, uint32(version))
	binary.Write(&b, binary.LittleEndian, uint32(len(encoded)))
	binary.Write(&b, binary.LittleEndian, uint64(done))
	b.Write(encoded)
	return b.Bytes()
}

var errForeign = errors.New("it is not a packed dataset, or it is damaged")

// readPreamble reads what preamble wrote; encoded is the header as stored in the file.
func readPreamble(r io.ReaderAt) (h Header, encoded []byte, done int, err error) {
	var b [fixed]byte
	if _, err := r.ReadAt(b[:], 0); err != nil || string(b[:8]) != magic {
		return h, nil, 0, errForeign
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return h, nil, 0, fmt.Errorf("it has version %d, but this program reads version %d", v, version)
	}
	length := binary.LittleEndian.Uint32(b[12:])
	if length > largest {
		return h, nil, 0, errForeign
	}
	encoded = make([]byte, length)
	if _, err := r.ReadAt(encoded, fixed); err != nil {
		return h, nil, 0, errForeign
	}
	if err := json.Unmarshal(encoded, &h); err != nil {
		return h, nil, 0, errForeign
	}
	if _, err := h.encode(); err != nil {
		return h, nil, 0, errForeign
	}
	count := binary.LittleEndian.Uint64(b[16:])
	if count > uint64(h.Len) {
		return h, nil, 0, errForeign
	}
	return h, encoded, int(count), nil
}
