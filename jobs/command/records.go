package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/sweep"
)

// recordStride is the number of steps between points that a record keeps, in addition to all points with more than the losses.
const recordStride = 500

// recall copies the records of --records into the data folder as finished runs, so that a sweep can continue on another machine.
func (s *shellSweep) recall() error {
	if s.options.Records == "" {
		return nil
	}
	entries, err := os.ReadDir(s.options.Records)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(s.options.Records, 0o755)
	}
	if err != nil {
		return fmt.Errorf("--records: %w", err)
	}
	taken := 0
	for _, e := range entries {
		dir := filepath.Join(s.options.Records, e.Name())
		if !e.IsDir() || !model.ValidID(e.Name()) || !folder.Recorded(dir) {
			continue
		}
		switch err := s.root.Adopt(e.Name(), os.DirFS(dir), func(string) bool { return true }); {
		case err == nil:
			taken++
		case !errors.Is(err, model.ErrConflict): // a conflict means that the run is already here
			return fmt.Errorf("--records: %w", err)
		}
	}
	if taken > 0 {
		fmt.Fprintf(s.env.err, "reusing %d finished runs from %s\n", taken, s.options.Records)
	}
	return nil
}

// record saves finished runs to --records. It reports a run that cannot be saved and retries after the next run.
func (s *shellSweep) record(b sweep.Board) {
	if s.options.Records == "" {
		return
	}
	for _, item := range b.Items {
		if item.Stage != sweep.Done || s.recorded[item.ID] {
			continue
		}
		f, err := s.root.Open(item.ID)
		if err == nil {
			err = f.Record(s.options.Records, recordStride)
			f.Close()
		}
		if err != nil {
			fmt.Fprintf(s.env.err, "could not record run %s: %v\n", item.ID, err)
			continue
		}
		s.recorded[item.ID] = true
	}
}
