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

// ProbesDir is the subfolder of the data folder that stores probes.
const ProbesDir = "probes"

// OpenProbe reads the finished probe of a dataset from a folder: its tensors, in the layout of probe.logits, and its accuracy by factor on
// images it was not trained on. The error wraps fs.ErrNotExist if there is none.
func OpenProbe(dir string, set data.Set) (file checkpoint.File, accuracy []float64, err error) {
	e := &evaluation{set: set, info: set.Info(), o: Options{Probe: Default(0).Probe, Probes: dir}}
	key, err := e.probeKey()
	if err != nil {
		return file, nil, err
	}
	s := probeStore{dir: dir, key: key}
	if file, err = checkpoint.Read(s.path(finishedProbe)); err != nil {
		return file, nil, fmt.Errorf("no probe of %s is stored: %w", e.info.Name, fs.ErrNotExist)
	}
	if json.Unmarshal([]byte(file.Meta["accuracy"]), &accuracy) != nil || len(accuracy) != len(e.info.Factors) {
		return file, nil, fmt.Errorf("the stored probe of %s is damaged: %w", e.info.Name, fs.ErrNotExist)
	}
	return file, accuracy, nil
}

// FindProbe reads the finished probe with a checksum, as in Scores.Probe, from a folder; the error wraps fs.ErrNotExist if there is none.
func FindProbe(dir fs.FS, sum string) (checkpoint.File, error) {
	names, err := fs.Glob(dir, "*"+finishedProbe)
	if err != nil {
		return checkpoint.File{}, fmt.Errorf("looking for a probe: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, halfProbe) {
			continue
		}
		if file, err := checkpoint.ReadFS(dir, name); err == nil && checkpoint.Sum(file.Tensors) == sum { // skips damaged files
			return file, nil
		}
	}
	return checkpoint.File{}, fmt.Errorf("no probe with checksum %.12s… is stored: %w", sum, fs.ErrNotExist)
}

// KeepProbe stores a probe from elsewhere in a folder of probes, under its checksum: FindProbe finds it, but evaluations use their own.
func KeepProbe(dir string, probe checkpoint.File) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = checkpoint.Write(filepath.Join(dir, checkpoint.Sum(probe.Tensors)[:24]+finishedProbe), probe)
	}
	if err != nil {
		return fmt.Errorf("saving a probe: %w", err)
	}
	return nil
}
