//go:build linux

package jobs

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"slotscope/db"
	"slotscope/model"
	"slotscope/model/folder"
)

// TestMain lets the test binary act as the processes around the supervisor: a trainer, which follows the real folder protocol
// with real locks and signals, and a complete server.
func TestMain(m *testing.M) {
	switch os.Getenv("JOBS_TEST_ROLE") {
	case "trainer":
		fakeTrainer(os.Args[len(os.Args)-1])
	case "evaluator":
		fakeEvaluator(os.Args[len(os.Args)-1])
	case "server":
		fakeServer(os.Args[len(os.Args)-1])
	}
	goleak.VerifyTestMain(m)
}

// fakeTrainer simulates training the run in dir. The run's name can request a fault, e.g. "panic@7".
func fakeTrainer(dir string) {
	f, err := folder.Open(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m, _ := f.Meta()
	trouble, at, _ := strings.Cut(m.Name, "@")
	stop := make(chan os.Signal, 1)
	if trouble == "slow" {
		time.Sleep(time.Second) // before it handles signals or takes the lock
	}
	signal.Notify(stop, syscall.SIGTERM)
	lock, err := f.Lock()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	t := &trainer{Folder: f, stop: stop, trouble: trouble, lock: lock}
	t.at, _ = strconv.Atoi(at)
	t.pause, _ = time.ParseDuration(os.Getenv("JOBS_TEST_PAUSE"))
	os.Exit(t.run())
}

// fakeEvaluator follows the folder protocol of `slotscope eval`: it waits until the run's folder contains a file "go".
func fakeEvaluator(dir string) {
	f, err := folder.Open(dir)
	must(err)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	lock, err := f.LockEvaluation()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	e, _ := f.Evaluation()
	e.State, e.PID, e.Started, e.Said = model.Running, os.Getpid(), time.Now().UTC(), "encoding  12 of 400 images"
	must(f.SetEvaluation(e))
	e.State = ""
	for e.State == "" {
		select {
		case <-stop:
			e.State, e.Reason = model.Stopped, "The evaluation was cancelled."
		case <-time.After(2 * time.Millisecond):
			if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
				e.State = model.Finished
			}
		}
	}
	e.Ended = time.Now().UTC()
	must(f.SetEvaluation(e))
	lock.Unlock()
	os.Exit(0)
}

// evaluator returns the command of the fake evaluator.
func evaluator(dir string, _ []string) (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0], "eval", dir)
	cmd.Env = append(os.Environ(), "JOBS_TEST_ROLE=evaluator", "GORACE=atexit_sleep_ms=0")
	return cmd, nil
}

type trainer struct {
	*folder.Folder
	stop    chan os.Signal
	trouble string
	at      int
	pause   time.Duration
	lock    *folder.Lock
	status  model.Status
	points  *folder.Appender
}

func (t *trainer) run() int {
	t.status, _ = t.Status()
	if told := os.Getenv(folder.AttemptVariable); told != "" && told != strconv.Itoa(t.status.Attempt+1) {
		fmt.Fprintln(os.Stderr, "too late to be attempt", told)
		return 1
	}
	t.status.State, t.status.PID, t.status.Reason, t.status.Ended = model.Running, os.Getpid(), "", time.Time{}
	t.status.Attempt++
	t.status.Engine = t.Config().Engine
	must(t.SetStatus(t.status)) // as in the real trainer: Resumed still has the value of the previous attempt
	t.restore()
	for step := t.status.Step + 1; step <= t.Config().Steps; step++ {
		if t.stopped() {
			t.save()
			return t.end(model.Stopped, "Stopped, saved.", 130)
		}
		if code, over := t.step(step); over {
			return code
		}
	}
	t.save()
	if t.trouble == "evaluate" {
		must(t.QueueEvaluation(model.Evaluation{State: model.Queued, Effort: model.Quick, Asked: time.Now().UTC()}))
	}
	return t.end(model.Finished, "All steps are done.", 0)
}

