package folder

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
)

// points.jsonl has three kinds of lines, all of them JSON:
//
//	{"series":["recon","total"],"doubles":["total"],"time":"2026-01-02T03:04:05Z","crc":"0123abcd"}
//	[12,0.25,0.731825,"NaN","4567cdef"]
//	{"step":12,"time":"2026-01-02T03:04:05.25Z","values":{"recon":0.7318249940872192,"total":"NaN"},"crc":"89ab0123"}
//
// A header names the values of the arrays after it. An array is a point: its step, its time in seconds after the header's time, and a value
// for each series, null if missing; trailing missing values are omitted. Values are float32, except for the series in doubles; both are
// written with the fewest digits that parse back to the same value. An object with a step is also a point: every point of earlier versions,
// and points that do not fit the current header. crc is the CRC-32C of the preceding bytes of the line, without the comma, as eight hex
// digits; for an array it continues its header's checksum, so that no array is read with the names of another header. Objects of the
// earliest versions have no crc.
const (
	headerEvery = 256 // lines between headers: keeps the names near any position, and bounds the points lost to a damaged header
	headerMost  = 256 // maximum series per header
	searchPiece = 128 << 10
)

// header names the values of arrays.
type header struct {
	Series  []string  `json:"series"`
	Doubles []string  `json:"doubles,omitempty"` // those of Series with float64 values
	Time    time.Time `json:"time"`

	at     map[string]int // index in Series by name
	double []bool         // by index
	sum    uint32
}

var headerStart = []byte(`{"series":`)

// index fills at and double.
func (h *header) index() {
	h.at, h.double = make(map[string]int, len(h.Series)), make([]bool, len(h.Series))
	for i, name := range h.Series {
		h.at[name] = i
		h.double[i] = slices.Contains(h.Doubles, name)
	}
}

// holds reports whether an array under this header can represent a point without loss.
func (h *header) holds(p model.Point) bool {
	if h == nil || !h.Time.Add(p.Time.Sub(h.Time)).Equal(p.Time) {
		return false
	}
	for name, v := range p.Values {
		i, named := h.at[name]
		if !named || !h.double[i] && !isFloat32(v) {
			return false
		}
	}
	return true
}

func isFloat32(v float64) bool { return float64(float32(v)) == v || math.IsNaN(v) }

// Append adds one point; it is written to the file, as a whole line, when the buffer fills or at Flush.
func (a *Appender) Append(p model.Point) error {
	p.Time = p.Time.Round(0).UTC() // without the monotonic clock reading, which is not stored
	line, err := a.line(p)
	if err != nil {
		return fmt.Errorf("write %s: step %d: %w", a.file.Name(), p.Step, err)
	}
	a.buf = append(append(a.buf, line...), '\n')
	a.lines++
	a.points++
	for name := range p.Values {
		a.seen[name]++
	}
	if len(a.buf) >= pointsBuffer {
		return a.Flush()
	}
	return nil
}

// line formats a point, after a new header if needed: often enough to be found, but not so often that series measured in turn produce
// mostly headers.
func (a *Appender) line(p model.Point) ([]byte, error) {
	var b []byte
	if a.header == nil || a.lines >= headerEvery || !a.header.holds(p) && a.lines >= len(a.header.Series) {
		h, text, err := a.nextHeader(p)
		if err != nil {
			return nil, err
		}
		b = append(text, '\n')
		a.header, a.lines, a.points = h, 1, 0
		clear(a.seen)
	}
	if array, suits := a.header.array(p); suits {
		return append(b, array...), nil
	}
	object, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	object, _ = sealed(object)
	return append(b, object...), nil
}

