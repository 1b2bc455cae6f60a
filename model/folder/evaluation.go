package folder

import (
	"os"

	"slotscope/model"
)

const evaluationFile = "evaluation.json"

// Evaluation is where measuring the run stands by its own account; whether a process really does it, Evaluator says. The zero
// Evaluation where nobody has asked.
func (f *Folder) Evaluation() (model.Evaluation, error) {
	var e model.Evaluation
	err := f.readJSON(evaluationFile, &e)
	if missing(err) {
		return model.Evaluation{}, nil
	}
	return e, err
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
