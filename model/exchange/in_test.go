package exchange

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/folder"
	"slotscope/model/format/tensorboard"
)

func imported(t *testing.T, dir, tool, path string, want ...int) []Imported {
	t.Helper()
	runs, err := Import(t.Context(), dir, tool, path)
	if err != nil {
		t.Fatal(err)
	}
	var added []int
	for _, r := range runs {
		added = append(added, r.Added)
	}
	if fmt.Sprint(added) != fmt.Sprint(want) {
		t.Fatalf("added %v, want %v", added, want)
	}
	return runs
}

func pointsOf(t *testing.T, dir, id string) (all []model.Point, run model.Run) {
	t.Helper()
	f, err := folder.Open(filepath.Join(dir, "runs", id))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run, err = f.Run(); err != nil {
		t.Fatal(err)
	}
	if err := f.Each(func(p model.Point) error { all = append(all, p); return nil }); err != nil {
		t.Fatal(err)
	}
	return all, run
}

// Our own exports can be imported again, and a second import adds nothing.
func TestOurExportsComeBack(t *testing.T) {
	f := measured(t)
	board, flow := t.TempDir(), t.TempDir()
	if _, err := TensorBoard(f, filepath.Join(board, "mine")); err != nil {
		t.Fatal(err)
	}
	if _, err := MLflow(f, flow); err != nil {
		t.Fatal(err)
	}
	for tool, path := range map[string]string{"tensorboard": board, "mlflow": flow} {
		dir := t.TempDir()
		run := imported(t, dir, tool, path, 3)[0]
		if again := imported(t, dir, tool, path, 0)[0]; again.ID != run.ID || again.Steps != 3 {
			t.Errorf("a second import: %+v", again)
		}
		points, kept := pointsOf(t, dir, run.ID)
		if len(points) != 3 || points[2].Step != 3 || float32(points[2].Values["total"]) != float32(1.0/3) || !math.IsInf(points[1].Values["psnr/eval"], 1) || !points[0].Time.Equal(begun.Add(time.Second)) {
			t.Errorf("%s: %+v", tool, points)
		}
		if c := kept.Config; kept.State != model.Finished || kept.Step != 3 || c.Model != model.External || c.Preset != tool || c.Dataset != "shapes3d-synthetic" || c.Batch != 32 || !strings.Contains(kept.Notes, "no_denoiser = false") {
			t.Errorf("%s: %+v", tool, kept)
		}
	}
}