// nextHeader names the series of the current header and of a point. Series that every point has come first, so that most arrays end early.
func (a *Appender) nextHeader(p model.Point) (*header, []byte, error) {
	rare := func(name string) int {
		if _, here := p.Values[name]; here && a.seen[name] == a.points {
			return 0
		}
		return 1
	}
	h := &header{Time: p.Time}
	names := maps.Clone(p.Values)
	double := map[string]bool{}
	if a.header != nil {
		for i, name := range a.header.Series {
			double[name] = a.header.double[i]
			if _, here := names[name]; !here {
				names[name] = 0
			}
		}
	}
	h.Series = slices.SortedFunc(maps.Keys(names), func(x, y string) int { return cmp.Or(rare(x)-rare(y), strings.Compare(x, y)) })
	h.Series = h.Series[:min(len(h.Series), headerMost)]
	for _, name := range h.Series {
		if double[name] || !isFloat32(p.Values[name]) {
			h.Doubles = append(h.Doubles, name)
		}
	}
	h.index()
	text, err := json.Marshal(h)
	if err != nil {
		return nil, nil, err
	}
	text, h.sum = sealed(text)
	return h, text, nil
}

// array formats a point; it returns false if the header cannot hold the point or most values would be null.
func (h *header) array(p model.Point) ([]byte, bool) {
	if !h.holds(p) {
		return nil, false
	}
	b := strconv.AppendInt([]byte{'['}, int64(p.Step), 10)
	b = appendSeconds(append(b, ','), p.Time.Sub(h.Time))
	absent, nulls := 0, 0
	for i, name := range h.Series {
		v, here := p.Values[name]
		if !here {
			absent++
			continue
		}
		nulls += absent
		for ; absent > 0; absent-- {
			b = append(b, ",null"...)
		}
		b = appendValue(append(b, ','), v, h.double[i])
	}
	sum := crc32.Update(h.sum, crcTable, b)
	return fmt.Appendf(b, `,"%08x"]`, sum), nulls <= len(p.Values)
}

// appendValue appends a number with the fewest sufficient digits; non-finite values become strings.
func appendValue(b []byte, v float64, double bool) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(b, strconv.FormatFloat(v, 'g', -1, 64))
	}
	bits := 32
	if double {
		bits = 64
	}
	from := len(b)
	b = strconv.AppendFloat(b, v, 'e', -1, bits)
	if math.Abs(v) < 1e-6 && v != 0 || math.Abs(v) >= 1e21 {
		return b
	}
	plain := strconv.AppendFloat(nil, v, 'f', -1, bits)
	if len(plain) > len(b)-from {
		return b
	}
	return append(b[:from], plain...)
}

// appendSeconds appends a duration in seconds, to the nanosecond.
func appendSeconds(b []byte, d time.Duration) []byte {
	ns := uint64(d)
	if d < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendUint(b, ns/1e9, 10)
	if rest := ns % 1e9; rest > 0 {
		b = append(b, strings.TrimRight(fmt.Sprintf(".%09d", rest), "0")...)
	}
	return b
}

// seconds parses the output of appendSeconds.
func seconds(s string) (time.Duration, error) {
	number, minus := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(number, ".")
	sec, err := strconv.ParseUint(whole, 10, 34)
	if err != nil || len(fraction) > 9 {
		return 0, fmt.Errorf("invalid time %s", s)
	}
	ns, err := strconv.ParseUint(fraction+"000000000"[len(fraction):], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid time %s", s)
	}
	if ns += sec * 1e9; minus {
		ns = -ns
	}
	return time.Duration(ns), nil
}

// crcForm is the end of an object.
const crcForm = `,"crc":"%08x"}`

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// crcLength is the length of a formatted crcForm.
var crcLength = len(fmt.Sprintf(crcForm, 0))

// sealed adds a checksum to an object.
func sealed(object []byte) ([]byte, uint32) {
	body := object[:len(object)-1] // without the closing brace
	sum := crc32.Checksum(body, crcTable)
	return fmt.Appendf(body, crcForm, sum), sum
}

var errSum = errors.New("it is damaged: its checksum does not match")

// unsealed removes the checksum from an object; has is false if there is none.
func unsealed(line []byte) (object []byte, sum uint32, has bool, err error) {
	at := len(line) - crcLength
	if at <= 0 || !bytes.HasPrefix(line[at:], []byte(`,"crc":"`)) {
		return line, 0, false, nil
	}
	body := line[:at:at]
	sum = crc32.Checksum(body, crcTable)
	if fmt.Sprintf(crcForm, sum) != string(line[at:]) {
		return nil, 0, true, errSum
	}
	return append(body, '}'), sum, true, nil
}

// reader reads lines in order.
type reader struct {
	header *header
	before func() (*header, error) // finds the header when reading starts inside a file; may be nil
}

