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

// child is a process started here. It has its own session, so that neither a signal to the server's terminal nor the end of the server
// affects it.
type child struct{ process *os.Process }

// exit is how a child ended.
type exit struct {
	pid     int
	status  syscall.WaitStatus
	unknown bool // the status is unknown, because somebody else has waited for it
}

// Device is a compute device for one run at a time.
type Device struct {
	Name string   // unique, and stable across servers
	Env  []string // environment variables that restrict a process to this device, as name=value
}

// spawn starts the process of a run on a device; its output is appended to log.txt. The process receives the number of its attempt, because
// a previous server may have started the same attempt just before it died.
func (s *Supervisor) spawn(f *folder.Folder, on Device, attempt int) (*child, error) {
	cmd, err := s.o.Command(f.Dir())
	if err != nil {
		return nil, err
	}
	return launch(f, cmd, append(slices.Clone(on.Env), fmt.Sprintf("%s=%d", folder.AttemptVariable, attempt)))
}

// launch starts a process in its own session with additional environment variables; its output is appended to the run's log.txt.
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

// reap returns how the child ended, or nil while it is running. It never blocks.
func (c *child) reap() *exit {
	status, ended, known := host.Reap(c.process)
	if !ended {
		return nil
	}
	pid := c.process.Pid
	c.process.Release()
	return &exit{pid: pid, status: status, unknown: !known}
}

// leave waits briefly for the child of a run that has recorded its end, and reports whether no child is left. The caller
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

// sentence returns a sentence on how the process exited without recording a final state; log is the end of its output.
func (x exit) sentence(log string) string {
	switch {
	case x.status.Signaled() && x.status.Signal() == syscall.SIGKILL:
		return "The process was killed (signal 9); the machine may have run out of memory."
	case x.status.Signaled():
		return fmt.Sprintf("The process was ended by signal %d (%v).%s", x.status.Signal(), x.status.Signal(), lastWords(log))
	}
	return fmt.Sprintf("The process exited with status %d and no message.%s", x.status.ExitStatus(), lastWords(log))
}

// lastWords returns the line of a log that most likely has the cause: a Go panic, or else the last line.
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

// startQueued starts queued runs on free devices, longest waiting first.
func (s *Supervisor) startQueued(ctx context.Context) {
	s.o.Devices(evalEngine) // before mu is held, because the first call may wait for a command of the GPU's driver
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

// device returns the name of the device of a busy run: the assigned one, or the first that its engine would use.
func (s *Supervisor) device(e *entry) string {
	engine := e.run.Config.Engine // as configured
	if e.locked && e.run.Engine != "" {
		engine = e.run.Engine // as selected by the run
	}
	devices := s.o.Devices(engine)
	if len(devices) == 0 || slices.ContainsFunc(devices, func(d Device) bool { return d.Name == e.job.Device }) {
		return e.job.Device
	}
	return devices[0].Name
}

// start starts a queued run; if that is not possible, the run fails. The caller holds mu.
func (s *Supervisor) start(ctx context.Context, e *entry, on Device) bool {
	f, err := s.o.Data.Open(e.run.ID)
	if err != nil {
		return false // the next visit reports why
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

// assign records the device of a run if the device restricts its process, so that the next server knows it. The caller holds mu.
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
