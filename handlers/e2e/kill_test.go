//go:build linux

package e2e_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/expect"
	"slotscope/model/folder"
)

// killing is a run that is repeatedly killed, with or without its server.
type killing struct {
	t   *testing.T
	rng *rand.Rand
	*site
	id      string
	f       *folder.Folder
	pid     int  // of the run's process
	working bool // whether that process is alive
	small   bool // the data folder is on its own small disk
	full    bool // that disk is full, so the process may end by itself
	redone  int  // number of resumes that dropped points

	read folder.Cursor // position of lastStep in points.jsonl
	last int           // last step found there
}

// TestKillAnything kills runs and servers at random points. After every restart the state must be correct and nothing stored may be torn;
// in the end every step must be exactly once in the file and in the index.
func TestKillAnything(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SLOTSCOPE_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("SLOTSCOPE_SEED=%d repeats these choices", seed)
	k := &killing{t: t, rng: rand.New(rand.NewPCG(seed, 0))}
	dir, err := smallDisk(t, "256m")
	if k.small = err == nil; !k.small {
		t.Logf("not testing a full disk: mounting a small one: %v", err)
	}
	k.site = serve(t, dir)
	count := 5
	if expect.All() {
		count = 20
	}
	if text := os.Getenv("SLOTSCOPE_KILLS"); text != "" {
		count, _ = strconv.Atoi(text)
	}
	rounds := k.plan(count)
	if testing.Short() {
		rounds = rounds[:min(9, count)]
	}
	k.create()
	for i, round := range rounds {
		k.begin()
		t.Logf("round %d, at step %d: %s", i+1, k.lastStep(), round.name)
		round.kill(k)
		k.check()
	}
	k.end()
}

type round struct {
	name string
	kill func(*killing)
}

// plan returns count rounds in random order, with every kind among the first nine.
func (k *killing) plan(count int) []round {
	kinds := []round{
		{"the run, then the server", (*killing).runThenServer},
		{"the server, then the run", (*killing).serverThenRun},
		{"the run alone", (*killing).runAlone},
		{"the server alone", (*killing).serverAlone},
		{"the server while it starts the run", (*killing).serverWhileStarting},
		{"the run while it starts", (*killing).runWhileBeginning},
		{"the run while it is stopped", (*killing).runWhileStopped},
		{"the run within a write", (*killing).runWithinWrite},
	}
	if k.small {
		kinds = append(kinds, round{"the run on a full disk", (*killing).runOnFullDisk})
	}
	var all []round
	for len(all) < count {
		k.rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		all = append(all, kinds...)
	}
	return all[:count]
}

func (k *killing) create() {
	var r model.Run
	k.want(http.StatusCreated, "POST", "/api/runs", tinyConfig("steps=1000000"), &r)
	k.id, k.f = r.ID, k.folder(r.ID)
	k.started()
}

// started waits until the server has started the run's process.
func (k *killing) started() {
	k.t.Helper()
	await(k.t, "the run's process is started", func() bool { return len(k.starts(k.id)) > 0 })
	pids := k.starts(k.id)
	k.pid, k.working = pids[len(pids)-1], true
}

// begin resumes the run if necessary and lets it make some progress.
func (k *killing) begin() {
	k.t.Helper()
	if !k.working {
		k.resume()
		k.started()
		await(k.t, "the process has begun", func() bool { // otherwise steps of the previous process could satisfy the condition below
			s, err := k.f.Status()
			return err == nil && s.State == model.Running && s.PID == k.pid
		})
	}
	until := k.f.Latest() + k.rng.IntN(30)
	beyond := k.rng.IntN(2) == 0 // wait until the file has steps after the checkpoint
	await(k.t, "the run makes progress", func() bool {
		if s, err := k.f.Status(); err == nil && s.State.Ended() {
			k.t.Fatalf("the run ended by itself: %+v", s)
		}
		last := k.lastStep()
		return last > until && (!beyond || last > k.f.Latest())
	})
	if !beyond {
		k.wait(100)
	}
}

func (k *killing) resume() {
	k.t.Helper()
	if k.lastStep() > k.f.Latest() {
		k.redone++
	}
	k.forget()
	k.want(http.StatusAccepted, "POST", "/api/runs/"+k.id+"/resume", map[string]any{}, nil)
}

// forget clears the server's log, so that it lists only processes started from now on.
func (k *killing) forget() {
	k.log.mu.Lock()
	defer k.log.mu.Unlock()
	k.log.b.Reset()
}

// wait sleeps for a random time of up to ms milliseconds.
func (k *killing) wait(ms int) {
	time.Sleep(time.Duration(k.rng.IntN(ms*1000)) * time.Microsecond)
}

