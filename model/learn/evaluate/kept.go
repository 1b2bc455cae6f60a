package evaluate

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
)

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
