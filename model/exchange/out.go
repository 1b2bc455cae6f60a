// Package exchange exports runs to the formats of other programs, and imports their runs.
package exchange

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/format/parquet"
	"slotscope/model/format/tensorboard"
	"slotscope/model/whole"
)

// HParams are the fields of a configuration by name.
func HParams(c model.Config) map[string]any {
	out := map[string]any{}
	for _, f := range model.Fields() {
		text := f.Get(c)
		switch number, err := strconv.ParseFloat(text, 64); {
		case f.Kind == model.Bool:
			out[f.Name] = text == "true"
		case err == nil && f.Kind != model.Choice:
			out[f.Name] = number
		default:
			out[f.Name] = text
		}
	}
	return out
}

// compared are the series used by TensorBoard's hyperparameter table to compare runs.
var compared = []string{"psnr/eval", "infom/eval", "infoe/eval", "infoc/eval", "total"}

// TensorBoard writes a run as one event file in dir: all points, reconstruction sheets, hyperparameters and the final state.
func TensorBoard(f *folder.Folder, dir string) (path string, err error) {
	run, err := f.Run()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, eventName(run.Created, f.ID()))
	return path, writeFile(path, func(w io.Writer) error {
		out := tensorboard.NewWriter(w, run.Created)
		out.Start(run.Created, f.ID(), HParams(run.Config), compared)
		if err := f.Each(func(p model.Point) error {
			out.Scalars(p.Time, p.Step, p.Values)
			return out.Err()
		}); err != nil {
			return err
		}
		for _, step := range f.Samples() {
			if err := sheet(f, out, step, run.Updated); err != nil {
				return err
			}
		}
		if run.State.Ended() {
			out.End(run.Ended, outcomeOf(run.State))
		}
		return out.Err()
	})
}

// eventName is a file name that TensorBoard recognizes as an event file.
func eventName(at time.Time, id string) string {
	return fmt.Sprintf("events.out.tfevents.%d.slotscope.%s", at.Unix(), id)
}

func outcomeOf(s model.State) tensorboard.Outcome {
	switch s {
	case model.Finished, model.Stopped:
		return tensorboard.Success
	case model.Failed, model.Interrupted:
		return tensorboard.Failure
	}
	return tensorboard.Ongoing
}

// sheet writes the reconstructions at a step.
func sheet(f *folder.Folder, out *tensorboard.Writer, step int, at time.Time) error {
	path, err := f.Sample(step)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	size, err := png.DecodeConfig(strings.NewReader(string(raw)))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	out.Picture(at, step, "reconstructions", raw, size.Width, size.Height)
	return out.Err()
}

// Parquet writes the points of a run as rows of step, time, name and value, sorted by step, then name.
func Parquet(f *folder.Folder, path string) error {
	var steps, times []int64
	var names []string
	var values []float64
	err := f.Each(func(p model.Point) error {
		for _, name := range slices.Sorted(maps.Keys(p.Values)) {
			steps, times = append(steps, int64(p.Step)), append(times, p.Time.UnixMicro())
			names, values = append(names, name), append(values, p.Values[name])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error {
		return parquet.Write(w, parquet.Out{Name: "step", Ints: steps}, parquet.Out{Name: "time", Ints: times, Micros: true},
			parquet.Out{Name: "name", Texts: names}, parquet.Out{Name: "value", Floats: values})
	})
}

// mlflowExperiment is the experiment that contains the runs.
const (
	mlflowExperiment = "0"
	mlflowName       = "slotscope"
)

// MLflow adds a run to a folder with the layout of MLflow's file store, such as mlruns. It replaces a run that already exists there.
func MLflow(f *folder.Folder, dir string) (path string, err error) {
	run, err := f.Run()
	if err != nil {
		return "", err
	}
	experiment := filepath.Join(dir, mlflowExperiment)
	about := filepath.Join(experiment, "meta.yaml")
	if _, err := os.Stat(about); err != nil {
		location, err := filepath.Abs(experiment)
		if err != nil {
			return "", err
		}
		if err := writeText(about, yaml("artifact_location", "file://"+filepath.ToSlash(location), "experiment_id", mlflowExperiment, "lifecycle_stage", "active", "name", mlflowName)); err != nil {
			return "", err
		}
	}
	id := fmt.Sprintf("%x", sha256.Sum256([]byte(f.ID())))[:32]
	path = filepath.Join(experiment, id)
	if err := os.RemoveAll(path); err != nil {
		return "", err
	}
	artifacts, err := filepath.Abs(filepath.Join(path, "artifacts"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return "", err
	}
	entries := map[string]string{
		"meta.yaml": yaml("artifact_uri", "file://"+filepath.ToSlash(artifacts), "end_time", millis(run.Ended), "entry_point_name", "", "experiment_id", mlflowExperiment,
			"lifecycle_stage", "active", "run_id", id, "run_name", run.Name, "run_uuid", id, "source_name", "slotscope", "source_type", 4, "source_version", run.Revision,
			"start_time", millis(run.Created), "status", mlflowStatus(run.State), "tags", []string{}, "user_id", ""),
		"tags/mlflow.runName": run.Name, "tags/mlflow.note.content": run.Notes, "tags/slotscope.run": f.ID(), "tags/mlflow.source.name": "slotscope",
	}
	for name, value := range HParams(run.Config) {
		entries["params/"+name] = fmt.Sprint(value)
	}
	for name, text := range entries {
		if err := writeText(filepath.Join(path, filepath.FromSlash(name)), text); err != nil {
			return "", err
		}
	}
	return path, mlflowMetrics(f, filepath.Join(path, "metrics"))
}

func mlflowMetrics(f *folder.Folder, dir string) error {
	series := map[string]*strings.Builder{}
	err := f.Each(func(p model.Point) error {
		for name, value := range p.Values {
			if series[name] == nil {
				series[name] = &strings.Builder{}
			}
			fmt.Fprintf(series[name], "%d %s %d\n", p.Time.UnixMilli(), strconv.FormatFloat(value, 'g', -1, 64), p.Step)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, lines := range series {
		if !filepath.IsLocal(name) {
			continue // not a name that we write
		}
		if err := writeText(filepath.Join(dir, filepath.FromSlash(metricPath(series, name))), lines.String()); err != nil {
			return err
		}
	}
	return nil
}

// metricPath is the file of a series. If a name is also a prefix of other series, such as latent of latent/active, its file is inside
// that folder, as latent/value.
func metricPath[T any](series map[string]T, name string) string {
	for other := range series {
		if strings.HasPrefix(other, name+"/") {
			for name += "/value"; ; name += "_" {
				if _, taken := series[name]; !taken {
					return name
				}
			}
		}
	}
	return name
}

func mlflowStatus(s model.State) int {
	switch s {
	case model.Finished:
		return 3
	case model.Failed, model.Interrupted:
		return 4
	case model.Stopped:
		return 5
	case model.Queued:
		return 2
	}
	return 1
}

func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// yaml writes one line per pair of key and value, with JSON values, which are valid YAML.
func yaml(pairs ...any) string {
	var s strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		raw, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err) // only strings, numbers and nil are passed
		}
		fmt.Fprintf(&s, "%s: %s\n", pairs[i], raw)
	}
	return s.String()
}

func writeText(path, content string) error {
	return writeFile(path, func(w io.Writer) error { _, err := io.WriteString(w, content); return err })
}

// writeFile writes a whole file and creates its parent folders.
func writeFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return whole.Write(path, func(f *os.File) error {
		b := bufio.NewWriterSize(f, 1<<16)
		return errors.Join(write(b), b.Flush())
	})
}
