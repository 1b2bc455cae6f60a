// Package adopt runs models of other programs: a child process answers encode and decode requests with .npy arrays over its standard
// streams. docs/adopt.md describes the messages.
//
// A run of an adopted model has a checkpoint without weights: the model's description of itself, and examples to verify it. The command is
// stored separately, in a file of the user.
package adopt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/npz"
)

// Model is an adopted model that runs in a child process. Its methods are safe for concurrent use; it handles one message at a time.
// After a failure, the next call restarts the child.
type Model struct {
	Hello

	command  Command
	examples []byte // images, and
	slots    Slots  // their encoding when the model was adopted; nil during adoption

	mu     sync.Mutex
	child  *child
	failed error     // error of the last child,
	at     time.Time // and its time
}

// Names in a checkpoint of an adopted model.
const (
	idKey       = "adopted" // metadata: Command.ID
	latentKey   = "latent"  // metadata: Hello.Latent
	imagesName  = "images"  // tensors: examples, [n, H, W, C], values 0 to 255,
	slotsName   = "slots"   // and their encoding, [n, m]
	scalesName  = "scales"  // for numeric slots: mean and deviation, [m, 2], see Scales
	examplesFor = 8
)

// Is reports whether a checkpoint belongs to an adopted model.
func Is(file checkpoint.File) bool { return file.Config.Model == model.External }

// Open starts the command of an adopted model and checks that it still encodes the examples in the same way.
func Open(ctx context.Context, file checkpoint.File) (*Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, err := described(file)
	if err != nil {
		return nil, model.Invalid{"checkpoint": err.Error()}
	}
	if m.command, err = commandOf(file.Meta[idKey]); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m, m.ready()
}

// described returns the model described by a checkpoint.
func described(file checkpoint.File) (*Model, error) {
	c, images, slots := file.Config, file.Tensors[imagesName], file.Tensors[slotsName]
	m := &Model{Hello: Hello{Protocol: protocol, Name: c.Preset, Slots: c.M, Codes: c.K, Seed: c.Seed, Step: file.Step}}
	if file.Meta[idKey] == "" || len(images.Shape) != 4 || len(slots.Shape) != 2 || slots.Shape[0] != images.Shape[0] || slots.Shape[1] != c.M || slots.Shape[0] == 0 {
		return nil, fmt.Errorf("this run was imported and has no model, or the checkpoint of an adopted model is damaged")
	}
	m.Image = [3]int(images.Shape[1:])
	if text := file.Meta[latentKey]; text != "" {
		if _, err := fmt.Sscan(text, &m.Latent); err != nil {
			return nil, fmt.Errorf("latent is %q; want an integer", text)
		}
	}
	if err := m.Hello.check(); err != nil {
		return nil, err
	}
	for _, v := range images.Data {
		m.examples = append(m.examples, byte(v))
	}
	if c.K == 0 {
		m.slots.Numbers = slots.Data
		return m, nil
	}
	for _, v := range slots.Data {
		m.slots.Codes = append(m.slots.Codes, int32(v))
	}
	return m, nil
}

// ready starts a child if none is running; the caller holds mu.
func (m *Model) ready() error {
	if m.child != nil {
		return nil
	}
	if m.failed != nil && time.Since(m.at) < restartWait {
		return m.failed // a page requests many images at once, which must not start as many children
	}
	k, err := start(m.command)
	if err != nil {
		return m.fail(err)
	}
	m.child = k
	var h Hello
	if err := k.ask("hello", nil, func(r *bufio.Reader) error { return readLine(r, &h) }); err != nil {
		return m.fail(err)
	}
	if err := h.check(); err != nil {
		return m.fail(fmt.Errorf("%s: %w", k.name, err))
	}
	if m.slots.Codes == nil && m.slots.Numbers == nil {
		m.Hello = h
		return nil
	}
	return m.same(h)
}

// same returns an error if the command now serves a different model.
func (m *Model) same(h Hello) error {
	if h.Slots != m.Slots || h.Codes != m.Codes || h.Image != m.Image || h.Latent != m.Latent {
		return m.fail(fmt.Errorf("%s serves %d slots of %d codes and images of %v, but the adopted model had %d, %d and %v; adopt it again",
			m.child.name, h.Slots, h.Codes, h.Image, m.Slots, m.Codes, m.Image))
	}
	n := len(m.examples) / m.size()
	again, err := m.encode(m.examples, n)
	if err != nil {
		return err
	}
	if other, of := differing(m.slots, again), n*m.Slots; other*20 > of { // near ties may differ between machines
		return m.fail(fmt.Errorf("%s encodes the examples differently than when it was adopted: %d of %d slots differ; if it serves another model now, adopt it again", m.child.name, other, of))
	}
	return nil
}

