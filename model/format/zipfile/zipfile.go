// Package zipfile reads zip archives of very many files. It streams the directory entry by entry, so that memory holds only what the caller
// keeps. It reads stored and deflated files, with and without 64-bit sizes.
//
// Names and numbers follow PKWARE's APPNOTE.TXT, version 6.3.10.
package zipfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Entry is the location of a file in an archive.
type Entry struct {
	at       int64  // of its local header
	packed   uint32 // bytes in the archive
	unpacked uint32
	sum      uint32 // CRC-32
	method   uint16
	flags    uint16
}

// Archive is an open archive.
type Archive struct {
	r         io.ReaderAt
	size      int64
	base      int64 // origin of offsets: 0 unless there is data before the archive
	directory io.SectionReader
	files     uint64 // number of files according to the end record
	exact     bool   // whether files is exact, not modulo 2¹⁶
}

const (
	localSignature     = "PK\x03\x04"
	fileSignature      = "PK\x01\x02"
	endSignature       = "PK\x05\x06"
	end64Signature     = "PK\x06\x06"
	locator64Signature = "PK\x06\x07"

	localLength     = 30
	fileLength      = 46
	endLength       = 22
	locator64Length = 20
	end64Length     = 56
)

var errNoArchive = errors.New("not a zip archive, or it is incomplete")

// Open opens an archive of size bytes by finding its directory.
func Open(r io.ReaderAt, size int64) (*Archive, error) {
	end, at, err := findEnd(r, size)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	a := &Archive{r: r, size: size, files: uint64(le.Uint16(end[10:]))}
	length, start := uint64(le.Uint32(end[12:])), uint64(le.Uint32(end[16:]))
	if a.files == 0xffff || length == 0xffffffff || start == 0xffffffff {
		if end64, at64 := findEnd64(r, at); end64 != nil {
			at, a.exact = at64, true
			a.files, length, start = le.Uint64(end64[32:]), le.Uint64(end64[40:]), le.Uint64(end64[48:])
		}
	}
	if length > uint64(at) || start > uint64(at)-length {
		return nil, fmt.Errorf("%w: the directory claims %d bytes at byte %d, but ends at byte %d", errNoArchive, length, start, at)
	}
	a.base = at - int64(length) - int64(start)
	if a.base > 0 && hasSignature(r, int64(start), fileSignature) {
		a.base = 0 // the extra data is between the directory and its end record, not before the archive
	}
	a.directory = *io.NewSectionReader(r, a.base+int64(start), int64(length))
	return a, nil
}

// findEnd finds the end record of an archive, which only a comment may follow.
func findEnd(r io.ReaderAt, size int64) (record []byte, at int64, err error) {
	tail := make([]byte, min(size, endLength+0xffff))
	if n, err := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
		return nil, 0, errors.Join(errNoArchive, err)
	}
	for from := len(tail) - endLength; from >= 0; from-- {
		record := tail[from:]
		if bytes.HasPrefix(record, []byte(endSignature)) && endLength+int(binary.LittleEndian.Uint16(record[20:])) <= len(record) {
			return record, size - int64(len(record)), nil
		}
	}
	return nil, 0, errNoArchive
}

// findEnd64 finds the 64-bit end record before the one at at; nil if there is none.
func findEnd64(r io.ReaderAt, at int64) (record []byte, at64 int64) {
	locator := make([]byte, locator64Length)
	if _, err := r.ReadAt(locator, at-locator64Length); err != nil || string(locator[:4]) != locator64Signature {
		return nil, 0
	}
	at64 = int64(binary.LittleEndian.Uint64(locator[8:]))
	record = make([]byte, end64Length)
	if at64 < 0 || at64 > at {
		return nil, 0
	}
	if _, err := r.ReadAt(record, at64); err != nil || string(record[:4]) != end64Signature {
		return nil, 0
	}
	return record, at64
}

func hasSignature(r io.ReaderAt, at int64, signature string) bool {
	b := make([]byte, len(signature))
	_, err := r.ReadAt(b, at)
	return err == nil && string(b) == signature
}

// Len returns the number of files that the archive claims, limited by the size of its directory.
func (a *Archive) Len() int { return int(min(a.files, uint64(a.directory.Size()/fileLength))) }

// Files visits the regular files in the order of the directory, skipping folders and links. name is valid until visit returns.
func (a *Archive) Files(visit func(name []byte, e Entry) error) error {
	directory := a.directory // a private copy
	b := bytes.Buffer{}
	var seen uint64
	for {
		head, err := take(&b, &directory, fileLength)
		if err == io.EOF || err == io.ErrUnexpectedEOF || err == nil && string(head[:4]) != fileSignature {
			break
		}
		if err != nil {
			return err
		}
		seen++
		e, names := parse(head)
		rest, err := take(&b, &directory, names.name+names.extra+names.comment)
		if err != nil {
			return fmt.Errorf("the archive is damaged: its directory ends within file %d", seen)
		}
		name, extra := rest[:names.name], rest[names.name:names.name+names.extra]
		if !names.regular || bytes.HasSuffix(name, []byte("/")) {
			continue
		}
		if err := e.widen(extra); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if err := visit(name, e.entry(a.base)); err != nil {
			return err
		}
	}
	if seen != a.files && (a.exact || uint16(seen) != uint16(a.files)) {
		return fmt.Errorf("the archive is damaged: its directory has %d of %d files", seen, a.files)
	}
	return nil
}

