package adopt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"slotscope/model"
	"slotscope/model/format/npz"
)

// protocol is the version of the messages, see docs/adopt.md: a line of JSON, and after encode, decode, latent and read, and
// their answers, one .npy array.
const protocol = 1

// Limits on what an adopted model may say of itself.
const (
	maxLine   = 1 << 16 // bytes of a line of JSON
	MaxSlots  = 64      // as model.Config has it
	maxCodes  = 1 << 16
	maxLatent = 1 << 20 // numbers of z
	maxSide   = 1024    // pixels
)

// Hello is what a model says of itself.
type Hello struct {
	Protocol int    `json:"slotscope"`
	Name     string `json:"name"`   // what it is called, such as "resnet-vq"
	Slots    int    `json:"slots"`  // m
	Codes    int    `json:"codes"`  // k that a slot takes; 0 where slots hold real numbers
	Image    [3]int `json:"image"`  // height, width, channels
	Latent   int    `json:"latent"` // length of z, where it answers latent and read; else 0
	Seed     int64  `json:"seed"`
	Step     int    `json:"step"` // gradient steps behind it, from 1
}

// check says what cannot be, and fills in what was left out.
func (h *Hello) check() error {
	h.Step = max(1, h.Step)
	name, err := model.CleanName(h.Name)
	side := func(n int) bool { return n >= 1 && n <= maxSide }
	switch {
	case h.Protocol != protocol:
		return fmt.Errorf("it speaks version %d of the protocol; this program speaks version %d", h.Protocol, protocol)
	case err != nil || name == "" || len(name) > 64:
		return fmt.Errorf("name is %.80q; give 1 to 64 letters on one line", h.Name)
	case h.Slots < 1 || h.Slots > MaxSlots:
		return fmt.Errorf("slots is %d; it goes from 1 to %d", h.Slots, MaxSlots)
	case h.Codes < 0 || h.Codes == 1 || h.Codes > maxCodes:
		return fmt.Errorf("codes is %d; it goes from 2 to %d, or is 0 where slots hold real numbers", h.Codes, maxCodes)
	case !side(h.Image[0]) || !side(h.Image[1]) || h.Image[2] != 1 && h.Image[2] != 3:
		return fmt.Errorf("image is %v; it is [height, width, channels], each side 1 to %d, channels 1 or 3", h.Image, maxSide)
	case h.Latent < 0 || h.Latent > maxLatent:
		return fmt.Errorf("latent is %d; it goes from 0 to %d", h.Latent, maxLatent)
	case h.Seed < 0 || h.Seed > math.MaxInt32 || h.Step > 1e8:
		return fmt.Errorf("seed %d or step %d is out of range", h.Seed, h.Step)
	}
	h.Name = name
	return nil
}

// Slots are what images are represented by: codes for models that have them, else numbers; [n, m].
type Slots struct {
	Codes   []int32
	Numbers []float32
}

// request is the line that begins a message to the child.
type request struct {
	Do       string `json:"do"`
	Protocol int    `json:"slotscope,omitempty"` // of hello
}

func writeRequest(w io.Writer, do string, payload *npz.Data) error {
	r := request{Do: do}
	if payload == nil {
		r.Protocol = protocol
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	buffered.Write(append(line, '\n'))
	if payload != nil {
		err = npz.WriteArray(buffered, *payload)
	}
	return errors.Join(err, buffered.Flush())
}

// errSaid marks a failure that the child itself reported: it goes on to answer.
var errSaid = errors.New("it says")

// readLine reads a line of JSON into v; an answer with "error" is errSaid.
func readLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return fmt.Errorf("it wrote more than %d bytes without a line break where a line of JSON was due: %.60q…", maxLine, line)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return ended(err)
		}
	}
	var failure struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(line, &failure); err != nil {
		return fmt.Errorf("it wrote %.80q where a line of JSON was due; what is not an answer belongs on standard error", bytes.TrimSpace(line))
	}
	if failure.Error != "" {
		return fmt.Errorf("%w: %.400s", errSaid, failure.Error)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("its answer %.80q is not understood: %w", bytes.TrimSpace(line), err)
	}
	return nil
}

// errEnded says that the child closed its standard output.
var errEnded = errors.New("it closed its standard output")

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnded
	}
	return err
}

// readArray reads an array that must have that shape. Nothing is read of one of another shape, so that memory is bounded by what was asked.
func readArray(r io.Reader, shape ...int) (*npz.Array, error) {
	var content bytes.Buffer
	head, _, err := npz.ReadHeader(io.TeeReader(r, &content))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(head.Shape, shape) {
		return nil, fmt.Errorf("it answers an array of shape %v; %v is due", head.Shape, shape)
	}
	if head.Size > 8 {
		return nil, errors.New("it answers text; numbers are due")
	}
	if _, err := io.CopyN(&content, r, int64(head.Len())*int64(head.Size)); err != nil {
		return nil, ended(err)
	}
	return npz.Parse("its answer", content.Bytes())
}

// codes are those of an array [n, m], each from 0 to k − 1.
func codesOf(a *npz.Array, k int) ([]int32, error) {
	if a.Kind != npz.Int && a.Kind != npz.Uint {
		return nil, fmt.Errorf("its codes are %s; whole numbers are due", a.DType())
	}
	values, err := a.Ints()
	if err != nil {
		return nil, err
	}
	out, m := make([]int32, len(values)), a.Shape[1]
	for i, v := range values {
		if v < 0 || v >= k {
			return nil, fmt.Errorf("image %d, slot %d: code %d; codes go from 0 to %d", i/m, i%m, v, k-1)
		}
		out[i] = int32(v)
	}
	return out, nil
}

// numbersOf are those of an array of floats, all finite.
func numbersOf(a *npz.Array) ([]float32, error) {
	if a.Kind != npz.Float {
		return nil, fmt.Errorf("its numbers are %s; floats are due", a.DType())
	}
	values, err := a.Float64s()
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(values))
	for i, v := range values {
		if out[i] = float32(v); out[i]-out[i] != 0 {
			return nil, fmt.Errorf("image %d: it answers %v", i*a.Shape[0]/len(values), v)
		}
	}
	return out, nil
}

// imagesOf are those of an array of floats, limited to [0, 1], or of bytes.
func imagesOf(a *npz.Array) ([]float32, error) {
	if a.Kind == npz.Uint && a.Size == 1 {
		raw, err := a.Elements()
		if err != nil {
			return nil, err
		}
		out := make([]float32, len(raw))
		for i, b := range raw {
			out[i] = float32(b) / 255
		}
		return out, nil
	}
	out, err := numbersOf(a)
	for i, v := range out {
		out[i] = min(max(v, 0), 1)
	}
	return out, err
}
