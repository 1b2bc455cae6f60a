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

// mostRestarts is how often a job whose run was killed is put back into the queue.
const mostRestarts = 10

// lastWait is how long a job that goes back into the queue waits for SLURM to end its process.
var lastWait = patience

// Step is what a job does on its node: it trains the run in dir as a process of its own, evaluates it where its configuration says so,
// and puts itself back into SLURM's queue where the run was killed or SLURM's limit of time is near, unless somebody asked the run to
// end. The process's exit status is returned. When ctx ends the run is asked to save.
func Step(ctx context.Context, dir, program string, out io.Writer) (code int, err error) {
	f, err := folder.Open(dir)
	if err != nil {
		return 1, err
	}
	defer f.Close()
	if holder, held := f.Holder(); held {
		fmt.Fprintf(out, "run %s is already trained by %v: this job has nothing to do\n", f.ID(), holder)
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

// train trains the run to its end, or has the job put back into the queue.
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

// putBack puts the job back into SLURM's queue, which ends this process.
func putBack(ctx context.Context) error {
	if _, err := ask(context.WithoutCancel(ctx), "", "scontrol", "requeue", own()); err != nil {
		return err
	}
	time.Sleep(lastWait)
	return nil
}

// evaluate measures a run that has finished, where that was queued for the job. An evaluation that the job's limit of time ends is
// queued again with the job.
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

// own is the id of this job as squeue writes it.
func own() string {
	if array := os.Getenv("SLURM_ARRAY_JOB_ID"); array != "" {
		return array + "_" + os.Getenv("SLURM_ARRAY_TASK_ID")
	}
	return os.Getenv("SLURM_JOB_ID")
}

// enter notes in the folder which job this is; the one that submitted it may have been killed before it could.
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

// nothingToDo says whether the run is done, or was asked to end while the job waited.
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

// change rewrites the status of a run that no process works on.
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

// child runs this program to its end; its output goes to the run's log. A process that a signal ended has status 128 + signal.
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

// requeue decides whether the job shall run again, and says why.
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
		return false, "another process trains it", nil
	case status.State == model.Finished || status.State == model.Failed:
		return false, "the run " + string(status.State), nil
	case ctx.Err() != nil && ending():
		return false, "SLURM ends the job", nil
	case ctx.Err() != nil:
		return true, "the job reached its time limit or was preempted, so it is requeued", nil
	case restarts >= mostRestarts:
		return false, fmt.Sprintf("it was killed, and was already restarted %d times", restarts), nil
	}
	return true, "it was killed, so the job is requeued", nil
}

// ending says whether SLURM is about to end the job, because somebody cancelled it or it is preempted; what SLURM wants to
// requeue, it requeues itself.
func ending() bool {
	out, err := ask(context.Background(), "", "squeue", "--noheader", "--states=all", "--jobs="+own(), "--format=%T")
	return err == nil && !strings.Contains(out, "RUNNING")
}

// waitAgain makes the run a queued one, for whoever looks at the folder alone.
func waitAgain(f *folder.Folder) error {
	return change(f, func(s *model.Status) {
		s.State, s.Reason, s.Ended = model.Queued, "", time.Time{}
		s.ImagesPerSecond, s.SecondsLeft = 0, 0
	})
}
