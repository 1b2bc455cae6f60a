package pack

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
)

// File is a packed file open for reading. Its memory does not grow with the number of images, and its methods are safe for concurrent
// use.
type File struct {
	file   *os.File
	header Header
	at     plan
}

// Open opens a complete file; errors name it.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := open(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s cannot be used: %w", path, err)
	}
	return p, nil
}

func open(f *os.File) (*File, error) {
	h, encoded, done, err := readPreamble(f)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &File{file: f, header: h, at: h.plan(len(encoded))}
	if done != h.Len || stat.Size() != p.at.end {
		return nil, fmt.Errorf("it has %d of %d images and %d of %d bytes", done, h.Len, stat.Size(), p.at.end)
	}
	return p, nil
}

// Header returns the description of the file.
func (f *File) Header() Header { return f.header }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Images reads image index[b] into dst[b*Each:], consecutive images in one read. Indices must be in range.
func (f *File) Images(dst []byte, index []int) error {
	each := f.header.Each
	for b := 0; b < len(index); {
		n := 1
		for b+n < len(index) && index[b+n] == index[b]+n {
			n++
		}
		if _, err := f.file.ReadAt(dst[b*each:(b+n)*each], f.at.images+int64(index[b])*int64(each)); err != nil {
			return fmt.Errorf("reading image %d of %s: %w", index[b], f.file.Name(), err)
		}
		b += n
	}
	return nil
}

// Labels reads the labels of image index[b] into dst[b*Factors:]. Indices must be in range.
func (f *File) Labels(dst []int, index []int) error {
	factors := f.header.Factors
	for b := 0; b < len(index); {
		n := 1
		for b+n < len(index) && index[b+n] == index[b]+n {
			n++
		}
		if err := f.labels(dst[b*factors:(b+n)*factors], index[b]); err != nil {
			return err
		}
		b += n
	}
	return nil
}

// labels fills dst with the labels of consecutive images from first on.
func (f *File) labels(dst []int, first int) error {
	b := make([]byte, 2*len(dst))
	if _, err := f.file.ReadAt(b, f.at.labels+2*int64(first)*int64(f.header.Factors)); err != nil {
		return fmt.Errorf("reading the labels of image %d of %s: %w", first, f.file.Name(), err)
	}
	for i := range dst {
		dst[i] = int(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return nil
}

// Find returns the first image with these labels that will accepts; found is false if there is none.
func (f *File) Find(labels []int, will func(index int) bool) (index int, found bool, err error) {
	have := make([]int, f.header.Factors)
	lo, hi := 0, f.header.Len // the images before lo come before labels, those from hi on do not
	for lo < hi {
		mid := (lo + hi) / 2
		i, err := f.ordered(mid)
		if err != nil {
			return 0, false, err
		}
		if err := f.labels(have, i); err != nil {
			return 0, false, err
		}
		if slices.Compare(have, labels) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < f.header.Len; lo++ {
		i, err := f.ordered(lo)
		if err == nil {
			err = f.labels(have, i)
		}
		if err != nil || !slices.Equal(have, labels) {
			return 0, false, err
		}
		if will(i) {
			return i, true, nil
		}
	}
	return 0, false, nil
}

// ordered returns the image at a place in the order of labels.
func (f *File) ordered(place int) (int, error) {
	var b [4]byte
	if _, err := f.file.ReadAt(b[:], f.at.order+4*int64(place)); err != nil {
		return 0, fmt.Errorf("reading the order of %s: %w", f.file.Name(), err)
	}
	i := int(binary.LittleEndian.Uint32(b[:]))
	if i >= f.header.Len {
		return 0, fmt.Errorf("the order of %s is damaged: there is no image %d", f.file.Name(), i)
	}
	return i, nil
}

// Check compares every block of images with its checksum. progress receives the number of images done.
func (f *File) Check(ctx context.Context, progress func(done int)) error {
	sums := make([]byte, 4*f.header.blocks())
	if _, err := f.file.ReadAt(sums, f.at.sums); err != nil {
		return fmt.Errorf("reading the checksums of %s: %w", f.file.Name(), err)
	}
	buf := make([]byte, block*f.header.Each)
	for first := 0; first < f.header.Len; first += block {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("checking %s: %w", f.file.Name(), err)
		}
		n := min(block, f.header.Len-first)
		b := buf[:n*f.header.Each]
		if _, err := f.file.ReadAt(b, f.at.images+int64(first)*int64(f.header.Each)); err != nil {
			return fmt.Errorf("reading image %d of %s: %w", first, f.file.Name(), err)
		}
		if crc32.Checksum(b, castagnoli) != binary.LittleEndian.Uint32(sums[first/block*4:]) {
			return fmt.Errorf("%s is damaged: the checksum of images %d to %d does not match; remove the dataset, then add it again", f.file.Name(), first, first+n-1)
		}
		progress(first + n)
	}
	return nil
}
