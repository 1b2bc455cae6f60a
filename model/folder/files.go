package folder

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slotscope/model"
)

const (
	checkpointForm = "step-%09d.safetensors"
	optimizerForm  = "optimizer-%09d.safetensors"
	sampleForm     = "step-%09d.png"
)

// CheckpointPath is the path of the model's tensors at a step.
func (f *Folder) CheckpointPath(step int) string {
	return f.path(filepath.Join(checkpointDir, fmt.Sprintf(checkpointForm, step)))
}

// OptimizerPath is the path of the optimizer's tensors at a step.
func (f *Folder) OptimizerPath(step int) string {
	return f.path(filepath.Join(checkpointDir, fmt.Sprintf(optimizerForm, step)))
}

// SamplePath is the path of the reconstructions at a step: originals above reconstructions.
func (f *Folder) SamplePath(step int) string {
	return f.path(filepath.Join(sampleDir, fmt.Sprintf(sampleForm, step)))
}

// Checkpoints lists the steps of complete checkpoints, ascending.
func (f *Folder) Checkpoints() []int { return f.steps(checkpointDir, checkpointForm) }

// Samples lists the steps that have reconstructions, ascending.
func (f *Folder) Samples() []int { return f.steps(sampleDir, sampleForm) }

// Latest is the newest step with both model and optimizer tensors, from which training can resume; 0 if there is none.
func (f *Folder) Latest() int {
	optimizers := f.steps(checkpointDir, optimizerForm)
	for _, step := range slices.Backward(f.Checkpoints()) {
		if slices.Contains(optimizers, step) {
			return step
		}
	}
	return 0
}

// Best is the step of the best checkpoint. The error wraps model.ErrNotFound if the run has none.
func (f *Folder) Best() (int, error) {
	status, err := f.Status()
	if err != nil {
		return 0, err
	}
	if _, err := f.Checkpoint(status.Best); status.Best == 0 || err != nil {
		return 0, fmt.Errorf("run %s has no best checkpoint; set best_by to keep one during training: %w", f.ID(), model.ErrNotFound)
	}
	return status.Best, nil
}

// WriteSample stores the reconstructions of a step, an encoded PNG.
func (f *Folder) WriteSample(step int, png []byte) error {
	sub, err := f.root.OpenRoot(sampleDir)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(sampleDir), bare(err))
	}
	defer sub.Close()
	samples := &Folder{dir: f.path(sampleDir), root: sub}
	return samples.replace(fmt.Sprintf(sampleForm, step), png)
}

// steps lists the steps of regular files whose names match a pattern; it does not follow links.
func (f *Folder) steps(sub, form string) []int {
	var steps []int
	for _, e := range f.entries(sub) {
		var step int
		_, err := fmt.Sscanf(e.Name(), form, &step)
		if err == nil && step > 0 && e.Name() == fmt.Sprintf(form, step) && e.Type().IsRegular() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps
}

// LogPath is the path of the process's output.
func (f *Folder) LogPath() string { return f.path(logFile) }

// OpenLog opens log.txt for appending.
func (f *Folder) OpenLog() (*os.File, error) {
	file, err := f.root.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", f.LogPath(), bare(err))
	}
	return file, nil
}

// Log returns the end of log.txt, at most the given number of lines and one megabyte; empty if there is no file.
func (f *Folder) Log(lines int) (string, error) {
	file, err := f.root.Open(logFile)
	if missing(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", f.LogPath(), bare(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("read %s: %w", f.LogPath(), bare(err))
	}
	start := max(0, info.Size()-1<<20)
	b, err := io.ReadAll(io.NewSectionReader(file, start, 1<<20))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", f.LogPath(), bare(err))
	}
	return lastLines(string(b), lines), nil
}

func lastLines(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return strings.Join(all[max(0, len(all)-max(0, lines)):], "")
}

// regular returns the path if it is a regular file inside the folder.
func (f *Folder) regular(path, what string) (string, error) {
	name, err := filepath.Rel(f.dir, path)
	if err != nil {
		return "", err
	}
	info, err := f.root.Lstat(name)
	if missing(err) || err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("run %s has no %s: %w", f.ID(), what, model.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, bare(err))
	}
	return path, nil
}

// Checkpoint is CheckpointPath for an existing file; otherwise the error wraps model.ErrNotFound.
func (f *Folder) Checkpoint(step int) (string, error) {
	return f.regular(f.CheckpointPath(step), fmt.Sprintf("checkpoint of step %d", step))
}

// Sample is SamplePath for an existing file; otherwise the error wraps model.ErrNotFound.
func (f *Folder) Sample(step int) (string, error) {
	return f.regular(f.SamplePath(step), fmt.Sprintf("reconstructions of step %d", step))
}

// Stamp changes whenever a record, the points or the list of checkpoints changes; it reads no file contents.
func (f *Folder) Stamp() string {
	var b strings.Builder
	for _, name := range []string{configFile, metaFile, stateFile, pointsFile, evaluationFile, scoresFile, checkpointDir} {
		if info, err := f.root.Stat(name); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
