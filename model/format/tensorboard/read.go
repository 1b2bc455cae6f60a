package tensorboard

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"slotscope/model/format/protobuf"
)

// Event is a scalar, a set of hyperparameters or a restart.
type Event struct {
	Time    time.Time
	Step    int
	Tag     string  // of a scalar
	Value   float64 // of a scalar
	Restart bool    // whether later events replace scalars from Step on

	HParams map[string]any // string, float64 or bool; nil except for hyperparameters
}

// Read reads the events of a file from offset on and returns the offset after the last complete frame, from which to continue. Images,
// graphs and other tensors are skipped. Reading stops at a damaged frame; the error says where it is.
func Read(path string, offset int64, yield func(Event)) (next int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return offset, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return offset, errors.Join(fmt.Errorf("%s is not a regular file", path), err)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return offset, err
	}
	r := bufio.NewReaderSize(f, 1<<18)
	var buffer []byte
	for {
		content, err := readFrame(r, buffer[:0])
		buffer = content
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errIncomplete):
			return offset, nil
		case err != nil:
			return offset, fmt.Errorf("%s, byte %d: %w", path, offset, err)
		}
		if err := parse(content, yield); err != nil {
			return offset, fmt.Errorf("%s, byte %d: %w", path, offset, err)
		}
		offset += int64(len(content)) + frameHead + frameTail
	}
}

var errProto = errors.New("a frame is not an Event; the file is damaged or not an event file")

func fields(b []byte, visit protobuf.Visit) error { return protobuf.Fields(b, errProto, visit) }

func parse(content []byte, yield func(Event)) error {
	var e Event
	var summary []byte
	err := fields(content, func(field protowire.Number, number uint64, content []byte) error {
		switch field {
		case 1:
			e.Time = timeOf(math.Float64frombits(number))
		case 2:
			e.Step = int(int64(number))
		case 5:
			summary = content
		case 7:
			return fields(content, func(field protowire.Number, number uint64, _ []byte) error {
				e.Restart = e.Restart || field == 1 && number == 1
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if e.Restart {
		yield(e)
		return nil
	}
	return fields(summary, func(field protowire.Number, _ uint64, content []byte) error {
		if field != 1 {
			return nil
		}
		return e.value(content, yield)
	})
}

// timeOf converts seconds since 1970. Implausible values give the zero time.
func timeOf(s float64) time.Time {
	if !(s > 0 && s < 1e11) {
		return time.Time{}
	}
	return time.UnixMicro(int64(s * 1e6)).UTC()
}

// value reads one Summary.Value.
func (e Event) value(content []byte, yield func(Event)) error {
	found := false
	var metadata []byte
	err := fields(content, func(field protowire.Number, number uint64, content []byte) error {
		switch field {
		case 1:
			e.Tag = strings.ToValidUTF8(string(content), "\uFFFD")
		case 2:
			e.Value, found = float64(math.Float32frombits(uint32(number))), true
		case 8:
			var err error
			e.Value, found, err = scalar(content)
			return err
		case 9:
			metadata = content
		}
		return nil
	})
	if err != nil {
		return err
	}
	if strings.HasPrefix(e.Tag, "_hparams_/") {
		return e.hparams(metadata, yield)
	}
	if found && e.Tag != "" {
		yield(e)
	}
	return nil
}

// Types of tensors that hold a scalar.
const (
	dtFloat  = 1
	dtDouble = 2
)

// scalar reads a TensorProto of one float or double. ok is false for any other tensor.
func scalar(tensor []byte) (value float64, ok bool, err error) {
	kind, count := uint64(0), 1
	var raw, floats, doubles []byte
	var single, wide *float64
	err = fields(tensor, func(field protowire.Number, number uint64, content []byte) error {
		switch field {
		case 1:
			kind = number
		case 2: // TensorShapeProto
			return fields(content, func(field protowire.Number, _ uint64, dim []byte) error {
				return fields(dim, func(field protowire.Number, size uint64, _ []byte) error {
					if field == 1 && size != 1 {
						count = 0
					}
					return nil
				})
			})
		case 4:
			raw = content
		case 5:
			if floats = content; content == nil {
				v := float64(math.Float32frombits(uint32(number)))
				single = &v
			}
		case 6:
			if doubles = content; content == nil {
				v := math.Float64frombits(number)
				wide = &v
			}
		}
		return nil
	})
	if err != nil || count != 1 {
		return 0, false, err
	}
	le := binary.LittleEndian
	switch {
	case kind == dtFloat && len(raw) == 4:
		return float64(math.Float32frombits(le.Uint32(raw))), true, nil
	case kind == dtFloat && len(floats) == 4:
		return float64(math.Float32frombits(le.Uint32(floats))), true, nil
	case kind == dtFloat && single != nil:
		return *single, true, nil
	case kind == dtDouble && len(raw) == 8:
		return math.Float64frombits(le.Uint64(raw)), true, nil
	case kind == dtDouble && len(doubles) == 8:
		return math.Float64frombits(le.Uint64(doubles)), true, nil
	case kind == dtDouble && wide != nil:
		return *wide, true, nil
	}
	return 0, false, nil
}

// hparams reads the session start info from a SummaryMetadata.
func (e Event) hparams(metadata []byte, yield func(Event)) error {
	e.HParams = map[string]any{}
	err := path(metadata, []protowire.Number{1, 2, 3, 1}, func(entry []byte) error {
		name, value := "", any(nil)
		err := fields(entry, func(field protowire.Number, _ uint64, content []byte) error {
			switch field {
			case 1:
				name = strings.ToValidUTF8(string(content), "\uFFFD")
			case 2:
				return fields(content, func(field protowire.Number, number uint64, content []byte) error {
					switch field {
					case 2:
						value = math.Float64frombits(number)
					case 3:
						value = strings.ToValidUTF8(string(content), "\uFFFD")
					case 4:
						value = number != 0
					}
					return nil
				})
			}
			return nil
		})
		if name != "" && value != nil {
			e.HParams[name] = value
		}
		return err
	})
	if err == nil && len(e.HParams) > 0 {
		yield(e)
	}
	return err
}

// path visits every message at a path of nested fields.
func path(b []byte, way []protowire.Number, visit func([]byte) error) error {
	if len(way) == 0 {
		return visit(b)
	}
	return fields(b, func(field protowire.Number, _ uint64, content []byte) error {
		if field != way[0] || content == nil {
			return nil
		}
		return path(content, way[1:], visit)
	})
}