func (t *trainer) stopped() bool {
	select {
	case <-t.stop:
		return t.trouble != "deaf"
	default:
		return false
	}
}

func (t *trainer) restore() {
	step := t.Latest()
	t.status.Step, t.status.Checkpoint, t.status.Resumed = step, step, step
	must(t.TruncatePoints(step))
	var err error
	t.points, err = t.Points()
	must(err)
}

// values of a step: the expected value, the attempt, and a value that is not always a number.
func values(step, attempt int) map[string]float64 {
	odd := float64(step)
	if step%13 == 0 {
		odd = math.NaN()
	}
	return map[string]float64{"total": 1 / float64(step), "attempt": float64(attempt), "odd": odd}
}

func (t *trainer) step(step int) (code int, over bool) {
	time.Sleep(t.pause)
	measured := values(step, t.status.Attempt)
	if t.trouble == "nan" && step >= t.at {
		measured["total"] = math.NaN()
	}
	must(t.points.Append(model.Point{Step: step, Time: time.Now(), Values: measured}))
	must(t.points.Flush())
	t.status.Step = step
	if step%t.Config().CheckpointEvery == 0 {
		t.save()
	}
	if step%5 == 0 {
		must(t.SetStatus(t.status))
	}
	if step != t.at {
		return 0, false
	}
	switch t.trouble {
	case "panic":
		panic("the tensor is upside down")
	case "exit":
		fmt.Fprintln(os.Stderr, "no such luck")
		os.Exit(3)
	case "kill":
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			self.Kill()
		}
		time.Sleep(time.Minute)
	case "error":
		return t.end(model.Failed, "The loss is not a number at step 7.", 1), true
	}
	return 0, false
}

func (t *trainer) save() {
	step := t.status.Step
	if step == 0 {
		return
	}
	for _, path := range []string{t.OptimizerPath(step), t.CheckpointPath(step)} {
		must(t.points.Sync())
		must(os.WriteFile(path+".part", []byte("tensors"), 0o644))
		must(os.Rename(path+".part", path))
	}
	must(t.WriteSample(step, []byte("png")))
	t.status.Checkpoint = step
}

func (t *trainer) end(state model.State, reason string, code int) int {
	must(t.points.Close())
	t.status.State, t.status.Reason, t.status.Ended = state, reason, time.Now().UTC()
	must(t.SetStatus(t.status))
	return code
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// command returns the command of the fake trainer.
func command(pause time.Duration) func(string) (*exec.Cmd, error) {
	return func(dir string) (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0], "train", "--run", dir)
		cmd.Env = append(os.Environ(), "JOBS_TEST_ROLE=trainer", "JOBS_TEST_PAUSE="+pause.String(), "GORACE=atexit_sleep_ms=0")
		return cmd, nil
	}
}

// options returns the options of a fast supervisor on a data folder.
func options(data *folder.Data, store Store) Options {
	return Options{Data: data, Store: store, Command: command(2 * time.Millisecond), Evaluate: evaluator, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Poll: 5 * time.Millisecond, Scan: 20 * time.Millisecond, AlertPoll: 5 * time.Millisecond, ForceAfter: 300 * time.Millisecond}
}

// fakeServer supervises dir until it is killed, and resumes runs that ended early.
func fakeServer(dir string) {
	lock, err := folder.LockData(dir)
	must(err)
	defer lock.Unlock()
	data, err := folder.Root(dir)
	must(err)
	store, err := db.Open(background, filepath.Join(dir, "index.db"))
	must(err)
	s, err := New(background, options(data, store))
	must(err)
	json.NewEncoder(os.Stdout).Encode("ready")
	for {
		time.Sleep(3 * time.Millisecond)
		runs, err := s.List(background)
		must(err)
		for _, r := range runs {
			if r.State == model.Failed || r.State == model.Interrupted {
				s.Resume(background, r.ID, 0) // a conflict is temporary
			}
		}
	}
}
