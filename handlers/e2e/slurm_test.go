//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/sweep"
)

// slurmCluster starts SLURM on this machine and sets SLURM_CONF, or skips the test. It returns a data folder, which is removed after
// SLURM has stopped.
func slurmCluster(t *testing.T) (data string) {
	t.Helper()
	parent, err := os.MkdirTemp("/tmp", "slotscope-slurm-") // munged rejects folders that others can write to
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "slurm")
	start := exec.Command("../../tools/slurm.sh", "start", dir)
	var said bytes.Buffer
	start.Stderr = &said
	out, err := start.Output()
	t.Cleanup(func() {
		exec.Command("../../tools/slurm.sh", "stop", dir).Run()
		os.RemoveAll(parent)
	})
	if start.ProcessState != nil && start.ProcessState.ExitCode() == 3 {
		t.Skip("SLURM is not installed: " + strings.TrimSpace(said.String()))
	}
	if err != nil {
		t.Fatalf("tools/slurm.sh start: %v\n%s", err, said.String())
	}
	t.Setenv("SLURM_CONF", strings.TrimSpace(string(out)))
	return filepath.Join(parent, "data")
}

// clusterConfig returns the request for a run with the preset tiny.
func clusterConfig(seed, steps string) map[string]any {
	return map[string]any{"name": "cluster " + seed, "config": map[string]any{"preset": "tiny", "engine": "cpu", "batch": "96", "steps": steps, "seed": seed,
		"checkpoint_every": "8", "sample_every": "48", "eval_every": "48", "eval_images": "8", "evaluate": "none"}}
}

// endless is more steps than any test waits for, so that the run is still in progress on any machine.
const endless = "1000000"

// TestSlurm trains three runs on a cluster of one node: one undisturbed, one stopped and resumed, one killed, requeued by its job, then
// stopped and resumed, too. A fourth is submitted from a shell. The server is restarted in between. Every series must be complete.
func TestSlurm(t *testing.T) {
	expect.Long(t)
	dir := slurmCluster(t)
	start := func() *site {
		return started(t, command(t, "serve", "--shipped=false", "--addr", "127.0.0.1:0", "--data", dir, "--executor", "slurm", "--slurm", "grace=2s"), dir)
	}
	s := start()
	var ids []string
	for _, c := range [][2]string{{"2", endless}, {"3", endless}, {"1", "48"}} { // the first starts at once
		var r model.Run
		s.want(http.StatusCreated, "POST", "/api/runs", clusterConfig(c[0], c[1]), &r)
		ids = append(ids, r.ID)
		s.folder(r.ID) // kills its processes at the end of the test
	}
	cancelled, killed, calm := ids[0], ids[1], ids[2]

	under := func(r model.Run) bool { return r.State == model.Running && r.Checkpoint >= 8 }
	r := s.reach(cancelled, "under way", under)
	if r.PID == 0 {
		t.Errorf("a running run has no PID: %+v", r.Status)
	}
	s.want(http.StatusAccepted, "POST", "/api/runs/"+cancelled+"/stop", map[string]any{}, nil)
	s.reachState(cancelled, model.Stopped)

	r = s.reach(killed, "under way", under)
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waiting := s.reach(killed, "back in the queue", func(r model.Run) bool { return r.State == model.Queued })
	if !strings.Contains(waiting.Reason, "SLURM") {
		t.Errorf("reason of a run queued by SLURM: %q", waiting.Reason)
	}
	s.close()
	s = start()

	again := s.reach(killed, "under way again", func(r model.Run) bool { return r.State == model.Running && r.Attempt == 2 && r.Step > r.Resumed })
	if again.Resumed < 8 {
		t.Errorf("the killed run resumed from step %d", again.Resumed)
	}
	s.want(http.StatusAccepted, "POST", "/api/runs/"+killed+"/stop", map[string]any{}, nil)
	for _, id := range []string{cancelled, killed} {
		steps := s.reachState(id, model.Stopped).Checkpoint + 16
		s.want(http.StatusAccepted, "POST", "/api/runs/"+id+"/resume", map[string]any{"steps": steps}, nil)
	}
	shell := submitFromShell(t, dir)
	for _, id := range append(ids, shell) {
		r := s.reachState(id, model.Finished)
		totals := wholeFile(t, s.folder(id), r.Config.Steps)
		s.wholeIndex(id, totals)
		if want := map[string]int{calm: 1, cancelled: 2, killed: 3, shell: 1}[id]; r.Attempt != want {
			t.Errorf("run %s took %d attempts, want %d: %+v", r.Name, r.Attempt, want, r.Status)
		}
	}
	evaluatedByItsJob(t, s, shell)
	arrayOfASweep(t, s)
	s.close()
	sweepFromShell(t, dir)
}

