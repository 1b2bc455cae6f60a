package command

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"slotscope/jobs/slurm"
	"slotscope/model"
	"slotscope/model/folder"
)

// TestArraysAreNoted checks that the jobs of an array are recorded even if one of them cannot be, and that every run of a rejected array
// records the reason.
func TestArraysAreNoted(t *testing.T) {
	tools, dataDir := t.TempDir(), t.TempDir()
	sbatch := filepath.Join(tools, "sbatch")
	t.Setenv("PATH", tools+":/usr/bin:/bin")
	var folders []*folder.Folder
	for _, id := range []string{"a", "b", "c"} {
		f, err := folder.Create(filepath.Join(dataDir, id), must(model.Default("hrr", "tiny", "shapes3d-synthetic")), id)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		folders = append(folders, f)
	}
	if err := os.MkdirAll(filepath.Join(dataDir, "a", "job.json", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := shellSweep{env: environment{err: io.Discard}, cluster: &onCluster{Cluster: slurm.Cluster{Program: "/bin/true", Logs: t.TempDir()}}}
	submit := func(script string) error {
		t.Helper()
		if err := os.WriteFile(sbatch, []byte("#!/bin/sh\ncat >/dev/null\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return s.submitArray(t.Context(), folders, nil)
	}
	if submit("echo 7") == nil {
		t.Error("no error for a job that cannot be recorded")
	}
	for i, want := range []string{"7_1", "7_2"} {
		status, err := folders[i+1].Status()
		job, jobErr := folders[i+1].Job()
		if err != nil || jobErr != nil || status.State == model.Failed || job.ID != want {
			t.Errorf("run %s is %q with job %q, want %q: %v, %v", folders[i+1].ID(), status.State, job.ID, want, err, jobErr)
		}
	}
	if submit("echo no such partition >&2; exit 1") == nil {
		t.Error("no error for a rejected array")
	}
	for _, f := range folders[1:] {
		if status, err := f.Status(); err != nil || status.State != model.Failed || status.Reason == "" {
			t.Errorf("run %s is %q because %q: %v", f.ID(), status.State, status.Reason, err)
		}
	}
}

func must(cfg model.Config, err error) model.Config {
	if err != nil {
		panic(err)
	}
	return cfg
}
