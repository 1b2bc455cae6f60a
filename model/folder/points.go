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
	pointsBuffer = 64 << 10 // maximum bytes buffered by an appender
	tailChunk    = 1 << 20  // maximum bytes read by one call of Follow; also the maximum line length
)

// Appender appends points to a run's points.jsonl. Only the holder of the lock may have one. It is not safe for concurrent use.
type Appender struct {
	file   *os.File
	buf    []byte // complete lines
	header *header
	lines  int            // lines since the header
	points int            // points appended since the header, or since the file was opened
	seen   map[string]int // number of them by series
}

// Points opens points.jsonl for appending. It removes an incomplete last line left by a killed process.
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

// lastNewline is the offset after the last complete line.
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

// DamagedPoints counts the complete lines of points.jsonl that are damaged or not points: measured steps that are lost.
func (f *Folder) DamagedPoints() (int, error) {
	d, err := f.CountDamage(Damage{})
	return d.Lines, err
}

// Damage is the number of damaged lines of points.jsonl, up to an offset.
type Damage struct {
	Lines  int
	file   fs.FileInfo // the file read; nil before the first count
	offset int64       // in bytes
	header *header     // last header before offset
}

// CountDamage continues an earlier count, or restarts it if the file was replaced.
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
	if err != io.EOF { // the rest has no line end, because it is being written
		return d, fmt.Errorf("read %s: %w", f.path(pointsFile), bare(err))
	}
	return d, nil
}

// Flush writes the buffer to the file, so that readers see the points and a kill of this process cannot lose them. After an error the
// remaining points stay in the buffer, and the next Flush continues where this one stopped.
func (a *Appender) Flush() error {
	n, err := a.file.Write(a.buf)
	a.buf = a.buf[:copy(a.buf, a.buf[n:])]
	if err != nil {
		return fmt.Errorf("write %s: %w", a.file.Name(), bare(err))
	}
	return nil
}

// Sync flushes, and waits until the points are on disk.
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

// LastPoint is the step of the last readable point; 0 if there is none.
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
		points, _ := parse(file, piece, start) // DamagedPoints counts damaged lines
		if len(points) > 0 {
			return points[len(points)-1].Step, nil
		}
		if size >= end {
			return 0, nil
		}
	}
}

// TruncatePoints drops all points after step, and unreadable lines, by replacing the file; no appender may be open. Afterwards the steps
// are ascending without repeats.
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

// copyUpTo copies the lines of points.jsonl with ascending steps up to step.
func copyUpTo(w io.Writer, r io.Reader, step int) error {
	in := bufio.NewReaderSize(r, pointsBuffer)
	var lines reader
	var header []byte // not copied yet, because no line under it was
	for last := 0; ; {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil // the rest has no line end: incomplete
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

// Cursor is a position in one version of points.jsonl; the zero Cursor is the start of any version.
type Cursor struct {
	Offset int64  // of the next unread byte; always the start of a line
	Mark   uint64 // hash of the bytes before it, which include checksums and times of points, so that a rewritten file differs
}

// Tail reads the complete lines from offset on, at most about a megabyte, and returns the next offset. It skips lines that are not points;
// the error, returned together with the points, names them.
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

// Each calls visit for the readable points by ascending step. DamagedPoints counts the lines that it skips.
func (f *Folder) Each(visit func(model.Point) error) error {
	last := 0
	for offset := int64(0); ; {
		points, next, err := f.Tail(offset)
		if err != nil && next == offset { // otherwise damaged lines, after which it continues
			return err
		}
		for _, p := range points {
			if p.Step <= last { // a resumed run repeats steps
				continue
			}
			last = p.Step
			if err := visit(p); err != nil {
				return err
			}
		}
		if next == offset {
			return nil
		}
		offset = next
	}
}

// Series lists the sorted names of the series in the points; it ignores damaged lines.
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

// Follow is Tail for a reader that survives rewrites: if the file no longer contains what was read up to the cursor, rewound is true,
// nothing is read, and next is the start.
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

// markAt hashes the last bytes before offset; 0 at the start, and past the end of a file that has become shorter.
func markAt(file *os.File, offset int64) (uint64, error) {
	start := max(0, offset-512) // longer than a line of points
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

// parse parses complete lines starting at offset; the error names the first line that is not a point, and the number of others.
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
