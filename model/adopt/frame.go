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

// protocol is the version of the messages, see docs/adopt.md: a line of JSON, followed for encode, decode, latent, read and their answers
// by one .npy array.
const protocol = 1

// Limits on the properties of an adopted model.
const (
	maxLine   = 1 << 16 // bytes in a line of JSON
	MaxSlots  = 64      // as in model.Config
	maxCodes  = 1 << 16
	maxLatent = 1 << 20 // length of z
	maxSide   = 1024    // pixels
)

// Hello is a model's description of itself.
type Hello struct {
	Protocol int    `json:"slotscope"`
	Name     string `json:"name"`   // such as "resnet-vq"
	Slots    int    `json:"slots"`  // m
	Codes    int    `json:"codes"`  // k of each slot; 0 if slots hold real numbers
	Image    [3]int `json:"image"`  // height, width, channels
	Latent   int    `json:"latent"` // length of z if it supports latent and read; else 0
	Seed     int64  `json:"seed"`
	Step     int    `json:"step"` // gradient steps trained, at least 1
}

// check returns an error if a value is out of range, and fills in defaults.
func (h *Hello) check() error {
	h.Step = max(1, h.Step)
	name, err := model.CleanName(h.Name)
	side := func(n int) bool { return n >= 1 && n <= maxSide }
	switch {
	case h.Protocol != protocol:
		return fmt.Errorf("protocol version %d is not supported; use version %d", h.Protocol, protocol)
	case err != nil || name == "" || len(name) > 64:
		return fmt.Errorf("name is %.80q; use 1 to 64 characters on one line", h.Name)
	case h.Slots < 1 || h.Slots > MaxSlots:
		return fmt.Errorf("slots is %d; the range is 1 to %d", h.Slots, MaxSlots)
	case h.Codes < 0 || h.Codes == 1 || h.Codes > maxCodes:
		return fmt.Errorf("codes is %d; the range is 2 to %d, or 0 if slots hold real numbers", h.Codes, maxCodes)
	case !side(h.Image[0]) || !side(h.Image[1]) || h.Image[2] != 1 && h.Image[2] != 3:
		return fmt.Errorf("image is %v; use [height, width, channels] with sides of 1 to %d and 1 or 3 channels", h.Image, maxSide)
	case h.Latent < 0 || h.Latent > maxLatent:
		return fmt.Errorf("latent is %d; the range is 0 to %d", h.Latent, maxLatent)
	case h.Seed < 0 || h.Seed > math.MaxInt32 || h.Step > 1e8:
		return fmt.Errorf("seed %d or step %d is out of range", h.Seed, h.Step)
	}
	h.Name = name
	return nil
}

// Slots are the representation of images: codes for models that have them, else numbers; [n, m].
type Slots struct {
	Codes   []int32
	Numbers []float32
}

// request is the first line of a message to the child.
type request struct {
	Do       string `json:"do"`
	Protocol int    `json:"slotscope,omitempty"` // only for hello
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

// errSaid marks a failure that the child itself reported; the child can still answer.
var errSaid = errors.New("the program reports")

// readLine reads a line of JSON into v; an answer with "error" returns errSaid.
func readLine(r *bufio.Reader, v any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return fmt.Errorf("expected a line of JSON, got more than %d bytes without a line break: %.60q…", maxLine, line)
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
		return fmt.Errorf("expected a line of JSON, got %.80q; write other output to standard error", bytes.TrimSpace(line))
	}
	if failure.Error != "" {
		return fmt.Errorf("%w: %.400s", errSaid, failure.Error)
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("invalid answer %.80q: %w", bytes.TrimSpace(line), err)
	}
	return nil
}

// errEnded is returned if the child closed its standard output.
var errEnded = errors.New("the process closed its standard output")

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnded
	}
	return err
}

// readArray reads an array of the given shape. It rejects another shape before reading the data, so that memory is bounded by the request.
func readArray(r io.Reader, shape ...int) (*npz.Array, error) {
	var content bytes.Buffer
	head, _, err := npz.ReadHeader(io.TeeReader(r, &content))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(head.Shape, shape) {
		return nil, fmt.Errorf("got an array of shape %v, want %v", head.Shape, shape)
	}
	if head.Size > 8 {
		return nil, errors.New("got text, want numbers")
	}
	if _, err := io.CopyN(&content, r, int64(head.Len())*int64(head.Size)); err != nil {
		return nil, ended(err)
	}
	return npz.Parse("its answer", content.Bytes())
}

// codesOf returns the codes of an array [n, m], each from 0 to k − 1.
func codesOf(a *npz.Array, k int) ([]int32, error) {
	if a.Kind != npz.Int && a.Kind != npz.Uint {
		return nil, fmt.Errorf("codes have type %s; use integers", a.DType())
	}
	values, err := a.Ints()
	if err != nil {
		return nil, err
	}
	out, m := make([]int32, len(values)), a.Shape[1]
	for i, v := range values {
		if v < 0 || v >= k {
			return nil, fmt.Errorf("image %d, slot %d: code %d; the range is 0 to %d", i/m, i%m, v, k-1)
		}
		out[i] = int32(v)
	}
	return out, nil
}

// numbersOf returns the values of a float array, all finite.
func numbersOf(a *npz.Array) ([]float32, error) {
	if a.Kind != npz.Float {
		return nil, fmt.Errorf("numbers have type %s; use floats", a.DType())
	}
	values, err := a.Float64s()
	if err != nil {
		return nil, err
	}
	out := make([]float32, len(values))
	for i, v := range values {
		if out[i] = float32(v); out[i]-out[i] != 0 {
			return nil, fmt.Errorf("image %d: got %v, want a finite number", i*a.Shape[0]/len(values), v)
		}
	}
	return out, nil
}

// imagesOf returns the values of an array of floats, clamped to [0, 1], or of bytes.
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
