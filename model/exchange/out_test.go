package exchange

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/folder"
	"slotscope/model/format/parquet"
	"slotscope/model/format/tensorboard"
)

var begun = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// measured is a finished run with three points and a sheet.
func measured(t testing.TB) *folder.Folder {
	t.Helper()
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	f, err := folder.Create(filepath.Join(t.TempDir(), "run-1"), cfg, "first light")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	record(t, f, 1, 2, 3)
	var sheet bytes.Buffer
	if err := png.Encode(&sheet, image.NewRGBA(image.Rect(0, 0, 4, 2))); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSample(2, sheet.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := f.SetStatus(model.Status{State: model.Finished, Step: 3, Attempt: 1, Ended: begun.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	return f
}

// record appends points: total is 1/step, and "psnr/eval" infinite at step 2.
func record(t testing.TB, f *folder.Folder, steps ...int) {
	t.Helper()
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		p := model.Point{Step: step, Time: begun.Add(time.Duration(step) * time.Second), Values: map[string]float64{"total": 1 / float64(step)}}
		if step == 2 {
			p.Values["psnr/eval"] = math.Inf(1)
		}
		if err := a.Append(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

func events(t *testing.T, path string) (all []tensorboard.Event) {
	t.Helper()
	if _, err := tensorboard.Read(path, 0, func(e tensorboard.Event) { all = append(all, e) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTensorBoard(t *testing.T) {
	path, err := TensorBoard(measured(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := events(t, path)
	if len(all) != 5 || all[0].HParams["model"] != "hrr" || all[0].HParams["batch"] != 32.0 || all[0].HParams["no_denoiser"] != false {
		t.Fatalf("%+v", all)
	}
	if e := all[4]; e.Step != 3 || e.Tag != "total" || e.Value != float64(float32(1.0/3)) || !e.Time.Equal(begun.Add(3*time.Second)) {
		t.Errorf("%+v", e)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(raw, []byte("\x89PNG")) || !bytes.Contains(raw, []byte("session_end_info")) {
		t.Errorf("no sheet, or no end: %v", err)
	}
}

// Points written during the export are in the file at the end, even if the run went back to an earlier step.
func TestLive(t *testing.T) {
	f := measured(t)
	ctx, cancel := context.WithCancel(t.Context())
	dir, done := t.TempDir(), make(chan error, 1)
	go func() { done <- Live(ctx, f, dir) }()
	newest := func() (all []tensorboard.Event) {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(files) == 1 {
			all = events(t, files[0])
		}
		return all
	}
	for deadline := time.Now().Add(20 * time.Second); len(newest()) < 5; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was written during the run")
		}
	}
	if err := f.TruncatePoints(1); err != nil {
		t.Fatal(err)
	}
	record(t, f, 2)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	all := newest()
	if len(all) != 9 || !all[5].Restart || all[8].Step != 2 {
		t.Errorf("%+v", all)
	}
}

func TestParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points.parquet")
	if err := Parquet(measured(t), path); err != nil {
		t.Fatal(err)
	}
	f := expect.Open(t, parquet.Open, path)
	if f.Len() != 4 {
		t.Fatalf("%d rows", f.Len())
	}
	values, err := f.Read(0, 3)
	if err != nil || !math.IsInf(values.Floats[1], 1) || values.Floats[3] != 1.0/3 {
		t.Errorf("%v, %v", values, err)
	}
}

func TestMLflow(t *testing.T) {
	f, dir := measured(t), t.TempDir()
	path, err := MLflow(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := MLflow(f, dir)
	if err != nil || again != path {
		t.Errorf("second export goes to %s: %v", again, err)
	}
	for name, want := range map[string]string{
		"metrics/total": "1772366401000 1 1\n1772366402000 0.5 2\n", "metrics/psnr/eval": "1772366402000 +Inf 2\n", "params/batch": "32", "params/model": "hrr",
		"tags/mlflow.runName": "first light", "meta.yaml": "status: 3\n", "../meta.yaml": "experiment_id: \"0\"\n",
	} {
		raw, err := os.ReadFile(filepath.Join(path, name))
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %q, %v; want %q", name, raw, err, want)
		}
	}
}

// A series whose name is also a prefix of others is exported next to them.
func TestMLflowSeriesBelowAnother(t *testing.T) {
	f, dir := measured(t), t.TempDir()
	a, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Append(model.Point{Step: 4, Time: begun, Values: map[string]float64{"latent": 1, "latent/active": 2, "latent/value": 3}}), a.Close()); err != nil {
		t.Fatal(err)
	}
	path, err := MLflow(f, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"latent/value_": " 1 4\n", "latent/active": " 2 4\n", "latent/value": " 3 4\n"} {
		if raw, err := os.ReadFile(filepath.Join(path, "metrics", filepath.FromSlash(name))); err != nil || !strings.HasSuffix(string(raw), want) {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
}
