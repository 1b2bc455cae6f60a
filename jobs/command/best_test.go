package command

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"slotscope/model"
	"slotscope/model/folder"
)

// TestBestNamesACheckpoint checks that eval takes RUN@best from state.json while its file exists.
func TestBestNamesACheckpoint(t *testing.T) {
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := folder.Create(filepath.Join(dir, "runs", "a"), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, step := range []int{10, 20} {
		if err := os.WriteFile(f.CheckpointPath(step), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := findSubject(dir, "a@best"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("without a best checkpoint: %v", err)
	}
	if err := f.SetStatus(model.Status{State: model.Finished, Step: 20, Best: 10}); err != nil {
		t.Fatal(err)
	}
	if s, err := findSubject(dir, "a@best"); err != nil || s.checkpoint != f.CheckpointPath(10) {
		t.Errorf("the best is %+v, %v", s, err)
	}
	if s, err := findSubject(dir, "a"); err != nil || s.checkpoint != f.CheckpointPath(20) {
		t.Errorf("the newest is %+v, %v", s, err)
	}
	if err := os.Remove(f.CheckpointPath(10)); err != nil {
		t.Fatal(err)
	}
	if _, err := findSubject(dir, "a@best"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("a best checkpoint without its file: %v", err)
	}
}
