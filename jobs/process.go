package jobs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/host"
)

// child is a process started here. It has its own session, so that neither a signal to the server's terminal nor the
// server's end reaches it.
type child struct{ process *os.Process }

// exit is how a child ended.
type exit struct {
	pid     int
	status  syscall.WaitStatus
	unknown bool // somebody else has waited for it
}

// Device is one thing that computes, for one run at a time.
type Device struct {
	Name string   // tells it from others, also to the next server
	Env  []string // what a process needs to be told so that it takes this one alone, as name=value
}

// spawn starts the process of a run on a device; its output goes to the end of log.txt. It is told which attempt it is, for the
// server before this one may have started that too a moment before it died.
func (s *Supervisor) spawn(f *folder.Folder, on Device, attempt int) (*child, error) {
	cmd, err := s.o.Command(f.Dir())
	if err != nil {
		return nil, err
	}
	return launch(f, cmd, append(slices.Clone(on.Env), fmt.Sprintf("%s=%d", folder.AttemptVariable, attempt)))
}

// launch starts a process in a session of its own, with more in its environment; its output goes to the end of the run's log.txt.
func launch(f *folder.Folder, cmd *exec.Cmd, env []string) (*child, error) {
	out, err := f.OpenLog()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(cmd.Environ(), env...)
	host.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd.Process}, nil
}

// reap says how the child ended, or nil while it lives. It never waits.
func (c *child) reap() *exit {
	status, ended, known := host.Reap(c.process)
	if !ended {
		return nil
	}
	pid := c.process.Pid
	c.process.Release()
	return &exit{pid: pid, status: status, unknown: !known}
}

// leave waits a moment for the child of a run that has said its last word, and says whether there is none now. The caller
// holds mu.
func (e *entry) leave() bool {
	for deadline := time.Now().Add(2 * time.Second); e.child != nil && e.run.State.Ended(); time.Sleep(5 * time.Millisecond) {
		if e.exit = e.child.reap(); e.exit != nil {
			e.child = nil
		} else if time.Now().After(deadline) {
			break
		}
	}
	return e.child == nil
}

// sentence tells how the process exited without a final state of its own; log is the end of its output.
func (x exit) sentence(log string) string {
	switch {
	case x.status.Signaled() && x.status.Signal() == syscall.SIGKILL:
		return "The process was killed (signal 9); the machine may have run out of memory."
	case x.status.Signaled():
		return fmt.Sprintf("The process was ended by signal %d (%v).%s", x.status.Signal(), x.status.Signal(), lastWords(log))
	}
	return fmt.Sprintf("The process exited with status %d and no message.%s", x.status.ExitStatus(), lastWords(log))
}

// lastWords picks the line of a log that most likely says what happened: where a Go program panicked, or the last one.
func lastWords(log string) string {
	lines := slices.DeleteFunc(strings.Split(log, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	if len(lines) == 0 {
		return ""
	}
	words := lines[len(lines)-1]
	for _, l := range lines {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			words = l
			break
		}
	}
	if r := []rune(words); len(r) > 300 {
		words = string(r[:300]) + "…"
	}
	return fmt.Sprintf(" Last log line: %q.", strings.TrimSpace(words))
}

// startQueued starts the runs whose turn has come: the longest waiting first, each on a device that is free.
func (s *Supervisor) startQueued(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	busy := map[string]bool{}
	var waiting []*entry
	for _, e := range s.runs {
		switch {
		case e.busy():
			busy[s.device(e)] = true
		case s.clustered(e):
			if e.run.State == model.Queued && !e.submitted() && !e.submitting {
				s.lookCluster()
			}
		case e.run.State == model.Queued && !e.locked:
			waiting = append(waiting, e)
		}
	}
	slices.SortFunc(waiting, func(a, b *entry) int {
		if c := a.run.Updated.Compare(b.run.Updated); c != 0 {
			return c
		}
		return strings.Compare(a.run.ID, b.run.ID)
	})
	s.startEvaluations(busy)
	for _, e := range waiting {
		for _, d := range s.o.Devices(e.run.Config.Engine) {
			if !busy[d.Name] {
				busy[d.Name] = s.start(ctx, e, d)
				break
			}
		}
	}
}

// device names what a busy run works on: what it was given, or the first that its engine would take.
func (s *Supervisor) device(e *entry) string {
	engine := e.run.Config.Engine // what it was told
	if e.locked && e.run.Engine != "" {
		engine = e.run.Engine // what it found
	}
	devices := s.o.Devices(engine)
	if len(devices) == 0 || slices.ContainsFunc(devices, func(d Device) bool { return d.Name == e.job.Device }) {
		return e.job.Device
	}
	return devices[0].Name
}

// start begins a queued run; one that cannot be started has failed. The caller holds mu.
func (s *Supervisor) start(ctx context.Context, e *entry, on Device) bool {
	f, err := s.o.Data.Open(e.run.ID)
	if err != nil {
		return false // the next look says why
	}
	defer f.Close()
	e.forgive()
	e.exit = nil
	err = s.assign(f, e, on)
	var c *child
	if err == nil {
		c, err = s.spawn(f, on, e.run.Attempt+1)
	}
	if err == nil {
		e.child = c
		e.moves++
		s.o.Log.Info("run started", "run", e.run.ID, "pid", c.process.Pid)
		return true
	}
	r, endErr := end(f, 0, func(model.Status) (model.State, string) {
		return model.Failed, fmt.Sprintf("Its process could not be started: %v.", err)
	})
	if endErr != nil {
		s.say(e, e.run.ID, endErr)
	}
	if err := s.save(ctx, e, r); err != nil {
		s.say(e, e.run.ID, err)
	}
	return false
}

// assign writes down which device a run is given, where it is told, so that the next server knows too. The caller holds mu.
func (s *Supervisor) assign(f *folder.Folder, e *entry, on Device) error {
	job := model.Job{Executor: e.job.Executor}
	if len(on.Env) > 0 {
		job = model.Job{Executor: model.Local, Device: on.Name}
	}
	if job.Equal(e.job) {
		return nil
	}
	e.job = job
	return f.SetJob(job)
}
