// Package hdf5 reads arrays of numbers and text from HDF5 files, as written by h5py and used by the published datasets. It supports
// superblocks 0 to 3, object headers 1 and 2, every kind of group, soft links, integers and floats of either byte order, bools and text,
// compact, contiguous and chunked storage with every index, and the filters deflate, LZF, shuffle and fletcher32. Errors name any other
// feature that a file uses. Sizes in a file are checked against the size of the file before memory is allocated.
//
// Names and numbers follow the HDF5 File Format Specification, version 3.0.
package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/format/regular"
)

// File is an open HDF5 file. It and its datasets are safe for concurrent use.
type File struct {
	path string
	file *os.File
	at   io.ReaderAt // from the superblock on: addresses count from there
	size uint64
	root uint64 // address of the root group's object header
}

// Open opens a file for reading. The caller must Close it.
func Open(path string) (*File, error) {
	return regular.Open(path, func(file *os.File, size int64) (*File, error) {
		f := &File{path: path, file: file}
		return f, f.superblock(size)
	})
}

// Close closes the file, after which its datasets cannot be read.
func (f *File) Close() error { return f.file.Close() }

func (f *File) wrap(err error) error { return fmt.Errorf("%s: %w", f.path, err) }

// Magic is the signature of HDF5 files, at their start unless they have a user block.
const Magic = "\x89HDF\r\n\x1a\n"

// superblock finds the superblock, at 0, 512, 1024, 2048 …, and reads the address of the root group.
func (f *File) superblock(whole int64) error {
	for start := int64(0); start < whole; start = max(512, 2*start) {
		block := make([]byte, 112) // enough for any version
		n, _ := f.file.ReadAt(block, start)
		if bytes.HasPrefix(block[:n], []byte(Magic)) {
			f.at, f.size = io.NewSectionReader(f.file, start, whole-start), uint64(whole-start)
			return f.parseSuperblock(&cursor{rest: block[len(Magic):n]}, uint64(whole))
		}
	}
	return errors.New("not an HDF5 file")
}

// parseSuperblock reads the superblock, II.A, of a file of whole bytes.
func (f *File) parseSuperblock(c *cursor, whole uint64) error {
	var end uint64
	switch version := c.u8(); version {
	case 0, 1:
		c.skip(4) // versions of other parts
		if err := offsets(c); err != nil {
			return err
		}
		c.skip(1 + 2 + 2 + 4 + 4*int(version)) // tree ranks and flags; version 1 has one more rank
		c.skip(8 + 8)                          // base address, free space
		end = c.u64()
		c.skip(8 + 8) // driver information, name of the root
		f.root = c.u64()
	case 2, 3:
		if err := offsets(c); err != nil {
			return err
		}
		c.skip(1 + 8 + 8) // flags, base address, extension
		end = c.u64()
		f.root = c.u64()
	default:
		return fmt.Errorf("superblock version %d is not supported (only versions 0 to 3)", version)
	}
	if c.short {
		return errors.New("the file is incomplete: it ends within its superblock")
	}
	if end != undefined && end > whole {
		return fmt.Errorf("the file is incomplete: it has %d of %d bytes", whole, end)
	}
	return nil
}

func offsets(c *cursor) error {
	if o, l := c.u8(), c.u8(); o != 8 || l != 8 {
		return fmt.Errorf("addresses of %d bytes and lengths of %d bytes are not supported (only 8)", o, l)
	}
	return nil
}

// bytes reads n bytes at an address.
func (f *File) bytes(address, n uint64) ([]byte, error) {
	if address > f.size || n > f.size-address {
		return nil, fmt.Errorf("the file is damaged or incomplete: %d bytes at address %d lie beyond its end at %d", n, address, f.size)
	}
	b := make([]byte, n)
	if _, err := f.at.ReadAt(b, int64(address)); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// Names returns the paths of the datasets, in order, at most 1,000.
func (f *File) Names() ([]string, error) {
	var names []string
	err := f.walk(f.root, "", map[uint64]bool{}, &names)
	if err != nil {
		return nil, f.wrap(err)
	}
	slices.Sort(names)
	return names, nil
}

// maxNames limits listings, since hard links can give one dataset endless names.
const maxNames = 1000

func (f *File) walk(address uint64, path string, above map[uint64]bool, names *[]string) error {
	messages, err := f.messages(address)
	if err != nil {
		return err
	}
	if _, ok := find(messages, dataspaceMessage); ok {
		*names = append(*names, path)
		return nil
	}
	links, err := f.links(messages)
	if err != nil {
		return err
	}
	above[address] = true
	defer delete(above, address)
	for _, l := range links {
		if l.target != "" || l.outside || above[l.address] || len(above) > 16 || len(*names) >= maxNames {
			continue
		}
		if err := f.walk(l.address, strings.TrimPrefix(path+"/"+l.name, "/"), above, names); err != nil {
			return err
		}
	}
	return nil
}

// Dataset opens the array at a path such as "images" or "latents/classes". The error wraps model.ErrNotFound if there is none.
func (f *File) Dataset(path string) (*Dataset, error) {
	messages, err := f.follow(f.root, path, 0)
	if err != nil {
		return nil, f.wrap(err)
	}
	d, err := f.dataset(path, messages)
	if err != nil {
		return nil, f.wrap(fmt.Errorf("dataset %q: %w", path, err))
	}
	return d, nil
}

// maxSoft limits how many soft links are followed in a row, since they may form a cycle.
const maxSoft = 16

// follow reads the object header at a path relative to a group.
func (f *File) follow(group uint64, path string, soft int) ([]message, error) {
	messages, err := f.messages(group)
	whole := strings.Split(strings.Trim(path, "/"), "/")
	for i, part := range whole {
		if part == "" || part == "." {
			continue
		}
		if err != nil {
			return nil, err
		}
		var links []link
		if links, err = f.links(messages); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(links, func(l link) bool { return l.name == part })
		switch {
		case at < 0:
			return nil, fmt.Errorf("there is no dataset %q (%w)%s", path, model.ErrNotFound, listed(links))
		case links[at].outside:
			return nil, fmt.Errorf("%q is an external link; links to other files are not followed", part)
		case links[at].target == "":
			group = links[at].address
			messages, err = f.messages(group)
			continue
		case soft == maxSoft:
			return nil, fmt.Errorf("the soft link %q leads through more than %d links", part, maxSoft)
		}
		target := strings.Join(append([]string{links[at].target}, whole[i+1:]...), "/")
		if strings.HasPrefix(target, "/") {
			group = f.root
		}
		return f.follow(group, target, soft+1)
	}
	return messages, err
}

func listed(links []link) string {
	if len(links) == 0 {
		return ""
	}
	names := make([]string, min(len(links), 20))
	for i := range names {
		names[i] = links[i].name
	}
	return "; available: " + strings.Join(names, ", ")
}
