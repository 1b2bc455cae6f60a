package command

import (
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/measure/metric/input"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
)

// entryOf returns the report entry of a run's folder; points and reconstructions are read only when the report needs them.
func entryOf(dir string) (report.Entry, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return report.Entry{}, err
	}
	defer f.Close()
	found, err := look(f)
	damage := ""
	if err != nil {
		if found.Run.ID == "" {
			return report.Entry{}, err
		}
		damage = report.Damage
	}
	lost, err := f.DamagedPoints()
	if err != nil {
		return report.Entry{}, err
	}
	return report.Entry{Run: found.Run, Scores: found.Scores, Damage: damage, Lost: lost,
		Points:    func(names []string, yield func(model.Point) error) error { return walk(dir, names, yield) },
		Names:     func() ([]string, error) { return seriesOf(dir) },
		Sheet:     func() ([]byte, error) { return newestSheet(dir) },
		Agreement: func() (*report.Latents, error) { return agreement(dir) },
		Noisy:     func() (image.Image, error) { return noiseSheet(dir) }}, nil
}

// look reads a run and its scores, if there are any.
func look(f *folder.Folder) (sweep.Found, error) {
	run, err := f.Standing()
	if run.ID == "" {
		return sweep.Found{}, err
	}
	found := sweep.Found{Run: run}
	scores, err := f.Scores()
	switch {
	case err == nil:
		found.Scores = &scores
	case !errors.Is(err, model.ErrNotFound):
		return found, err
	}
	return found, nil
}

// walk yields the points of a run by ascending step; if names is not empty, only the values of those series.
func walk(dir string, names []string, yield func(model.Point) error) error {
	f, err := folder.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Each(func(p model.Point) error { return yield(only(p, names)) })
}

func seriesOf(dir string) ([]string, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Series()
}

func only(p model.Point, names []string) model.Point {
	if len(names) == 0 {
		return p
	}
	for name := range p.Values {
		if !slices.Contains(names, name) {
			delete(p.Values, name)
		}
	}
	return p
}

// newestSheet returns the newest reconstruction sheet as a PNG file; nil if there is none.
func newestSheet(dir string) ([]byte, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	steps := f.Samples()
	if len(steps) == 0 {
		return nil, nil
	}
	path, err := f.Sample(steps[len(steps)-1])
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// agreement returns the latents of a run for comparison with other runs; nil if there are none.
func agreement(dir string) (*report.Latents, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return input.Kept(f.EvaluationFile(folder.AgreementFile))
}

// noiseSheet returns the sheet of images under noise; nil if there is none.
func noiseSheet(dir string) (image.Image, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return report.OpenSheet(f.NoiseSheet())
}

// runDir returns the folder of a run given by ID or path.
func runDir(dataDir, name string) (string, error) {
	if err := placeShipped(dataDir, name); err != nil {
		return "", err
	}
	if model.ValidID(name) {
		dir := filepath.Join(dataDir, "runs", name)
		if _, err := os.Stat(dir); err == nil {
			return dir, nil
		}
	}
	if info, err := os.Stat(filepath.Join(name, "config.json")); err == nil && info.Mode().IsRegular() {
		return name, nil
	}
	return "", fmt.Errorf("there is no run %q in %s, and no folder of that name with a config.json: %w", name, filepath.Join(dataDir, "runs"), model.ErrNotFound)
}