// lastStep returns the last step with a complete line in points.jsonl.
func (k *killing) lastStep() int {
	k.t.Helper()
	for {
		points, next, rewound, err := k.f.Follow(k.read)
		if err != nil {
			k.t.Fatal(err)
		}
		if rewound {
			k.last = 0
		} else if next == k.read {
			return k.last
		}
		if len(points) > 0 {
			k.last = points[len(points)-1].Step
		}
		k.read = next
	}
}

// killRun kills the run's process, and any second one that was started and waits for the lock.
func (k *killing) killRun() {
	k.t.Helper()
	if err := syscall.Kill(k.pid, syscall.SIGKILL); err != nil && !(k.full && errors.Is(err, syscall.ESRCH)) {
		k.t.Fatalf("the run's process %d: %v", k.pid, err)
	}
	await(k.t, "the killed process and its lock are gone", func() bool {
		h, held := k.f.Holder()
		if held && h.PID != 0 && h.PID != k.pid && h.PID != k.cmd.Process.Pid {
			syscall.Kill(h.PID, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond) // longer than the interval between attempts to lock
		return !held && !alive(k.pid) && !k.f.Locked()
	})
	k.working = false
}

func (k *killing) restart() { k.site = serve(k.t, k.dir) }

func (k *killing) runThenServer() {
	k.killRun()
	k.wait(400)
	k.kill()
	k.restart()
}

func (k *killing) serverThenRun() {
	k.kill()
	k.wait(200)
	k.killRun()
	k.restart()
}

func (k *killing) runAlone() {
	k.killRun()
	k.reach(k.id, "ended", func(r model.Run) bool { return r.State.Ended() })
}

func (k *killing) serverAlone() {
	k.kill()
	k.wait(200)
	k.restart()
}

// runWhileStopped suspends the process first, as a scheduler or a terminal may do at any point.
func (k *killing) runWhileStopped() {
	k.t.Helper()
	if err := syscall.Kill(k.pid, syscall.SIGSTOP); err != nil {
		k.t.Fatal(err)
	}
	k.wait(300)
	k.runAlone()
}

// runWithinWrite leaves an incomplete line in points.jsonl, as after a kill during a write.
func (k *killing) runWithinWrite() {
	k.t.Helper()
	k.killRun()
	points, err := os.OpenFile(filepath.Join(k.f.Dir(), "points.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		k.t.Fatal(err)
	}
	line := []string{`{"step":1000000,"time":"2026-01-01T00:00:00Z","values":{"total":0.5}`, `{"series":["total"],"time":"2026-01-01T00:00:00Z","crc":"01`, `[1000000,0.25,0.5,0.125,"01`}[k.rng.IntN(3)]
	if _, err := points.WriteString(line[:1+k.rng.IntN(len(line)-1)]); err != nil {
		k.t.Fatal(err)
	}
	points.Close()
	k.reach(k.id, "ended", func(r model.Run) bool { return r.State.Ended() })
}

// runOnFullDisk fills the disk and frees it again after the run has ended by itself, was killed, or was killed with its server.
func (k *killing) runOnFullDisk() {
	k.t.Helper()
	path := filepath.Join(k.dir, "ballast")
	ballast, err := os.Create(path)
	if err != nil {
		k.t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err = ballast.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		k.t.Fatalf("the disk is not full: %v", err)
	}
	ballast.Close()
	k.full, k.errors = true, append(k.errors, "no space left on device")
	switch k.rng.IntN(3) {
	case 0:
		await(k.t, "the process without disk space ends", func() bool { return !k.f.Locked() })
		k.working = false
	case 1:
		k.wait(200)
		k.killRun()
	case 2:
		k.wait(200)
		k.killRun()
		k.kill()
	}
	if err := os.Remove(path); err != nil {
		k.t.Fatal(err)
	}
	k.full = false
	if k.cmd.ProcessState != nil {
		k.restart()
	}
	k.reach(k.id, "ended", func(r model.Run) bool { return r.State.Ended() })
	await(k.t, "the final state is written to the folder once there is space", func() bool {
		s, err := k.f.Status()
		return err == nil && s.State.Ended()
	})
}

// serverWhileStarting kills the server while the run may be queued, started or running; the next server must continue from there.
func (k *killing) serverWhileStarting() {
	k.killRun()
	k.reach(k.id, "ended", func(r model.Run) bool { return r.State.Ended() })
	k.resume()
	k.wait(40)
	k.kill()
	k.restart()
	k.reachState(k.id, model.Running)
	await(k.t, "the running process is known", func() bool {
		h, held := k.f.Holder()
		k.pid, k.working = h.PID, held
		return held && h.PID != 0
	})
}

// runWhileBeginning kills a process that may not have taken its lock, read its checkpoint or truncated its points yet. If it had not, and
// the server was killed before it saw the end, the run is still queued and the next server starts it.
func (k *killing) runWhileBeginning() {
	k.killRun()
	k.reach(k.id, "ended", func(r model.Run) bool { return r.State.Ended() })
	k.resume()
	k.started()
	k.wait(300)
	k.runThenServer()
	if state := k.run(k.id).State; state == model.Queued || state == model.Running {
		k.started()
		k.reachState(k.id, model.Running)
	}
}

// check compares the run's state in the API and in its folder with reality after a round.
func (k *killing) check() {
	k.t.Helper()
	r := k.run(k.id)
	kept, err := k.f.Status()
	if err != nil {
		k.t.Errorf("state.json: %v", err)
	}
	if k.working {
		if r.State != model.Running || r.PID != k.pid || !alive(r.PID) {
			k.t.Errorf("process %d is running, but the state is %+v", k.pid, r.Status)
		}
		return
	}
	if r.State != model.Interrupted && r.State != model.Failed || r.Reason == "" || r.Ended.IsZero() || kept.State != r.State || kept.Reason != r.Reason {
		k.t.Errorf("no process is running, but the state is %+v; its folder has %s, %q", r.Status, kept.State, kept.Reason)
	}
	if r.Checkpoint != k.f.Latest() || r.Step < r.Checkpoint {
		k.t.Errorf("step %d, checkpoint %d; the newest is of step %d", r.Step, r.Checkpoint, k.f.Latest())
	}
	k.stored(k.id, k.lastStep())
}

// stored waits until the index has the last step of a run and checks that it has all steps before.
func (s *site) stored(id string, last int) {
	s.t.Helper()
	var page model.PointPage
	await(s.t, "the index has all steps of the file", func() bool {
		s.want(http.StatusOK, "GET", "/api/runs/"+id+"/points?names=total&columns=1", nil, &page)
		return page.Head == last
	})
	if page.Count != last {
		s.t.Errorf("%d of %d steps are stored", page.Count, last)
	}
}

// end lets the run finish and compares the measured points with the stored ones.
func (k *killing) end() {
	k.t.Helper()
	if k.working {
		k.want(http.StatusAccepted, "POST", "/api/runs/"+k.id+"/stop", map[string]any{}, nil)
		k.reachState(k.id, model.Stopped)
	}
	last := k.f.Latest() + 12
	k.want(http.StatusAccepted, "POST", "/api/runs/"+k.id+"/resume", map[string]any{"steps": last}, nil)
	r := k.reachState(k.id, model.Finished)
	totals := wholeFile(k.t, k.f, last)
	k.stored(k.id, last)
	k.wholeIndex(k.id, totals)
	if k.redone == 0 {
		k.t.Error("no resume dropped points, so the test proves nothing")
	}
	k.t.Logf("%d steps by %d processes; %d resumes dropped points", last, r.Attempt, k.redone)
	k.close()
}

// TestFirstAnswerAfterLongAbsence lets a run continue and die while no server is running, with more points than one read covers. The
// first response of the next server must have the run as interrupted.
func TestFirstAnswerAfterLongAbsence(t *testing.T) {
	t.Parallel()
	const first, last = 100, 12_000
	root, err := folder.Root(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	f, err := root.Create(cfg, "long", model.Status{State: model.Running, Attempt: 1, PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	measure(t, f, 1, first)
	s := serve(t, root.Dir())
	s.stored(f.ID(), first)
	s.reachState(f.ID(), model.Running)
	s.kill()
	measure(t, f, first+1, last)
	lock.Unlock()
	s = serve(t, root.Dir())
	if r := s.run(f.ID()); r.State != model.Interrupted || r.Reason == "" {
		t.Errorf("first response: %s, %q", r.State, r.Reason)
	}
	s.stored(f.ID(), last)
	s.close()
}

// measure appends points from one step to another.
func measure(t *testing.T, f *folder.Folder, from, to int) {
	t.Helper()
	points, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := from; step <= to; step++ {
		values := map[string]float64{}
		for _, name := range []string{"total", "recon", "vq", "commit", "codebook", "grad_norm", "latent/mean", "latent/var", "codebook/mean"} {
			values[name] = 1 / (1 + float64(step) + float64(len(name)))
		}
		if err := points.Append(model.Point{Step: step, Time: time.Now().UTC(), Values: values}); err != nil {
			t.Fatal(err)
		}
	}
	if err := points.Close(); err != nil {
		t.Fatal(err)
	}
}
