package shipped

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
)

// TestRuns: every shipped run is finished and evaluated and has one checkpoint. Together they take at most 8 MB, without their dataset's probe.
func TestRuns(t *testing.T) {
	runs, err := read(embedded)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		t.Fatal("the program ships no run")
	}
	root := dataFolder(t)
	if err := Place(root); err != nil {
		t.Fatal(err)
	}
	probes, size := probeSums(t), int64(0)
	for _, r := range runs {
		if _, err := r.Checkpoint(); err != nil {
			t.Error(err)
		}
		f, err := root.Open(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		status, err := f.Status()
		if err != nil || status.State != model.Finished || !slices.Equal(f.Checkpoints(), []int{status.Step}) {
			t.Errorf("%s: %+v, checkpoints of steps %v (%v)", r.ID, status, f.Checkpoints(), err)
		}
		if s, err := f.Scores(); err != nil || s.Effort != model.Full || s.Metrics == nil {
			t.Errorf("%s: no full evaluation (%v)", r.ID, err)
		}
		if s, err := f.Scores(); err == nil && !slices.Contains(probes, s.Probe) {
			t.Errorf("%s: the probe used for its scores is not embedded", r.ID)
		}
		if points, _, err := f.Tail(0); err != nil || len(points) < 100 || points[len(points)-1].Step != status.Step {
			t.Errorf("%s: %d points (%v)", r.ID, len(points), err)
		}
		if n, err := f.DamagedPoints(); err != nil || n != 0 {
			t.Errorf("%s: %d damaged points (%v)", r.ID, n, err)
		}
		if _, err := os.Stat(filepath.Join(f.Dir(), UsageFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s was copied to the run's folder (%v)", r.ID, UsageFile, err)
		}
		err = fs.WalkDir(r.Files, ".", func(_ string, e fs.DirEntry, err error) error {
			if info, statErr := e.Info(); statErr == nil && !e.IsDir() {
				size += info.Size()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if size > 8_000_000 {
		t.Errorf("the shipped runs take %d bytes, more than 8 MB", size)
	}
}

// probeSums returns the sums of the embedded probes.
func probeSums(t *testing.T) (sums []string) {
	t.Helper()
	names, err := fs.Glob(Probes(), "*.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := checkpoint.ReadFS(Probes(), name)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, checkpoint.Sum(file.Tensors))
	}
	return sums
}

func dataFolder(t *testing.T) *folder.Data {
	t.Helper()
	root, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func some(names ...string) (out []Run) {
	for _, name := range names {
		out = append(out, Run{name, fstest.MapFS{
			"config.json":                            {Data: []byte(`{"model":"hrr"}`)},
			"checkpoints/step-000000007.safetensors": {Data: []byte("weights")},
			UsageFile:                                {Data: []byte("{}")},
		}})
	}
	return out
}

// TestPlace: each run is copied to a data folder only once ever, not again after it was deleted, and never over an existing folder.
func TestPlace(t *testing.T) {
	root := dataFolder(t)
	mine := root.RunDir("b")
	if err := os.Mkdir(mine, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := place(root, some("a", "b")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(root.RunDir("a"), "checkpoints", "step-000000007.safetensors")); err != nil || string(got) != "weights" {
		t.Errorf("the checkpoint reads %q (%v)", got, err)
	}
	if left, err := os.ReadDir(mine); err != nil || len(left) != 0 {
		t.Errorf("the existing folder contains %v (%v)", left, err)
	}
	if err := root.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if err := place(root, some("a", "b", "c")); err != nil { // a later version ships one more
		t.Fatal(err)
	}
	if _, err := root.Open("a"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("the deleted run was copied again (%v)", err)
	}
	f, err := root.Open("c")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestPlaceAgain: a failed copy leaves no partial run and is retried.
func TestPlaceAgain(t *testing.T) {
	root := dataFolder(t)
	broken := some("a")
	broken[0].Files.(fstest.MapFS)["config.json"] = &fstest.MapFile{Data: []byte(`{`)}
	if err := place(root, append(broken, some("b")...)); err == nil {
		t.Error("place accepts a damaged run")
	}
	entries, err := os.ReadDir(filepath.Join(root.Dir(), "runs"))
	if err != nil || len(entries) != 1 || entries[0].Name() != "b" {
		t.Errorf("runs contains %v (%v)", entries, err)
	}
	if err := place(root, some("a", "b")); err != nil {
		t.Fatal(err)
	}
	f, err := root.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.WriteFile(filepath.Join(root.Dir(), placedFile), []byte("["), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := place(root, some("d")); err == nil {
		t.Error("place accepts a damaged list")
	}
}
