package folder

import (
	"fmt"

	"slotscope/model"
)

const scoresFile = "scores.json"

// Scores is what the run measured once it was finished; model.ErrNotFound is in the error's chain before that.
func (f *Folder) Scores() (model.Scores, error) {
	var s model.Scores
	err := f.readJSON(scoresFile, &s)
	if missing(err) {
		return s, fmt.Errorf("%s: not evaluated yet: %w", f.dir, model.ErrNotFound)
	}
	return s, err
}

// SetScores replaces what the run measured.
func (f *Folder) SetScores(s model.Scores) error { return f.writeJSON(scoresFile, s) }
