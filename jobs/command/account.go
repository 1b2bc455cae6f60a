package command

import (
	"context"
	"os"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// accountEvery is how often an evaluation tells its run's folder how far it is.
const accountEvery = time.Second

// account is what an evaluation tells its run's folder while it holds eval.lock.
type account struct {
	folder *folder.Folder
	lock   *folder.Lock
	state  model.Evaluation
	told   time.Time
}

// openAccount takes the measuring of a run and says that it has begun; model.ErrConflict is in the error's chain where another process
// measures it. A disk on which nothing can be kept is found out here, before anything is computed.
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
	asked, _ := f.Evaluation() // one that is damaged is replaced
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

// progress tells how far a stage is, at most once a second. What cannot be written is news alone.
func (a *account) progress(stage, unit string, done, of float64) {
	if time.Since(a.told) < accountEvery {
		return
	}
	a.told = time.Now()
	a.state.Said = stageLine(stage, unit, done, of)
	_ = a.folder.SetEvaluation(a.state)
}

// end says how the evaluation ended, and returns why it failed, if it did.
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
