package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Reader reads rows of a dataset. Reading in order is fastest: chunks that span many rows are then inflated once, row by row. A Reader is
// for one goroutine, but several readers of one dataset may be used concurrently.
type Reader struct {
	d       *Dataset
	columns []*column // if chunks span many rows: one for each chunk of a band
	workers []*column // if chunks span few rows: one for each worker
}

// Reader returns a new reader.
func (d *Dataset) Reader() *Reader { return &Reader{d: d} }

// column is the state of reading one chunk, which covers the rows of one band and a part of each row.
type column struct {
	number int // of the chunk
	row    int // next row, relative to the band's first
	src    io.Reader
	z      inflater
	slab   []byte // rows of the chunk before they are copied to their places
	runs   []run
	length int // bytes of each run
}

// run is a piece that is contiguous both in the chunk's part of a row and in the row.
type run struct{ from, to int }

// blockBytes is the approximate number of bytes to read at once: enough work to share among cores, but small enough for their caches.
const blockBytes = 4 << 20

// Block returns the best number of rows to read at once.
func (d *Dataset) Block() int {
	return min(512, max(1, blockBytes/max(1, d.RowBytes())), max(1, d.Len()))
}

// Read fills dst with whole rows from row first on.
func (r *Reader) Read(dst []byte, first int) error {
	d := r.d
	each := d.RowBytes()
	if each == 0 || len(dst)%each != 0 || first < 0 || first+len(dst)/each > d.Len() {
		panic(fmt.Sprintf("hdf5: %d bytes for rows of %d from %d of %d", len(dst), each, first, d.Len()))
	}
	for len(dst) > 0 {
		n := len(dst) / each
		if d.layout.chunk != nil && d.layout.chunk[0] >= d.Block() {
			n = min(n, d.layout.chunk[0]-first%d.layout.chunk[0]) // to the end of the band
		}
		if err := r.block(dst[:n*each], first, n); err != nil {
			return fmt.Errorf("%s: dataset %q, rows %d to %d: %w", d.file.path, d.Path, first, first+n-1, err)
		}
		dst, first = dst[n*each:], first+n
	}
	return nil
}

func (r *Reader) block(dst []byte, first, n int) error {
	l := &r.d.layout
	switch {
	case l.chunk != nil:
		return r.chunks(dst, first, n)
	case l.compact != nil:
		copy(dst, l.compact[first*r.d.RowBytes():])
		return nil
	case l.address == undefined:
		r.d.unwritten(dst)
		return nil
	}
	_, err := r.d.file.at.ReadAt(dst, int64(l.address)+int64(first)*int64(r.d.RowBytes()))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// unwritten fills dst with the fill value.
func (d *Dataset) unwritten(dst []byte) {
	if len(bytes.Trim(d.fill, "\x00")) == 0 {
		clear(dst)
		return
	}
	for len(dst) >= len(d.fill) {
		dst = dst[copy(dst, d.fill):]
	}
}

// chunks reads n rows in parallel: by column if they are in one band, else by band.
func (r *Reader) chunks(dst []byte, first, n int) error {
	d := r.d
	band, columns := d.layout.chunk[0], product(d.layout.grid[1:])
	top, last := first/band, (first+n-1)/band
	if top == last && columns > 1 {
		r.columns = grow(r.columns, columns)
		return parallel(columns, func(_, c int) error {
			return d.spread(r.columns[c], top*columns+c, dst, first, first, first+n)
		})
	}
	r.workers = grow(r.workers, runtime.GOMAXPROCS(0))
	return parallel(last-top+1, func(worker, b int) error {
		from, to := max(first, (top+b)*band), min(first+n, (top+b+1)*band)
		for c := range columns {
			if err := d.spread(r.workers[worker], (top+b)*columns+c, dst, first, from, to); err != nil {
				return err
			}
		}
		return nil
	})
}

func grow(columns []*column, n int) []*column {
	for len(columns) < n {
		columns = append(columns, &column{number: -1})
	}
	return columns
}

// parallel runs the tasks 0 … n−1 on all cores, in groups of neighbours, and returns the first error of every worker. Panics become
// errors.
func parallel(n int, do func(worker, task int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		return guarded(0, 0, n, do)
	}
	group := max(1, n/(4*workers))
	var next atomic.Int64
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for errs[worker] == nil {
				from := int(next.Add(int64(group))) - group
				if from >= n {
					return
				}
				errs[worker] = guarded(worker, from, min(from+group, n), do)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func guarded(worker, from, to int, do func(worker, task int) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is damaged in an unexpected way: %v", r)
		}
	}()
	for task := from; task < to && err == nil; task++ {
		err = do(worker, task)
	}
	return err
}

// spread copies the rows [from, to) of one chunk to their places in dst, which begins with row first.
func (d *Dataset) spread(c *column, number int, dst []byte, first, from, to int) error {
	start := number / product(d.layout.grid[1:]) * d.layout.chunk[0]
	slab := d.chunkBytes() / d.layout.chunk[0]
	if c.number != number || c.row > from-start {
		if err := c.open(d, number); err != nil {
			return d.inChunk(number, err)
		}
	}
	if err := c.skip((from-start-c.row)*slab, d.inChunk); err != nil {
		return err
	}
	each := d.RowBytes()
	for from < to {
		n := min(to-from, max(1, (64<<10)/slab))
		if len(c.slab) < n*slab {
			c.slab = make([]byte, n*slab)
		}
		if c.src == nil {
			d.unwritten(c.slab[:n*slab])
		} else if _, err := io.ReadFull(c.src, c.slab[:n*slab]); err != nil {
			return d.inChunk(number, ended(err))
		}
		for i := range n {
			c.scatter(dst[(from-first+i)*each:(from-first+i+1)*each], c.slab[i*slab:(i+1)*slab])
		}
		from += n
	}
	c.row = to - start
	return d.finish(c, start, slab)
}

// scatter copies the chunk's part of one row to its place in the row.
func (c *column) scatter(row, part []byte) {
	if c.length == 1 {
		for _, r := range c.runs {
			row[r.to] = part[r.from]
		}
		return
	}
	for _, r := range c.runs {
		copy(row[r.to:r.to+c.length], part[r.from:])
	}
}

func ended(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the file is damaged: it inflates to less than a chunk")
	}
	return err
}