// line parses a line; isPoint is false for a header. The error means that the line is damaged or is neither.
func (r *reader) line(line []byte) (p model.Point, isPoint bool, err error) {
	line = bytes.TrimRight(line, "\r\n")
	switch {
	case bytes.HasPrefix(line, []byte{'['}):
		if r.header == nil && r.before != nil {
			if r.header, err = r.before(); err != nil {
				return p, false, err
			}
			r.before = nil
		}
		p, err = r.header.point(line)
	case bytes.HasPrefix(line, headerStart):
		h, err := parseHeader(line)
		if err == nil {
			r.header = h
		}
		return p, false, err
	default:
		p, err = parseObject(line)
	}
	return p, err == nil, err
}

func parseHeader(line []byte) (*header, error) {
	object, sum, has, err := unsealed(line)
	if err != nil {
		return nil, err
	}
	h := &header{sum: sum}
	if err := json.Unmarshal(object, h); err != nil {
		return nil, err
	}
	h.index()
	if !has || len(h.at) < len(h.Series) {
		return nil, errors.New("it is damaged: a header without a checksum, or with a series named twice")
	}
	return h, nil
}

// point parses an array.
func (h *header) point(line []byte) (p model.Point, err error) {
	if h == nil {
		return p, errors.New("no header names its values")
	}
	const ending = `,"01234567"]`
	at := len(line) - len(ending)
	if at <= 0 {
		return p, errSum
	}
	var sum [8]byte
	hex.Encode(sum[:], binary.BigEndian.AppendUint32(nil, crc32.Update(h.sum, crcTable, line[:at])))
	if string(line[at:]) != `,"`+string(sum[:])+`"]` {
		return p, errSum
	}
	step, rest, _ := strings.Cut(string(line[1:at]), ",")
	if p.Step, err = strconv.Atoi(step); err != nil || p.Step < 1 {
		return p, fmt.Errorf("step %s is invalid; steps start at 1", step)
	}
	after, rest, more := strings.Cut(rest, ",")
	since, err := seconds(after)
	p.Time, p.Values = h.Time.Add(since), make(map[string]float64, len(h.Series))
	for i := 0; more && err == nil; i++ {
		if i == len(h.Series) {
			return p, fmt.Errorf("it has more than %d values", i)
		}
		var value string
		if value, rest, more = strings.Cut(rest, ","); value != "null" {
			p.Values[h.Series[i]], err = parseValue(value, h.double[i])
		}
	}
	return p, err
}

func parseValue(s string, double bool) (float64, error) {
	if len(s) >= 2 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	bits := 32
	if double {
		bits = 64
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number", s)
	}
	return v, nil
}

// parseObject parses a point written as an object.
func parseObject(line []byte) (p model.Point, err error) {
	object, _, has, err := unsealed(line)
	if err != nil {
		return p, err
	}
	if !has {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(object, &keys); err != nil {
			return p, err
		}
		for key := range keys {
			if key != "step" && key != "time" && key != "values" {
				return p, fmt.Errorf("it is damaged: unknown key %q", key) // such as crc with a letter changed
			}
		}
	}
	err = json.Unmarshal(object, &p)
	return p, err
}

// headerBefore returns the last complete header within the given number of bytes before offset, and the number of lines after it; nil if
// there is none.
func headerBefore(file *os.File, offset, within int64) (h *header, lines int, err error) {
	for size := int64(searchPiece); ; size *= 2 {
		size = min(size, within)
		start := max(0, offset-size)
		piece := make([]byte, offset-start)
		if _, err := file.ReadAt(piece, start); err != nil && err != io.EOF {
			return nil, 0, fmt.Errorf("read %s: %w", file.Name(), bare(err))
		}
		if start > 0 {
			piece = piece[bytes.IndexByte(piece, '\n')+1:]
		}
		for line := range bytes.Lines(piece) {
			lines++
			if !bytes.HasPrefix(line, headerStart) {
				continue
			}
			if found, err := parseHeader(bytes.TrimRight(line, "\r\n")); err == nil {
				h, lines = found, 1
			}
		}
		if h != nil || start == 0 || size == within {
			return h, lines, nil
		}
	}
}
