package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// mostRestarts is how often a job is requeued after its run was killed.
const mostRestarts = 10

// lastWait is how long a requeued job waits for SLURM to end its process.
var lastWait = patience

// Step executes a job on its node: it trains the run in dir in a separate process and evaluates the run if an evaluation is queued for the
// job. It requeues the job if the run was killed or the time limit is near, unless a stop was requested. It returns the exit status of the
// process. When ctx ends, the run is signalled to save.
func Step(ctx context.Context, dir, program string, out io.Writer) (code int, err error) {
	f, err := folder.Open(dir)
	if err != nil {
		return 1, err
	}
	defer f.Close()
	if holder, held := f.Holder(); held {
		fmt.Fprintf(out, "run %s is already being trained by %v; this job has nothing to do\n", f.ID(), holder)
		return 0, nil
	}
	job, err := enter(f)
	if err != nil {
		return 1, err
	}
	over, err := nothingToDo(f, job)
	if err != nil {
		return 0, err
	}
	if !over {
		if code, err = train(ctx, f, program, out); code != 0 || err != nil {
			return code, err
		}
	}
	return evaluate(ctx, f, program, out)
}

// train trains the run to its end, or requeues the job.
func train(ctx context.Context, f *folder.Folder, program string, out io.Writer) (code int, err error) {
	code, err = child(ctx, f, program, "train", "--run", f.Dir(), "--evaluate-later")
	if err != nil {
		return 1, err
	}
	again, why, err := requeue(ctx, f, code)
	fmt.Fprintf(out, "run %s ended with status %d: %s\n", f.ID(), code, why)
	if err != nil || !again {
		return code, err
	}
	if err := waitAgain(f); err != nil {
		return code, err
	}
	return code, putBack(ctx)
}

// putBack requeues the job, which makes SLURM end this process.
func putBack(ctx context.Context) error {
	if _, err := ask(context.WithoutCancel(ctx), "", "scontrol", "requeue", own()); err != nil {
		return err
	}
	time.Sleep(lastWait)
	return nil
}

// evaluate evaluates a finished run if its evaluation is queued for the job. An evaluation that the job's time limit ends is queued
// again together with the job.
func evaluate(ctx context.Context, f *folder.Folder, program string, out io.Writer) (code int, err error) {
	wanted, err := f.Evaluation()
	if err != nil || wanted.State != model.Queued || wanted.Executor != model.Slurm {
		return 0, err
	}
	if code, err = child(ctx, f, program, "eval", f.Dir(), "--effort", wanted.Effort); err != nil {
		return 1, err
	}
	job, err := f.Job()
	fmt.Fprintf(out, "the evaluation of run %s ended with status %d\n", f.ID(), code)
	if err != nil || ctx.Err() == nil || job.Stop || code == 0 || ending() {
		return code, err
	}
	if err := f.QueueEvaluation(wanted); err != nil {
		return code, err
	}
	return code, putBack(ctx)
}

// own returns the ID of this job in squeue's format.
func own() string {
	if array := os.Getenv("SLURM_ARRAY_JOB_ID"); array != "" {
		return array + "_" + os.Getenv("SLURM_ARRAY_TASK_ID")
	}
	return os.Getenv("SLURM_JOB_ID")
}

// enter records this job in the folder, in case the process that submitted it was killed before it could.
func enter(f *folder.Folder) (model.Job, error) {
	id := own()
	if id == "" {
		return model.Job{}, errors.New("not a SLURM job: $SLURM_JOB_ID is not set")
	}
	job, err := f.Job()
	if err != nil {
		return job, err
	}
	if job.ID != id {
		job = model.Job{Executor: model.Slurm, ID: id, Submitted: time.Now().UTC(), Asks: job.Asks}
		err = f.SetJob(job)
	}
	return job, err
}

// nothingToDo reports whether the run is finished, or was stopped while the job was waiting.
func nothingToDo(f *folder.Folder, job model.Job) (bool, error) {
	status, err := f.Status()
	if err != nil || status.State == model.Finished {
		return true, err
	}
	if !job.Stop {
		return false, nil
	}
	return true, change(f, func(s *model.Status) {
		if !s.State.Ended() {
			s.State, s.Reason, s.Ended = model.Stopped, "Stopped before it started.", time.Now().UTC()
		}
	})
}

// change updates the status of a run that no process holds.
func change(f *folder.Folder, how func(*model.Status)) error {
	lock, err := f.Lock()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	status, err := f.Status()
	if err != nil {
		return err
	}
	how(&status)
	return f.SetStatus(status)
}

// child runs this program and waits for it; its output goes to the run's log. A process that was ended by a signal has status 128 + signal.
func child(ctx context.Context, f *folder.Folder, program string, args ...string) (int, error) {
	log, err := f.OpenLog()
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the run: %w", err)
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			cmd.Process.Signal(syscall.SIGTERM)
		case <-done:
		}
	}()
	err = cmd.Wait()
	close(done)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for the run: %w", err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// requeue decides whether to requeue the job, and returns the reason.
func requeue(ctx context.Context, f *folder.Folder, code int) (again bool, why string, err error) {
	job, err := f.Job()
	if err != nil {
		return false, "its job.json cannot be read", err
	}
	status, err := f.Status()
	if err != nil {
		return false, "its state.json cannot be read", err
	}
	restarts, _ := strconv.Atoi(os.Getenv("SLURM_RESTART_COUNT"))
	switch {
	case job.Stop:
		return false, "a stop was requested", nil
	case f.Locked():
		return false, "another process is training it", nil
	case status.State == model.Finished || status.State == model.Failed:
		return false, "the run " + string(status.State), nil
	case ctx.Err() != nil && ending():
		return false, "SLURM is ending the job", nil
	case ctx.Err() != nil:
		return true, "the job reached its time limit or was preempted, so it is requeued", nil
	case restarts >= mostRestarts:
		return false, fmt.Sprintf("it was killed, and was already restarted %d times", restarts), nil
	}
	return true, "it was killed, so the job is requeued", nil
}

// ending reports whether SLURM is about to end the job, because it was cancelled or preempted. If SLURM wants to requeue such a job, it
// does so itself.
func ending() bool {
	out, err := ask(context.Background(), "", "squeue", "--noheader", "--states=all", "--jobs="+own(), "--format=%T")
	return err == nil && !strings.Contains(out, "RUNNING")
}

// waitAgain sets the run's state to queued, for readers of the folder.
func waitAgain(f *folder.Folder) error {
	return change(f, func(s *model.Status) {
		s.State, s.Reason, s.Ended = model.Queued, "", time.Time{}
		s.ImagesPerSecond, s.SecondsLeft = 0, 0
	})
}
