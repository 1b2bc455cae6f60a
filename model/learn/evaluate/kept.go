package evaluate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
)

// ProbesDir is the folder in a data folder where probes are kept.
const ProbesDir = "probes"

// OpenProbe reads the finished probe that evaluations of a dataset keep in a folder: its tensors, as probe.logits uses them, and its accuracy
// by factor on images that it did not learn from. fs.ErrNotExist is in the chain where none is kept.
func OpenProbe(dir string, set data.Set) (file checkpoint.File, accuracy []float64, err error) {
	e := &evaluation{set: set, info: set.Info(), o: Options{Probe: Default(0).Probe, Probes: dir}}
	key, err := e.probeKey()
	if err != nil {
		return file, nil, err
	}
	s := probeStore{dir: dir, key: key}
	if file, err = checkpoint.Read(s.path(finishedProbe)); err != nil {
		return file, nil, fmt.Errorf("no probe of %s is kept: %w", e.info.Name, fs.ErrNotExist)
	}
	if json.Unmarshal([]byte(file.Meta["accuracy"]), &accuracy) != nil || len(accuracy) != len(e.info.Factors) {
		return file, nil, fmt.Errorf("the probe of %s that is kept is damaged: %w", e.info.Name, fs.ErrNotExist)
	}
	return file, accuracy, nil
}

// FindProbe reads the finished probe of a sum, as Scores.Probe names it, among the files of a folder; fs.ErrNotExist is in the chain where it is not there.
func FindProbe(dir fs.FS, sum string) (checkpoint.File, error) {
	names, err := fs.Glob(dir, "*"+finishedProbe)
	if err != nil {
		return checkpoint.File{}, fmt.Errorf("looking for a probe: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, halfProbe) {
			continue
		}
		if file, err := checkpoint.ReadFS(dir, name); err == nil && checkpoint.Sum(file.Tensors) == sum { // a damaged one is none
			return file, nil
		}
	}
	return checkpoint.File{}, fmt.Errorf("no probe of sum %.12s… is kept: %w", sum, fs.ErrNotExist)
}

// KeepProbe keeps a probe that came from elsewhere in a folder of probes, under its sum: FindProbe finds it, evaluations keep to their own.
func KeepProbe(dir string, probe checkpoint.File) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = checkpoint.Write(filepath.Join(dir, checkpoint.Sum(probe.Tensors)[:24]+finishedProbe), probe)
	}
	if err != nil {
		return fmt.Errorf("keeping a probe: %w", err)
	}
	return nil
}
