package pack

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Part is the suffix of an incomplete file.
const Part = ".part"

// Limits between two syncs, which bound the work lost when the process is killed.
const (
	syncBytes = 256 << 20
	syncTime  = 2 * time.Second
)

// Writer writes a packed file from its first image to its last. It is for one goroutine.
type Writer struct {
	dir     *os.Root
	name    string
	file    file
	header  Header
	at      plan
	done    int // images written
	synced  int // images synced to disk
	sum     uint32
	pending int        // bytes since the last sync began
	last    time.Time  // time of that sync
	syncing chan error // result of that sync; nil if none is in progress
}

// file is the part of *os.File that a Writer uses.
type file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

// NewWriter starts the file of that name in dir, or resumes the one that an earlier Writer with the same header left; Done returns the
// next image. labels is [Len, Factors].
func NewWriter(dir *os.Root, name string, h Header, labels []uint16) (*Writer, error) {
	if len(labels) != h.Len*h.Factors {
		panic(fmt.Sprintf("pack: %d labels for %d × %d", len(labels), h.Len, h.Factors))
	}
	encoded, err := h.encode()
	if err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(name+Part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, name: name, file: f, header: h, at: h.plan(len(encoded)), last: time.Now()}
	if w.takeUp(encoded) {
		return w, nil
	}
	err = f.Truncate(0)
	if err == nil {
		err = w.begin(encoded, labels)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// takeUp reports whether the file holds the beginning of the same dataset; if so, writing resumes after its last complete block.
func (w *Writer) takeUp(encoded []byte) bool {
	_, old, done, err := readPreamble(w.file)
	if err != nil || !bytes.Equal(old, encoded) {
		return false
	}
	if done < w.header.Len {
		done -= done % block
	}
	w.done, w.synced = done, done
	return true
}

// begin writes everything before the images.
func (w *Writer) begin(encoded []byte, labels []uint16) error {
	if _, err := w.file.WriteAt(make([]byte, w.at.images), 0); err != nil {
		return err
	}
	if w.header.Factors > 0 {
		if err := w.writeLabels(labels); err != nil {
			return err
		}
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	_, err := w.file.WriteAt(preamble(encoded, 0), 0) // last: a file without it is started over
	return err
}

func (w *Writer) writeLabels(labels []uint16) error {
	b := make([]byte, 0, 2*len(labels))
	for _, c := range labels {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	if _, err := w.file.WriteAt(b, w.at.labels); err != nil {
		return err
	}
	b = make([]byte, 0, 4*w.header.Len)
	for _, i := range sortedByLabels(labels, w.header.Len, w.header.Factors) {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	_, err := w.file.WriteAt(b, w.at.order)
	return err
}

// sortedByLabels returns the images in lexical order of their labels, and in their own order for equal labels.
func sortedByLabels(labels []uint16, length, factors int) []uint32 {
	order := make([]uint32, length)
	for i := range order {
		order[i] = uint32(i)
	}
	row := func(i uint32) []uint16 { return labels[int(i)*factors : (int(i)+1)*factors] }
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(slices.Compare(row(a), row(b)), cmp.Compare(a, b)) })
	return order
}

// Done returns the number of images written, which is the index of the next.
func (w *Writer) Done() int { return w.done }

// Write appends images, [n, Each].
func (w *Writer) Write(images []byte) error {
	each := w.header.Each
	if each == 0 || len(images)%each != 0 || w.done+len(images)/each > w.header.Len {
		panic(fmt.Sprintf("pack: %d bytes are not the next images of %d bytes each", len(images), each))
	}
	for len(images) > 0 {
		n := min(block-w.done%block, len(images)/each)
		if err := w.writeSome(images[:n*each], n); err != nil {
			return err
		}
		images = images[n*each:]
	}
	return nil
}

// writeSome appends n images of one block.
func (w *Writer) writeSome(images []byte, n int) error {
	if _, err := w.file.WriteAt(images, w.at.images+int64(w.done)*int64(w.header.Each)); err != nil {
		return err
	}
	if w.done%block == 0 {
		w.sum = 0
	}
	w.sum = crc32.Update(w.sum, castagnoli, images)
	if last := w.done + n; last%block == 0 || last == w.header.Len {
		at := w.at.sums + 4*int64(w.done/block)
		if _, err := w.file.WriteAt(binary.LittleEndian.AppendUint32(nil, w.sum), at); err != nil {
			return err
		}
	}
	w.done += n
	if w.pending += len(images); w.pending >= syncBytes || time.Since(w.last) >= syncTime {
		return w.beginSync()
	}
	return nil
}

// beginSync syncs the file in the background. Only one sync runs at a time; if syncBytes more have been written meanwhile, it waits for
// the disk.
func (w *Writer) beginSync() error {
	if w.syncing != nil && len(w.syncing) == 0 && w.pending < syncBytes {
		return nil
	}
	if err := w.endSync(); err != nil {
		return err
	}
	w.pending, w.last, w.syncing = 0, time.Now(), make(chan error, 1)
	go func(done int, ended chan<- error) { ended <- w.sync(done) }(w.done, w.syncing)
	return nil
}

// endSync waits for the sync in progress.
func (w *Writer) endSync() (err error) {
	if w.syncing != nil {
		err, w.syncing = <-w.syncing, nil
	}
	return err
}

// sync syncs the file, then records that the first done images are on disk.
func (w *Writer) sync(done int) error {
	if err := w.file.Sync(); err != nil {
		return err
	}
	if w.synced == done {
		return nil
	}
	w.synced = done
	_, err := w.file.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(done)), 16)
	return err
}

// Finish renames the file to its final name and closes the Writer. All images must have been written.
func (w *Writer) Finish() error {
	if w.header.Each == 0 {
		w.done = w.header.Len
	}
	if w.done != w.header.Len {
		panic(fmt.Sprintf("pack: finished after %d of %d images", w.done, w.header.Len))
	}
	err := w.endSync()
	if err == nil {
		err = w.sync(w.done)
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err = errors.Join(err, w.file.Close()); err != nil {
		return err
	}
	if err := w.dir.Rename(w.name+Part, w.name); err != nil {
		return err
	}
	return syncDir(w.dir)
}

// Close closes the Writer and keeps the written images for another one. It does nothing after Finish.
func (w *Writer) Close() error {
	err := errors.Join(w.endSync(), w.sync(w.done))
	if err = errors.Join(err, w.file.Close()); errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Discard removes the incomplete file of that name in dir, if any.
func Discard(dir *os.Root, name string) error {
	if err := dir.Remove(name + Part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes a rename durable.
func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	d.Sync() // some file systems do not support this and do not need it
	return d.Close()
}
