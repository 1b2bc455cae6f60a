package tensorboard

import (
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Writer writes one event file. After the first error, which Err returns, it writes nothing.
type Writer struct {
	w   io.Writer
	buf []byte
	err error
}

// NewWriter starts a file with its version.
func NewWriter(w io.Writer, at time.Time) *Writer {
	out := &Writer{w: w}
	out.event(at, 0, text(nil, 3, "brain.Event:2"))
	return out
}

// Err returns the first error of the underlying writer.
func (w *Writer) Err() error { return w.err }

// Scalars writes the values of a step as float32.
func (w *Writer) Scalars(at time.Time, step int, values map[string]float64) {
	var summary []byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := text(nil, 1, name)
		value = protowire.AppendTag(value, 2, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(float32(values[name])))
		summary = message(summary, 1, value)
	}
	w.event(at, step, message(nil, 5, summary))
}

// Picture writes an encoded PNG.
func (w *Writer) Picture(at time.Time, step int, name string, png []byte, width, height int) {
	image := varint(nil, 1, height)
	image = varint(image, 2, width)
	image = varint(image, 3, 3) // RGB
	image = message(image, 4, png)
	w.event(at, step, message(nil, 5, message(nil, 1, message(text(nil, 1, name), 4, image))))
}

// Restart declares that later events replace everything from a step on, as after a resume.
func (w *Writer) Restart(at time.Time, step int) {
	w.event(at, step, message(nil, 7, varint(nil, 1, 1))) // SessionLog.START
}

// Outcome is the status of a run for the hparams plugin.
type Outcome int

// Outcomes of a run.
const (
	Success Outcome = 1
	Failure Outcome = 2
	Ongoing Outcome = 3
)

// Start writes what the hparams plugin shows for a run: hyperparameters (string, float64 or bool) and the metrics to compare.
func (w *Writer) Start(at time.Time, run string, hparams map[string]any, metrics []string) {
	var experiment, start []byte
	for _, name := range slices.Sorted(maps.Keys(hparams)) {
		value, kind := hparam(hparams[name])
		experiment = message(experiment, 5, varint(text(nil, 1, name), 4, kind))
		start = message(start, 1, message(text(nil, 1, name), 2, value))
	}
	for _, name := range metrics {
		experiment = message(experiment, 6, message(nil, 1, text(nil, 2, name)))
	}
	start = text(start, 4, run)
	start = double(start, 5, seconds(at))
	w.plugin(at, "_hparams_/experiment", message(nil, 2, experiment))
	w.plugin(at, "_hparams_/session_start_info", message(nil, 3, start))
}

// End writes the outcome of the run.
func (w *Writer) End(at time.Time, outcome Outcome) {
	w.plugin(at, "_hparams_/session_end_info", message(nil, 4, double(varint(nil, 1, int(outcome)), 2, seconds(at))))
}

// hparam returns a google.protobuf.Value and its type in the plugin.
func hparam(v any) (value []byte, kind int) {
	switch v := v.(type) {
	case bool:
		n := 0
		if v {
			n = 1
		}
		return varint(nil, 4, n), 2
	case float64:
		return double(nil, 2, v), 3
	case string:
		return text(nil, 3, v), 1
	}
	return varint(nil, 1, 0), 0
}

// plugin writes content for the hparams plugin. Version 0 is implied.
func (w *Writer) plugin(at time.Time, tag string, content []byte) {
	metadata := message(nil, 1, message(text(nil, 1, "hparams"), 2, content))
	w.event(at, 0, message(nil, 5, message(nil, 1, message(text(nil, 1, tag), 9, metadata))))
}

func (w *Writer) event(at time.Time, step int, what []byte) {
	if w.err != nil {
		return
	}
	event := double(nil, 1, seconds(at))
	if step != 0 {
		event = varint(event, 2, step)
	}
	w.buf = appendFrame(w.buf[:0], append(event, what...))
	_, w.err = w.w.Write(w.buf)
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func varint(b []byte, field protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(int64(v)))
}

func double(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func text(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func message(b []byte, field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), content)
}