func (d *Dataset) inChunk(number int, err error) error {
	i, ok := d.find(number)
	if !ok {
		return fmt.Errorf("chunk %d: %w", number, err)
	}
	return fmt.Errorf("chunk %d at byte %d: %w", number, d.layout.chunks[i].address, err)
}

func (d *Dataset) find(number int) (int, bool) {
	return slices.BinarySearchFunc(d.layout.chunks, number, func(c chunk, n int) int { return c.number - n })
}

// open starts reading a chunk. src stays nil if the chunk was never written.
func (c *column) open(d *Dataset, number int) error {
	columns := product(d.layout.grid[1:])
	if c.number < 0 || c.number%columns != number%columns {
		c.place(d, number%columns)
	}
	c.number, c.row, c.src = -1, 0, nil // kept if opening fails
	if i, ok := d.find(number); ok {
		if err := c.source(d, d.layout.chunks[i]); err != nil {
			return err
		}
	}
	c.number = number
	return nil
}

func (c *column) source(d *Dataset, stored chunk) error {
	if len(d.filters) == 0 {
		c.src = io.NewSectionReader(d.file.at, int64(stored.address), int64(stored.size))
		return nil
	}
	b, err := d.file.bytes(stored.address, uint64(stored.size))
	if err != nil {
		return err
	}
	c.src, c.z, err = d.unfilter(stored, b, c.z)
	return err
}

// place computes the runs of a column of the grid: the contiguous pieces of the chunk's part of a row and their places in the row. Complete
// trailing axes form one piece.
func (c *column) place(d *Dataset, number int) {
	size, shape, full := d.layout.chunk, d.Shape, len(d.Shape)-1
	c.length = d.Size
	for ; full > 0 && size[full] == shape[full]; full-- {
		c.length *= shape[full]
	}
	at := make([]int, len(shape)) // first element of the chunk
	for k := len(shape) - 1; k > 0; k-- {
		at[k] = number % d.layout.grid[k] * size[k]
		number /= d.layout.grid[k]
	}
	from, to := c.length, c.length // strides of axis full
	c.runs = append(c.runs[:0], run{})
	if full > 0 {
		c.runs[0].to = at[full] * to
		c.length *= min(size[full], shape[full]-at[full])
	}
	for k := full - 1; k > 0; k-- {
		from, to = from*size[k+1], to*shape[k+1]
		inner := slices.Clone(c.runs)
		c.runs = c.runs[:0]
		for i := range min(size[k], shape[k]-at[k]) {
			for _, r := range inner {
				c.runs = append(c.runs, run{r.from + i*from, r.to + (at[k]+i)*to})
			}
		}
	}
}

// skip skips n bytes.
func (c *column) skip(n int, wrap func(int, error) error) error {
	if n == 0 || c.src == nil {
		return nil
	}
	var err error
	if s, ok := c.src.(io.Seeker); ok {
		_, err = s.Seek(int64(n), io.SeekCurrent)
	} else {
		_, err = io.CopyN(io.Discard, c.src, int64(n))
	}
	if err != nil {
		return wrap(c.number, ended(err))
	}
	return nil
}

// finish verifies, after the last row, that an inflated chunk has the right length and checksum.
func (d *Dataset) finish(c *column, start, slab int) error {
	if c.src == nil || start+c.row < min(d.Len(), start+d.layout.chunk[0]) || c.src != io.Reader(c.z) {
		return nil
	}
	beyond := (d.layout.chunk[0] - c.row) * slab // rows beyond the edge of the array
	n, err := io.CopyN(io.Discard, c.src, int64(beyond)+1)
	switch {
	case err == io.EOF && n == int64(beyond):
		return nil
	case err == nil:
		err = errors.New("the file is damaged: it inflates to more than a chunk")
	}
	return d.inChunk(c.number, ended(err))
}
