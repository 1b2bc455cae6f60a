//go:build linux

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/compute/cpu"
	"slotscope/model/expect"
)

// TestServeInParallel checks that a server with --parallel 2 trains two of three runs, each on its share of the cores, and starts the third
// when one of them ends.
func TestServeInParallel(t *testing.T) {
	t.Parallel()
	expect.Long(t)
	dir := filepath.Join(t.TempDir(), "data")
	cmd := command(t, "serve", "--shipped=false", "--parallel", "2", "--addr", "127.0.0.1:0", "--data", dir)
	cmd.Env = append(cmd.Env, cpu.ThreadsEnv+"=")
	s := started(t, cmd, dir)
	ids := make([]string, 3)
	for i := range ids {
		var run model.Run
		config := map[string]any{"engine": "cpu", "steps": 100000, "batch": 4, "seed": i, "evaluate": "none"}
		s.want(http.StatusCreated, http.MethodPost, "/api/runs", map[string]any{"config": config}, &run)
		s.folder(run.ID)
		ids[i] = run.ID
	}
	works := func(r model.Run) bool { return r.State == model.Running && r.Step > 0 }
	for _, id := range ids[:2] {
		if threads, want := threadsOf(t, s.reach(id, "running", works).PID), strconv.Itoa(max(1, cpu.Cores()/2)); threads != want {
			t.Errorf("run %s has %s threads, want %s of %d", id, threads, want, cpu.Cores())
		}
	}
	if r := s.run(ids[2]); r.State != model.Queued {
		t.Errorf("with two runs in progress, the third is %s", r.State)
	}
	s.want(http.StatusAccepted, http.MethodPost, "/api/runs/"+ids[0]+"/stop", map[string]any{}, nil)
	s.reachState(ids[0], model.Stopped)
	s.reach(ids[2], "running", works)
	if r := s.run(ids[1]); r.State != model.Running {
		t.Errorf("after the stop of the first, the second run is %s", r.State)
	}
	for _, id := range ids[1:] {
		s.want(http.StatusAccepted, http.MethodPost, "/api/runs/"+id+"/stop", map[string]any{}, nil)
		s.reachState(id, model.Stopped)
	}
	s.close()
}

// threadsOf returns the number of threads set in a process's environment.
func threadsOf(t *testing.T, pid int) string {
	t.Helper()
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	const name = cpu.ThreadsEnv + "="
	found := slices.DeleteFunc(strings.Split(string(env), "\x00"), func(v string) bool { return !strings.HasPrefix(v, name) })
	if len(found) == 0 {
		return "an unset number of"
	}
	return strings.TrimPrefix(found[len(found)-1], name)
}