// evaluatedByItsJob waits until the job that trained a run has also evaluated it.
func evaluatedByItsJob(t *testing.T, s *site, id string) {
	t.Helper()
	f := s.folder(id)
	var e model.Evaluation
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && !e.State.Ended(); time.Sleep(200 * time.Millisecond) {
		e, _ = f.Evaluation()
	}
	scores, err := f.Scores()
	if e.State != model.Finished || e.Executor != model.Slurm || err != nil || !scores.Evaluated() || scores.Effort != model.Quick || scores.Images != 8 {
		t.Errorf("%+v; %d images, effort %q, %v", e, scores.Images, scores.Effort, err)
	}
}

// sweepFromShell runs a whole sweep from a login node without a server, as one job array whose runs are evaluated when they finish.
func sweepFromShell(t *testing.T, dir string) {
	t.Helper()
	plan := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(plan, []byte(`{"name": "from a shell", "preset": "tiny", "steps": 6, "set": {"batch": "8", "eval_images": "8"}, "eval": {"noise": 0, "pairs": 0},
		"parts": [{"name": "main", "models": ["betavae"], "datasets": ["shapes3d-synthetic"], "seeds": [0, 1]}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, said := says(t, "sweep", plan, "--executor", "slurm", "--data", dir, "--engine", "cpu", "--slurm", "time=5", "--json")
	var answer sweep.Record
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || answer.Done != 2 || strings.Count(said, "submitted 2 runs to SLURM") != 1 {
		t.Errorf("sweep --executor slurm: exit code %d, stdout %q (%v), stderr %s", code, out, err, said)
	}
}

// arrayOfASweep checks that a sweep's two runs are trained by one job array with the requested time limit.
func arrayOfASweep(t *testing.T, s *site) {
	t.Helper()
	var answer sweep.Record
	s.want(http.StatusCreated, "POST", "/api/sweeps", map[string]any{"name": "two seeds", "preset": "tiny", "steps": 6,
		"set":   map[string]string{"batch": "8", "eval_images": "8", "engine": "cpu"},
		"parts": []map[string]any{{"name": "main", "models": []string{"qlae"}, "datasets": []string{"shapes3d-synthetic"}, "seeds": []int{0, 1}}},
		"eval":  map[string]int{"noise": 0, "pairs": 0}, "executor": "slurm", "slurm": []string{"time=5"}}, &answer)
	for end := time.Now().Add(time.Minute); answer.Live+answer.Done < 2 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s.want(http.StatusOK, "GET", "/api/sweeps/"+answer.ID, nil, &answer)
	}
	jobs := map[string]bool{}
	for _, item := range answer.Items {
		s.reachState(item.Run, model.Finished)
		job, err := s.folder(item.Run).Job()
		if err != nil || !job.Asks.Equal(model.AsksOf("time=5")) {
			t.Errorf("%+v: %v", job, err)
		}
		array, task, _ := strings.Cut(job.ID, "_")
		jobs[array] = true
		if out, err := exec.Command("scontrol", "show", "job", job.ID).CombinedOutput(); err != nil || !strings.Contains(string(out), "TimeLimit=00:05:00") {
			t.Errorf("task %s: %v\n%s", task, err, out)
		}
	}
	if len(answer.Items) != 2 || len(jobs) != 1 {
		t.Errorf("%d runs in the arrays %v", len(answer.Items), jobs)
	}
}

// submitFromShell submits a run from a login node without a server.
func submitFromShell(t *testing.T, dir string) (id string) {
	t.Helper()
	code, out, said := says(t, "train", "--executor", "slurm", "--data", dir, "--preset", "tiny", "--engine", "cpu", "--steps", "48", "--batch", "16",
		"--set", "checkpoint_every=8", "--set", "eval_images=8", "--set", "evaluate=quick", "--slurm", "time=10", "--json")
	var answer struct{ Run, Job string }
	if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || answer.Job == "" {
		t.Fatalf("train --executor slurm: exit code %d, stdout %q (%v), stderr %s", code, out, err, said)
	}
	return answer.Run
}
