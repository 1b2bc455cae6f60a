package folder

import (
	"os"

	"slotscope/model"
)

const evaluationFile = "evaluation.json"

// Evaluation is the recorded state of the run's evaluation; Evaluator reports whether a process is running it. It is the zero Evaluation
// if none was requested. Scores without a record, from `slotscope eval --out` or an earlier version, count as a finished evaluation.
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

// SetEvaluation replaces the record. Only the holder of LockEvaluation may call it.
func (f *Folder) SetEvaluation(e model.Evaluation) error { return f.writeJSON(evaluationFile, e) }

// QueueEvaluation replaces the record if no process is evaluating the run; otherwise the error wraps model.ErrConflict.
func (f *Folder) QueueEvaluation(e model.Evaluation) error {
	lock, err := f.LockEvaluation()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return f.SetEvaluation(e)
}

// SignalEvaluation is Signal for the process that evaluates the run.
func (f *Folder) SignalEvaluation(sig os.Signal) error { return f.signal(evalLock, sig) }
