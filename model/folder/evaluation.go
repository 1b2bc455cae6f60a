package folder

import (
	"os"

	"slotscope/model"
)

const evaluationFile = "evaluation.json"

// Evaluation is where measuring the run stands by its own account; whether a process really does it, Evaluator says. The zero
// Evaluation where nobody has asked. Scores without an account, of `slotscope eval --out` or of an earlier version, are a finished one.
func (f *Folder) Evaluation() (model.Evaluation, error) {
	var e model.Evaluation
	err := f.readJSON(evaluationFile, &e)
	if !missing(err) {
		return e, err
	}
	info, err := f.root.Stat(scoresFile)
	if err != nil {
		return model.Evaluation{}, nil
	}
	if s, err := f.Scores(); err == nil && s.Evaluated() {
		return model.Evaluation{State: model.Finished, Effort: s.Effort, Ended: info.ModTime().UTC()}, nil
	}
	return model.Evaluation{}, nil
}

// SetEvaluation replaces the account. Only the holder of LockEvaluation may.
func (f *Folder) SetEvaluation(e model.Evaluation) error { return f.writeJSON(evaluationFile, e) }

// QueueEvaluation replaces the account where no process measures the run; else model.ErrConflict is in the error's chain.
func (f *Folder) QueueEvaluation(e model.Evaluation) error {
	lock, err := f.LockEvaluation()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return f.SetEvaluation(e)
}

// SignalEvaluation is Signal for the process that measures the run.
func (f *Folder) SignalEvaluation(sig os.Signal) error { return f.signal(evalLock, sig) }
