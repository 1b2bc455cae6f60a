package folder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"

	"slotscope/model"
)

const (
	pointsBuffer = 64 << 10 // bytes that an appender holds back at most
	tailChunk    = 1 << 20  // bytes that one call of Follow reads at most; also the longest line it accepts
)

// Appender adds points to a run's points.jsonl; only the holder of the lock may have one. It is for one goroutine.
type Appender struct {
	file   *os.File
	buf    []byte // whole lines
	header *header
	lines  int            // since the header
	points int            // appended since the header, or since the file was opened
	seen   map[string]int // how many of them have each series
}

// Points opens points.jsonl for appending. A last line that a killed process left incomplete is cut off.
func (f *Folder) Points() (*Appender, error) {
	file, err := f.root.OpenFile(pointsFile, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", f.path(pointsFile), bare(err))
	}
	end, err := lastNewline(file)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("write %s: %w", f.path(pointsFile), bare(err))
	}
	a := &Appender{file: file, seen: map[string]int{}}
	if a.header, a.lines, err = headerBefore(file, end, searchPiece); err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

// lastNewline is the offset just behind the last complete line.
func lastNewline(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	block := make([]byte, 64<<10)
	for end := info.Size(); end > 0; {
		start := max(0, end-int64(len(block)))
		b := block[:end-start]
		if _, err := file.ReadAt(b, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// DamagedPoints counts the complete lines of points.jsonl that are damaged or no points: steps that were measured and are lost.
func (f *Folder) DamagedPoints() (int, error) {
	d, err := f.CountDamage(Damage{})
	return d.Lines, err
}

// Damage is how many lines of points.jsonl were damaged, up to where they were counted.
type Damage struct {
	Lines  int
	file   fs.FileInfo // that was read; nil before the first count
	offset int64       // in bytes
	header *header     // before offset
}

// CountDamage goes on counting from an earlier count, from the beginning where the file was replaced since.
func (f *Folder) CountDamage(d Damage) (Damage, error) {
	file, err := f.root.Open(pointsFile)
	if missing(err) {
		return Damage{}, nil
	}
	if err != nil {
		return Damage{}, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && (d.file == nil || !os.SameFile(d.file, info) || info.Size() < d.offset) {
		d = Damage{file: info}
	}
	if err == nil {
		_, err = file.Seek(d.offset, io.SeekStart)
	}
	in, lines := bufio.NewReaderSize(file, pointsBuffer), reader{header: d.header}
	for err == nil {
		var line []byte
		if line, err = in.ReadBytes('\n'); err != nil {
			break
		}
		d.offset += int64(len(line))
		if _, _, damaged := lines.line(line); damaged != nil {
			d.Lines++
		}
	}
	d.header = lines.header
	if err != io.EOF { // what is left has no line end: it is being written
		return d, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	return d, nil
}

// Flush hands the points to the operating system: readers see them, and a kill of this process cannot lose them.
// After an error the points not yet written stay in the buffer, and the next Flush goes on where this one stopped.
func (a *Appender) Flush() error {
	n, err := a.file.Write(a.buf)
	a.buf = a.buf[:copy(a.buf, a.buf[n:])]
	if err != nil {
		return fmt.Errorf("write %s: %w", a.file.Name(), bare(err))
	}
	return nil
}

// Sync flushes, then waits until the points are on the disk.
func (a *Appender) Sync() error {
	if err := a.Flush(); err != nil {
		return err
	}
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", a.file.Name(), bare(err))
	}
	return nil
}

// Close syncs and closes.
func (a *Appender) Close() error { return errors.Join(a.Sync(), a.file.Close()) }

// LastPoint is the step of the last point that can be read; 0 for none.
func (f *Folder) LastPoint() (step int, err error) {
	file, err := f.root.Open(pointsFile)
	if missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer file.Close()
	end, err := lastNewline(file)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	for size := int64(searchPiece); ; size *= 2 {
		start := max(0, end-size)
		piece := make([]byte, end-start)
		if _, err := file.ReadAt(piece, start); err != nil {
			return 0, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
		}
		if start > 0 {
			cut := bytes.IndexByte(piece, '\n') + 1
			piece, start = piece[cut:], start+int64(cut)
		}
		points, _ := parse(file, piece, start) // damaged lines are counted elsewhere
		if len(points) > 0 {
			return points[len(points)-1].Step, nil
		}
		if size >= end {
			return 0, nil
		}
	}
}

// TruncatePoints drops every point after step, and lines that cannot be read, by replacing the file; no appender may be
// open. Afterwards each remaining step stands once, ascending.
func (f *Folder) TruncatePoints(step int) error {
	old, err := f.root.Open(pointsFile)
	if missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer old.Close()
	return f.replaceWith(pointsFile, func(w *os.File) error {
		out := bufio.NewWriterSize(w, pointsBuffer)
		if err := copyUpTo(out, old, step); err != nil {
			return err
		}
		return out.Flush()
	})
}

// copyUpTo copies the lines of points.jsonl whose steps ascend and stay at or below step.
func copyUpTo(w io.Writer, r io.Reader, step int) error {
	in := bufio.NewReaderSize(r, pointsBuffer)
	var lines reader
	var header []byte // that no line was copied of yet
	for last := 0; ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil // what is left has no line end: torn
		}
		if err != nil {
			return err
		}
		p, isPoint, err := lines.line(line)
		if err == nil && !isPoint {
			header = line
		}
		if err != nil || !isPoint || p.Step <= last || p.Step > step {
			continue
		}
		last = p.Step
		if _, err := w.Write(append(header, line...)); err != nil {
			return err
		}
		header = nil
	}
}

// Cursor is a place in one incarnation of points.jsonl; the zero Cursor is the beginning of any.
type Cursor struct {
	Offset int64  // of the next unread byte; always the beginning of a line
	Mark   uint64 // hash of the bytes before it, which hold a point's checksum, and that its time: a rewritten file has others
}

// Tail reads the complete lines from offset on, at most about a megabyte, and says where to go on.
// Lines that are no points are passed over and named in the error, which comes beside the points.
func (f *Folder) Tail(offset int64) ([]model.Point, int64, error) {
	file, err := f.root.Open(pointsFile)
	if missing(err) {
		return nil, offset, nil
	}
	if err != nil {
		return nil, offset, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer file.Close()
	return tail(file, offset)
}

// Series lists the names of what the points hold, sorted; damaged lines count for nothing.
func (f *Folder) Series() ([]string, error) {
	file, err := f.root.Open(pointsFile)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer file.Close()
	has, lines := map[string]bool{}, bufio.NewReaderSize(file, searchPiece)
	for {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return slices.Sorted(maps.Keys(has)), nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", file.Name(), bare(err))
		case line[0] == '[':
			continue
		case bytes.HasPrefix(line, headerStart):
			if h, err := parseHeader(bytes.TrimRight(line, "\r\n")); err == nil {
				for _, name := range h.Series {
					has[name] = true
				}
			}
		default:
			if p, err := parseObject(bytes.TrimRight(line, "\r\n")); err == nil {
				for name := range p.Values {
					has[name] = true
				}
			}
		}
	}
}

// Follow is Tail for a reader that outlives rewrites: where the file does not hold what was read up to the cursor any
// more, rewound is true, nothing is read, and next is the beginning.
func (f *Folder) Follow(at Cursor) (points []model.Point, next Cursor, rewound bool, err error) {
	file, err := f.root.Open(pointsFile)
	if missing(err) {
		return nil, Cursor{}, at.Offset > 0, nil
	}
	if err != nil {
		return nil, at, false, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	defer file.Close()
	if mark, err := markAt(file, at.Offset); err != nil || mark != at.Mark {
		return nil, Cursor{}, err == nil, err
	}
	points, next.Offset, err = tail(file, at.Offset)
	mark, markErr := markAt(file, next.Offset)
	if markErr != nil {
		return nil, at, false, markErr
	}
	next.Mark = mark
	return points, next, false, err
}

// markAt hashes the last bytes before offset; 0 at the beginning, and behind the end of a file that has become shorter.
func markAt(file *os.File, offset int64) (uint64, error) {
	start := max(0, offset-512) // more than one line of points
	b := make([]byte, offset-start)
	if _, err := file.ReadAt(b, start); err == io.EOF || offset == 0 {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("read %s: %w", file.Name(), bare(err))
	}
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64() >> 1, nil // fits an int64
}

func tail(file *os.File, offset int64) ([]model.Point, int64, error) {
	chunk := make([]byte, tailChunk)
	n, err := file.ReadAt(chunk, offset)
	if err != nil && err != io.EOF {
		return nil, offset, fmt.Errorf("read %s: %w", file.Name(), bare(err))
	}
	end := bytes.LastIndexByte(chunk[:n], '\n') + 1
	if end == 0 && n == len(chunk) {
		return nil, offset + int64(n), fmt.Errorf("%s: skipped the line at byte %d, which is longer than %d bytes", file.Name(), offset, n)
	}
	points, err := parse(file, chunk[:end], offset)
	return points, offset + int64(end), err
}

// parse reads complete lines that begin at offset; the error names the first that is no point, and how many there are.
func parse(file *os.File, content []byte, offset int64) (points []model.Point, err error) {
	lines := reader{before: func() (*header, error) {
		h, _, err := headerBefore(file, offset, math.MaxInt64)
		return h, err
	}}
	var first error
	bad, at := 0, offset
	for line := range bytes.Lines(content) {
		if p, isPoint, e := lines.line(line); isPoint {
			points = append(points, p)
		} else if e != nil {
			if bad++; bad == 1 {
				first = fmt.Errorf("%s: skipped the line at byte %d, which is not a point: %w", file.Name(), at, e)
			}
		}
		at += int64(len(line))
	}
	if bad > 1 {
		first = fmt.Errorf("%w (and %d more lines)", first, bad-1)
	}
	return points, first
}