// take reads n bytes, which are valid until the next take. It returns io.EOF if nothing is left.
func take(b *bytes.Buffer, r io.Reader, n int) ([]byte, error) {
	for b.Len() < n {
		chunk := b.AvailableBuffer()
		if cap(chunk) < 64<<10 {
			b.Grow(64 << 10)
			chunk = b.AvailableBuffer()
		}
		got, err := r.Read(chunk[:cap(chunk)])
		b.Write(chunk[:got])
		if b.Len() >= n {
			break
		}
		if err == io.EOF && b.Len() > 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Next(n), nil
}

// wide is an entry with 64-bit numbers from the directory.
type wide struct {
	Entry
	offset, inside, outside uint64 // bytes: to the local header, packed, unpacked
}

// lengths holds the lengths of the fields after an entry's fixed part, and whether it is a regular file.
type lengths struct {
	name, extra, comment int
	regular              bool
}

func parse(b []byte) (wide, lengths) {
	le := binary.LittleEndian
	e := wide{
		Entry:  Entry{flags: le.Uint16(b[8:]), method: le.Uint16(b[10:]), sum: le.Uint32(b[16:])},
		inside: uint64(le.Uint32(b[20:])), outside: uint64(le.Uint32(b[24:])), offset: uint64(le.Uint32(b[42:])),
	}
	return e, lengths{int(le.Uint16(b[28:])), int(le.Uint16(b[30:])), int(le.Uint16(b[32:])), regular(b[5], le.Uint32(b[38:]))}
}

// regular reports whether the attributes written by a system are those of a regular file.
func regular(system byte, attributes uint32) bool {
	const unix, darwin, dos, ntfs, vfat = 3, 19, 0, 10, 14
	switch system {
	case unix, darwin:
		kind := attributes >> 16 & 0xf000
		return kind == 0x8000 || kind == 0
	case dos, ntfs, vfat:
		return attributes&0x10 == 0
	}
	return true
}

// widen replaces numbers that are 0xffffffff with 64-bit values from the extra fields, in the order of the format.
func (e *wide) widen(extra []byte) error {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		if n > len(extra)-4 {
			return nil // padding written by some programs
		}
		field := extra[4 : 4+n]
		extra = extra[4+n:]
		if id != 1 {
			continue
		}
		for _, v := range []*uint64{&e.outside, &e.inside, &e.offset} {
			if *v != 0xffffffff {
				continue
			}
			if len(field) < 8 {
				return errors.New("the archive is damaged: its size is missing in the directory")
			}
			*v, field = le.Uint64(field), field[8:]
		}
	}
	return nil
}

// entry returns the 32-bit form. Sizes of 4 GiB and more are clipped to 4 GiB − 1, above any limit for reading.
func (e wide) entry(base int64) Entry {
	e.packed, e.unpacked = uint32(min(e.inside, 1<<32-1)), uint32(min(e.outside, 1<<32-1))
	e.at = base + int64(min(e.offset, 1<<62))
	return e.Entry
}

// maxRatio is above the maximum compression ratio of deflate.
const maxRatio = 1040

// Read decompresses a file of at most limit bytes and verifies its checksum.
func (a *Archive) Read(e Entry, limit int) ([]byte, error) {
	switch {
	case int64(e.unpacked) > int64(limit) || int64(e.unpacked) > (int64(e.packed)+1)*maxRatio:
		return nil, fmt.Errorf("it decompresses from %d to %d bytes, which is above the limit of %d or impossible", e.packed, e.unpacked, limit)
	case e.flags&1 != 0:
		return nil, fmt.Errorf("it is encrypted (%w); unpack the archive with its password, then add the folder", ErrUnsupported)
	case e.method == stored && e.packed != e.unpacked:
		return nil, fmt.Errorf("the archive is damaged: the file is stored with sizes of %d and %d bytes", e.packed, e.unpacked)
	case e.method != stored && e.method != deflated:
		return nil, fmt.Errorf("it is compressed with %s (%w; only stored and deflated files are read); unpack the archive, then add the folder", methodName(e.method), ErrUnsupported)
	}
	packed, err := a.content(e)
	if err != nil {
		return nil, err
	}
	b := packed
	if e.method == deflated {
		if b, err = inflate(packed, int(e.unpacked)); err != nil {
			return nil, err
		}
	}
	if crc32.ChecksumIEEE(b) != e.sum {
		return nil, errors.New("damaged: the checksum does not match")
	}
	return b, nil
}

const (
	stored   = 0
	deflated = 8
)

// ErrUnsupported marks errors for files that are intact but use an unsupported feature.
var ErrUnsupported = errors.New("not supported")

// methodName returns the name of a compression method.
func methodName(method uint16) string {
	names := map[uint16]string{9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard", 95: "XZ", 98: "PPMd"}
	if name := names[method]; name != "" {
		return name
	}
	return fmt.Sprintf("method %d", method)
}

// content returns the stored bytes of a file, which follow its local header.
func (a *Archive) content(e Entry) ([]byte, error) {
	var head [localLength]byte
	if _, err := a.r.ReadAt(head[:], e.at); err != nil || string(head[:4]) != localSignature {
		return nil, errors.New("damaged: no file at the place given in the directory")
	}
	at := e.at + localLength + int64(binary.LittleEndian.Uint16(head[26:])) + int64(binary.LittleEndian.Uint16(head[28:]))
	if at > a.size || int64(e.packed) > a.size-at {
		return nil, errors.New("the archive is truncated before the end of the file")
	}
	b := make([]byte, e.packed)
	if _, err := a.r.ReadAt(b, at); err != nil && !(err == io.EOF && at+int64(len(b)) == a.size) {
		return nil, err
	}
	return b, nil
}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(strings.NewReader("")) }}

// inflate decompresses to exactly size bytes.
func inflate(packed []byte, size int) ([]byte, error) {
	z := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(z)
	if err := z.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(z, b); err != nil {
		return nil, fmt.Errorf("damaged or incomplete: %w", err)
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, fmt.Errorf("damaged: it decompresses to more than the %d bytes given in the directory", size)
	}
	return b, nil
}
