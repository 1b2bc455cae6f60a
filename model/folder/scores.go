package folder

import (
	"fmt"
	"path/filepath"

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

// ScoresStamp changes whenever the scores do; "" where there are none. It costs no reading.
func (f *Folder) ScoresStamp() string {
	info, err := f.root.Stat(scoresFile)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// SetScores replaces what the run measured.
func (f *Folder) SetScores(s model.Scores) error { return f.writeJSON(scoresFile, s) }

// NoiseFile is a sheet of images under noise, as Scores.Noise describes them: an image to a row, first as it is, then its
// reconstruction, then one for each point of the curve.
const NoiseFile = "noise.png"

// AgreementFile is in a run's folder once it is evaluated: its latents of images that are the same for all runs on the dataset.
const AgreementFile = "agreement.npz"

// NoiseSheet is the path of NoiseFile; model.ErrNotFound is in the error's chain where there is none.
func (f *Folder) NoiseSheet() (string, error) {
	return f.regular(filepath.Join(f.dir, NoiseFile), "sheet of images under noise")
}

// EvaluationFiles are what an evaluation leaves in a run's folder beside its scores, with their media types.
func EvaluationFiles() map[string]string {
	return map[string]string{"representation.npz": "application/zip", "heldout.npz": "application/zip", AgreementFile: "application/zip", "associations.json": "application/json", NoiseFile: "image/png"}
}

// EvaluationFile is the path of one of EvaluationFiles; model.ErrNotFound is in the error's chain where there is none.
func (f *Folder) EvaluationFile(name string) (string, error) {
	if _, ok := EvaluationFiles()[name]; !ok {
		return "", fmt.Errorf("%q is not a file of an evaluation: %w", name, model.ErrNotFound)
	}
	return f.regular(filepath.Join(f.dir, name), name+" of an evaluation")
}
