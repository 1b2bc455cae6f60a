// Package wandb reads the transaction log of a Weights & Biases run, run-ID.wandb: its numeric history and its configuration.
//
// The log uses LevelDB's record format with a different header and CRC-32 (IEEE). Field numbers are those of wandb_internal.proto.
package wandb

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"slotscope/model/format/protobuf"
)

const (
	magic      = ":W&B\xe1\xbe\x00" // name, 0xBEE1, version 0
	blockSize  = 32 << 10
	headSize   = 7 // u32 checksum, u16 length, u8 kind
	maxRecord  = 64 << 20
	fullRecord = 1
	first      = 2
	middle     = 3
	last       = 4
)

// Log is the recorded data of a run, without its history.
type Log struct {
	Name   string // display name
	ID     string
	Config map[string]any // string, float64 or bool
	Ended  bool
	Failed bool // whether the exit code was not 0
}

// Row is one step of the history.
type Row struct {
	Step    int
	Seconds float64 // since 1970; 0 if unknown
	Values  map[string]float64
}

// Read reads a log. An incomplete last record is ignored, since it is still being written. A damaged record stops reading with an error that
// says where it is.
func Read(path string, yield func(Row)) (Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Log{}, errors.Join(fmt.Errorf("%s is not a regular file", path), err)
	}
	l := Log{Config: map[string]any{}}
	if err := l.read(bufio.NewReaderSize(f, 8*blockSize), yield); err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

func (l *Log) read(r io.Reader, yield func(Row)) error {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		return errors.New("not a .wandb file of version 0")
	}
	var record []byte
	for at := int64(len(magic)); ; {
		if left := blockSize - at%blockSize; left < headSize { // too short for a record: padding
			if _, err := io.CopyN(io.Discard, r, left); err != nil {
				return nil
			}
			at += left
		}
		kind, content, err := part(r, at)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		at += int64(headSize + len(content))
		if kind == fullRecord || kind == first {
			record = record[:0]
		}
		if len(record)+len(content) > maxRecord {
			return fmt.Errorf("byte %d: a record exceeds the limit of %d bytes", at, maxRecord)
		}
		record = append(record, content...)
		if kind == fullRecord || kind == last {
			if err := l.record(record, yield); err != nil {
				return fmt.Errorf("the record that ends at byte %d: %w", at, err)
			}
		}
	}
}

// part reads one physical record.
func part(r io.Reader, at int64) (kind byte, content []byte, err error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	kind = head[6]
	if head == [headSize]byte{} {
		return 0, nil, io.EOF // zero padding: the rest is not written yet
	}
	if kind < fullRecord || kind > last {
		return 0, nil, fmt.Errorf("byte %d: unknown record kind %d; the file is damaged", at, kind)
	}
	content = make([]byte, binary.LittleEndian.Uint16(head[4:]))
	if _, err := io.ReadFull(r, content); err != nil {
		return 0, nil, err
	}
	sum := crc32.Update(crc32.ChecksumIEEE(head[6:]), crc32.IEEETable, content)
	if sum != binary.LittleEndian.Uint32(head[:]) {
		return 0, nil, fmt.Errorf("byte %d: the checksum of a record is wrong; the file is damaged", at)
	}
	return kind, content, nil
}

// Fields of Record.
const (
	historyField = 2
	configField  = 5
	runField     = 17
	exitField    = 18
)

func (l *Log) record(b []byte, yield func(Row)) error {
	return fields(b, func(field protowire.Number, _ uint64, content []byte) error {
		switch field {
		case historyField:
			return history(content, yield)
		case configField:
			return l.config(content)
		case runField:
			return fields(content, func(field protowire.Number, _ uint64, content []byte) error {
				switch field {
				case 1:
					l.ID = clean(content)
				case 4:
					return l.config(content)
				case 8:
					l.Name = clean(content)
				}
				return nil
			})
		case exitField:
			l.Ended = true
			return fields(content, func(field protowire.Number, number uint64, _ []byte) error {
				l.Failed = l.Failed || field == 1 && number != 0
				return nil
			})
		}
		return nil
	})
}

// config reads the scalars of a ConfigRecord.
func (l *Log) config(b []byte) error {
	return items(b, 1, func(key, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		if wrapped, ok := v.(map[string]any); ok { // {"desc": …, "value": …}
			v = wrapped["value"]
		}
		switch v.(type) {
		case string, float64, bool:
			l.Config[key] = v
		}
	})
}

func history(b []byte, yield func(Row)) error {
	row, step := Row{Step: -1, Values: map[string]float64{}}, -1
	err := fields(b, func(field protowire.Number, _ uint64, content []byte) error {
		if field != 2 {
			return nil
		}
		return fields(content, func(field protowire.Number, number uint64, _ []byte) error {
			if field == 1 {
				step = int(int64(number))
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	err = items(b, 1, func(key, text string) {
		v, ok := number(text)
		switch {
		case !ok:
		case key == "_step":
			row.Step = int(v)
		case key == "_timestamp":
			row.Seconds = v
		case !strings.HasPrefix(key, "_"):
			row.Values[key] = v
		}
	})
	if row.Step < 0 {
		row.Step = max(0, step)
	}
	if err == nil && len(row.Values) > 0 {
		yield(row)
	}
	return err
}

// number parses JSON numbers, and NaN and infinities as wandb writes them.
func number(text string) (float64, bool) {
	switch strings.Trim(text, `"`) {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsInf(v, 0)
}

// items visits the items of a history or configuration: 1 key, 2 nested key, 16 value as JSON.
func items(b []byte, of protowire.Number, visit func(key, text string)) error {
	return fields(b, func(field protowire.Number, _ uint64, content []byte) error {
		if field != of {
			return nil
		}
		var nested []string
		key, text := "", ""
		err := fields(content, func(field protowire.Number, _ uint64, content []byte) error {
			switch field {
			case 1:
				key = clean(content)
			case 2:
				nested = append(nested, clean(content))
			case 16:
				text = string(content)
			}
			return nil
		})
		if key == "" {
			key = strings.Join(nested, "/")
		}
		if err == nil && key != "" {
			visit(key, text)
		}
		return err
	})
}

func clean(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

var errProto = errors.New("not a record of wandb_internal.proto; the file is damaged")

func fields(b []byte, visit protobuf.Visit) error { return protobuf.Fields(b, errProto, visit) }