// differing counts the slots that differ; numbers may differ by 1%.
func differing(a, b Slots) (n int) {
	for i, c := range a.Codes {
		if c != b.Codes[i] {
			n++
		}
	}
	for i, v := range a.Numbers {
		if d := math.Abs(float64(v - b.Numbers[i])); d > 0.01*max(1, math.Abs(float64(v))) {
			n++
		}
	}
	return n
}

// fail stops the child and stores the error; the caller holds mu.
func (m *Model) fail(err error) error {
	if m.child != nil {
		m.child.close()
		m.child = nil
	}
	m.failed, m.at = model.Invalid{"model": err.Error()}, time.Now()
	return m.failed
}

// ask sends one message and reads its answer; the caller holds mu and the child is running.
func (m *Model) ask(do string, payload npz.Data, read func(*bufio.Reader) error) error {
	err := m.child.ask(do, &payload, func(r *bufio.Reader) error {
		var ok struct{}
		if err := readLine(r, &ok); err != nil {
			return err
		}
		return read(r)
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errSaid): // the child is still usable
		return model.Invalid{"model": err.Error()}
	}
	return m.fail(err)
}

// do sends one message and reads its answer, starting a child if needed.
func (m *Model) do(do string, payload npz.Data, read func(*bufio.Reader) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(); err != nil {
		return err
	}
	return m.ask(do, payload, read)
}

func (m *Model) size() int { return m.Image[0] * m.Image[1] * m.Image[2] }

// Encode returns the slots of n images; images are n × H × W × C bytes.
func (m *Model) Encode(images []byte, n int) (Slots, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ready(); err != nil {
		return Slots{}, err
	}
	return m.encode(images, n)
}

func (m *Model) encode(images []byte, n int) (s Slots, err error) {
	payload := npz.Data{Shape: []int{n, m.Image[0], m.Image[1], m.Image[2]}, Values: images}
	err = m.ask("encode", payload, func(r *bufio.Reader) error { s, err = m.readSlots(r, n); return err })
	return s, err
}

func (m *Model) readSlots(r *bufio.Reader, n int) (s Slots, err error) {
	a, err := readArray(r, n, m.Slots)
	if err != nil {
		return s, err
	}
	if m.Codes > 0 {
		s.Codes, err = codesOf(a, m.Codes)
	} else {
		s.Numbers, err = numbersOf(a)
	}
	return s, err
}

// Decode returns the images of n rows of slots, n × H × W × C numbers in [0, 1].
func (m *Model) Decode(s Slots, n int) (images []float32, err error) {
	payload := npz.Data{Shape: []int{n, m.Slots}, Values: s.Numbers}
	if m.Codes > 0 {
		payload.Values = s.Codes
	}
	err = m.do("decode", payload, func(r *bufio.Reader) error {
		a, err := readArray(r, n, m.Image[0], m.Image[1], m.Image[2])
		if err == nil {
			images, err = imagesOf(a)
		}
		return err
	})
	return images, err
}

// Latents returns z of n images, [n, Latent]; it requires a model with Latent > 0.
func (m *Model) Latents(images []byte, n int) (z []float32, err error) {
	payload := npz.Data{Shape: []int{n, m.Image[0], m.Image[1], m.Image[2]}, Values: images}
	err = m.do("latent", payload, func(r *bufio.Reader) error {
		a, err := readArray(r, n, m.Latent)
		if err == nil {
			z, err = numbersOf(a)
		}
		return err
	})
	return z, err
}

// Read returns the slots of n latents.
func (m *Model) Read(z []float32, n int) (s Slots, err error) {
	err = m.do("read", npz.Data{Shape: []int{n, m.Latent}, Values: z}, func(r *bufio.Reader) error { s, err = m.readSlots(r, n); return err })
	return s, err
}

// Close stops the child.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.child != nil {
		m.child.close()
		m.child = nil
	}
}