// New values of a growing file are imported; a restart replaces steps; steps from 0 increase by one.
func TestFollowsTensorBoard(t *testing.T) {
	logs, dir := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(logs, "events.out.tfevents.1.host"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := tensorboard.NewWriter(file, begun)
	scalar := func(step int, v float64) { w.Scalars(begun, step, map[string]float64{"loss, train": v}) }
	scalar(0, 5)
	scalar(1, 4)
	id := imported(t, dir, "tensorboard", logs, 2)[0].ID
	scalar(2, 3)
	imported(t, dir, "tensorboard", logs, 1)
	w.Restart(begun, 1)
	scalar(1, 9)
	imported(t, dir, "tensorboard", logs, 1)
	points, run := pointsOf(t, dir, id)
	if len(points) != 2 || points[0].Step != 1 || points[0].Values["loss; train"] != 5 || points[1].Step != 2 || points[1].Values["loss; train"] != 9 || run.Step != 2 {
		t.Errorf("%+v, %+v", points, run)
	}
	if _, err := file.WriteString("garbage that is no frame"); err != nil {
		t.Fatal(err)
	}
	runs, err := Import(t.Context(), dir, "tensorboard", logs)
	if err == nil || !strings.Contains(err.Error(), "byte ") || len(runs) != 1 || runs[0].Added != 0 || runs[0].Note == "" {
		t.Errorf("damaged end: %+v, %v", runs, err)
	}
}

// A second import at the same time is refused, and so is a missing folder.
func TestImportRefuses(t *testing.T) {
	flow, dir := t.TempDir(), t.TempDir()
	if _, err := MLflow(measured(t), flow); err != nil {
		t.Fatal(err)
	}
	id := imported(t, dir, "mlflow", flow, 3)[0].ID
	f, err := folder.Open(filepath.Join(dir, "runs", id))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Import(t.Context(), dir, "mlflow", flow); !errors.Is(err, model.ErrConflict) {
		t.Errorf("two imports at once: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for _, tool := range Tools() {
		if _, err := Import(t.Context(), dir, tool, t.TempDir()); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("%s in an empty folder: %v", tool, err)
		}
		if _, err := Import(t.Context(), dir, tool, filepath.Join(dir, "nowhere")); err == nil {
			t.Errorf("%s in a missing folder: no error", tool)
		}
	}
	if _, err := Import(t.Context(), dir, "aim", flow); err == nil {
		t.Error("unknown tool: no error")
	}
	metric := filepath.Join(flow, "0")
	files, _ := filepath.Glob(filepath.Join(metric, "*", "metrics", "total"))
	if err := os.WriteFile(files[0], []byte("1 0.5 1\nx\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(t.Context(), dir, "mlflow", flow); err == nil || !strings.Contains(err.Error(), "line 2 is not milliseconds") {
		t.Errorf("damaged metric: %v", err)
	}
}

// A million values take less than ten seconds: 10 series of 100,000 steps.
func TestMillionPoints(t *testing.T) {
	expect.Long(t)
	logs, dir := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(logs, "events.out.tfevents.1.host"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, values := tensorboard.NewWriter(file, begun), map[string]float64{}
	for step := range 100_000 {
		for i := range 10 {
			values[fmt.Sprintf("series/%d", i)] = float64(step * i)
		}
		w.Scalars(begun, step+1, values)
	}
	start := time.Now()
	imported(t, dir, "tensorboard", logs, 100_000)
	took := time.Since(start)
	t.Logf("%.1f s", took.Seconds())
	if took > time.Minute { // ten seconds on an idle machine
		t.Errorf("%v", took)
	}
}

// FuzzMetric: any input is either parsed or rejected.
func FuzzMetric(f *testing.F) {
	f.Add("1772366401000 1 1\n1772366402000 NaN 2\n")
	f.Add("1 2\n\n-1 1e999 3")
	path := filepath.Join(f.TempDir(), "metric")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var r foreign
		_ = r.metric("m", path)
		r.order()
		for i := 0; i < len(r.samples); {
			p, next := r.point(i)
			if p.Step < 1 || next <= i {
				t.Fatalf("%+v", p)
			}
			i = next
		}
	})
}

// boardOf is a TensorBoard folder with one series of n steps.
func boardOf(t *testing.T, n int) (logs string) {
	t.Helper()
	logs = t.TempDir()
	file, err := os.Create(filepath.Join(logs, "events.out.tfevents.1.host"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := tensorboard.NewWriter(file, begun)
	for step := range n {
		w.Scalars(begun, step+1, map[string]float64{"loss": float64(step)})
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return logs
}

// steps fails the test unless a run's points are steps 1 to n without repeats.
func steps(t *testing.T, dir, id string, n int) {
	t.Helper()
	f, err := folder.Open(filepath.Join(dir, "runs", id))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var points []model.Point
	for at, end := int64(0), int64(-1); at != end; {
		var more []model.Point
		end = at
		if more, at, err = f.Tail(at); err != nil {
			t.Fatal(err)
		}
		points = append(points, more...)
	}
	if status, err := f.Status(); err != nil || len(points) != n || status.Step != n {
		t.Fatalf("%d points up to step %d, want %d (%v)", len(points), status.Step, n, err)
	}
	for i, p := range points {
		if p.Step != i+1 {
			t.Fatalf("point %d is of step %d", i, p.Step)
		}
	}
}

// Of simultaneous imports some are refused, and together they import every step once.
func TestImportsAtOnce(t *testing.T) {
	logs, dir := boardOf(t, 3000), t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := Import(t.Context(), dir, "tensorboard", logs); err != nil && !errors.Is(err, model.ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	steps(t, dir, imported(t, dir, "tensorboard", logs, 0)[0].ID, 3000)
}

// A file without any readable content is an error and creates no run.
func TestDamageMakesNoRun(t *testing.T) {
	for tool, name := range map[string]string{"tensorboard": "events.out.tfevents.1.host", "wandb": "run-abc.wandb", "mlflow": "metrics/loss"} {
		from, dir := t.TempDir(), t.TempDir()
		path := filepath.Join(from, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("this is damaged\n"), 0o600), os.WriteFile(filepath.Join(from, "meta.yaml"), []byte("status: 3\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if runs, err := Import(t.Context(), dir, tool, from); err == nil || len(runs) > 0 || !strings.Contains(err.Error(), filepath.FromSlash(name)) {
			t.Errorf("%s: %+v, %v", tool, runs, err)
		}
		if made, err := os.ReadDir(filepath.Join(dir, "runs")); len(made) > 0 {
			t.Errorf("%s: runs %v (%v)", tool, made, err)
		}
	}
}
