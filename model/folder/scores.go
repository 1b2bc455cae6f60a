package folder

import (
	"fmt"
	"path/filepath"

	"slotscope/model"
)

const scoresFile = "scores.json"

// Scores returns the scores of the run. The error wraps model.ErrNotFound before the first evaluation.
func (f *Folder) Scores() (model.Scores, error) {
	var s model.Scores
	err := f.readJSON(scoresFile, &s)
	if missing(err) {
		return s, fmt.Errorf("%s: not evaluated yet: %w", f.dir, model.ErrNotFound)
	}
	return s, err
}

// ScoresStamp changes whenever the scores change; "" if there are none. It reads no file contents.
func (f *Folder) ScoresStamp() string {
	info, err := f.root.Stat(scoresFile)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
}

// SetScores replaces the scores.
func (f *Folder) SetScores(s model.Scores) error { return f.writeJSON(scoresFile, s) }

// NoiseFile is a sheet of images under noise, as described by Scores.Noise. Each row has an original image, its reconstruction without
// noise, and one for each point of the curve.
const NoiseFile = "noise.png"

// AgreementFile is stored in a run's folder by its evaluation: its latents of images that are the same for all runs on the dataset.
const AgreementFile = "agreement.npz"

// NoiseSheet is the path of NoiseFile. The error wraps model.ErrNotFound if there is none.
func (f *Folder) NoiseSheet() (string, error) {
	return f.regular(filepath.Join(f.dir, NoiseFile), "sheet of images under noise")
}

// EvaluationFiles are the files that an evaluation stores besides the scores, with their media types.
func EvaluationFiles() map[string]string {
	return map[string]string{"representation.npz": "application/zip", "heldout.npz": "application/zip", AgreementFile: "application/zip", "associations.json": "application/json", NoiseFile: "image/png"}
}

// EvaluationFile is the path of one of EvaluationFiles. The error wraps model.ErrNotFound if there is none.
func (f *Folder) EvaluationFile(name string) (string, error) {
	if _, ok := EvaluationFiles()[name]; !ok {
		return "", fmt.Errorf("%q is not an evaluation file: %w", name, model.ErrNotFound)
	}
	return f.regular(filepath.Join(f.dir, name), name+" of an evaluation")
}
