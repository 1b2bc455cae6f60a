package command

import (
	"context"
	"os"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// accountEvery is how often an evaluation writes its progress to the run's folder.
const accountEvery = time.Second

// account records the state of an evaluation in the run's folder and holds eval.lock.
type account struct {
	folder *folder.Folder
	lock   *folder.Lock
	state  model.Evaluation
	told   time.Time
}

// openAccount locks the evaluation of a run and records that it has started; the error wraps model.ErrConflict if another process is
// evaluating the run. An unwritable disk is detected here, before anything is computed.
func openAccount(dir, effort string) (*account, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	lock, err := f.LockEvaluation()
	if err != nil {
		f.Close()
		return nil, err
	}
	asked, _ := f.Evaluation() // a damaged file is replaced
	a := &account{folder: f, lock: lock, state: model.Evaluation{State: model.Running, Effort: effort, PID: os.Getpid(), Started: now()}}
	if asked.State == model.Queued {
		a.state.Asked, a.state.Flags, a.state.Executor = asked.Asked, asked.Flags, asked.Executor
	}
	if err := f.SetEvaluation(a.state); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// progress records the progress of a stage, at most once a second. It ignores write errors, because progress is not essential.
func (a *account) progress(stage, unit string, done, of float64) {
	if time.Since(a.told) < accountEvery {
		return
	}
	a.told = time.Now()
	a.state.Said = stageLine(stage, unit, done, of)
	_ = a.folder.SetEvaluation(a.state)
}

// end records how the evaluation ended, and returns its error or that of recording it.
func (a *account) end(ctx context.Context, err error) error {
	a.state.Ended, a.state.State, a.state.Said = now(), model.Finished, ""
	switch {
	case err != nil && ctx.Err() != nil:
		a.state.State, a.state.Reason = model.Stopped, "The evaluation was cancelled. Earlier scores are kept; evaluate the run again to update them."
	case err != nil:
		a.state.State, a.state.Reason = model.Failed, sentence(err)
	}
	if told := a.folder.SetEvaluation(a.state); err == nil {
		return told
	}
	return err
}

func (a *account) close() {
	a.lock.Unlock()
	a.folder.Close()
}
