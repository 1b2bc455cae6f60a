package train

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

func pid() int      { return os.Getpid() }
func stack() string { return string(debug.Stack()) }

// save copies the model and its optimizer and writes them in the background; settle waits for that. Points up to this step are
// written first, the optimizer second and the model last, so an existing checkpoint has everything that a resume needs.
func (s *session) save() error {
	if err := s.settle(); err != nil {
		return err
	}
	step := s.status.Step
	means, err := s.trainer.Optimizer(step)
	if err != nil {
		return err
	}
	learned, err := s.trainer.Checkpoint(step, s.meta())
	if err != nil {
		return err
	}
	if name, finite := allFinite(learned); !finite {
		return s.diverged(fmt.Sprintf("%s is not finite after step %d", name, step))
	}
	if err := s.points.Sync(); err != nil {
		return fmt.Errorf("saving the points up to step %d: %w", step, err)
	}
	written := make(chan error, 1)
	s.saving, s.written = step, written
	go func() { written <- s.write(step, learned, means) }()
	return nil
}

// allFinite reports whether every number of a checkpoint is finite, and returns the name of the first tensor that is not.
func allFinite(file checkpoint.File) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(file.Tensors)) {
		if slices.ContainsFunc(file.Tensors[name].Data, func(v float32) bool { return v-v != 0 }) {
			return name, false
		}
	}
	return "", true
}

func (s *session) write(step int, learned, means checkpoint.File) error {
	if err := checkpoint.Write(s.Folder.OptimizerPath(step), means); err != nil {
		return fmt.Errorf("saving the optimizer of step %d: %w", step, err)
	}
	if err := checkpoint.Write(s.Folder.CheckpointPath(step), learned); err != nil {
		os.Remove(s.Folder.OptimizerPath(step)) // useless alone, and the disk may be full
		return fmt.Errorf("saving the checkpoint of step %d: %w", step, err)
	}
	return nil
}

// settle waits for the checkpoint that is being written, if any, and makes it the one to resume from.
func (s *session) settle() error {
	if s.written == nil {
		return nil
	}
	err := <-s.written
	s.written = nil
	if err != nil {
		return err
	}
	s.status.Checkpoint = s.saving
	s.settleBest(s.saving)
	s.prune()
	return nil
}

// keepAll ensures that the current step's checkpoint is saved.
func (s *session) keepAll() error {
	err := s.settle()
	if err == nil && s.status.Checkpoint < s.status.Step {
		err = errors.Join(s.save(), s.settle())
	}
	return err
}

func (s *session) meta() map[string]string {
	return map[string]string{"engine": s.status.Engine, "precision": s.status.Precision, "revision": s.status.Revision, "seed": strconv.FormatInt(s.cfg.Seed, 10)}
}

// restore loads the newest intact checkpoint and truncates the points to its step.
func (s *session) restore() error {
	at, failure := 0, error(nil)
	for _, step := range slices.Backward(s.Folder.Checkpoints()) {
		err := s.restoreStep(step)
		if err == nil {
			at, failure = step, nil
			break
		}
		s.Log.Warn("checkpoint skipped", "step", step, "error", err)
		if failure == nil {
			failure = err // report the newest checkpoint's error
		}
	}
	if failure != nil {
		return failure
	}
	s.status.Step, s.status.Checkpoint, s.status.Resumed = at, at, at
	if err := s.Folder.TruncatePoints(s.status.Step); err != nil {
		return fmt.Errorf("truncating the points to step %d: %w", s.status.Step, err)
	}
	return nil
}

func (s *session) restoreStep(step int) error {
	learned, err := checkpoint.Read(s.Folder.CheckpointPath(step))
	if err != nil {
		return err
	}
	means, err := checkpoint.Read(s.Folder.OptimizerPath(step))
	if err != nil {
		return err
	}
	if learned.Step != step {
		return fmt.Errorf("step is %d in the file but %d in its name: %w", learned.Step, step, model.ErrConflict)
	}
	return s.trainer.Restore(learned, means)
}

const (
	keepNewest = 2  // newest checkpoints, from which the run can be resumed
	keepSpread = 24 // older checkpoints, spread over the run, for comparison
)

// prune removes checkpoints that are not the best, among the newest or among those spread over the run. It ignores errors.
func (s *session) prune() {
	steps := s.Folder.Checkpoints()
	old := steps[:max(0, len(steps)-keepNewest)]
	spacing := (s.cfg.Steps + keepSpread - 1) / keepSpread
	kept := -1
	for _, step := range old {
		os.Remove(s.Folder.OptimizerPath(step))
		if step == s.status.Best {
			continue
		}
		if step/spacing != kept {
			kept = step / spacing
			continue
		}
		os.Remove(s.Folder.CheckpointPath(step))
	}
}
