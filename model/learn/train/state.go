package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// Checkpoint returns the model after a step, ready to be written.
func (t *Trainer) Checkpoint(step int, meta map[string]string) (checkpoint.File, error) {
	learned, err := t.Export()
	if err != nil {
		return checkpoint.File{}, fmt.Errorf("copying the model out at step %d: %w", step, err)
	}
	return checkpoint.File{Config: t.cfg, Step: step, Meta: meta, Tensors: learned}, nil
}

// Optimizer returns AdamW's moments after a step, ready to be written.
func (t *Trainer) Optimizer(step int) (checkpoint.File, error) {
	means := map[string]checkpoint.Tensor{}
	for v := range t.optimizer.IterVariablesInScope() {
		value, err := v.Value()
		if err != nil {
			return checkpoint.File{}, fmt.Errorf("copying the optimizer's %s: %w", v.Name(), err)
		}
		means[optimizerName(v.ScopeAndName())] = checkpoint.Tensor{
			Shape: v.Shape().Dimensions, Data: tensors.MustCopyFlatData[float32](value),
		}
	}
	return checkpoint.File{Config: t.cfg, Step: step, Tensors: means}, nil
}

// Restore loads a model and its optimizer, which must be of the same step.
func (t *Trainer) Restore(learned, optimizer checkpoint.File) error {
	if learned.Step != optimizer.Step {
		return fmt.Errorf("checkpoint is of step %d but its optimizer of step %d: %w", learned.Step, optimizer.Step, model.ErrConflict)
	}
	if err := t.net.Import(t.scope, learned.Tensors); err != nil {
		return fmt.Errorf("restoring the model of step %d: %w", learned.Step, err)
	}
	for v := range t.optimizer.IterVariablesInScope() {
		name := optimizerName(v.ScopeAndName())
		saved, ok := optimizer.Tensors[name]
		if !ok || !slices.Equal(saved.Shape, v.Shape().Dimensions) {
			return fmt.Errorf("optimizer state of step %d has no %s of shape %v", optimizer.Step, name, v.Shape().Dimensions)
		}
		if err := v.SetValue(tensors.FromFlatDataAndDimensions(saved.Data, v.Shape().Dimensions...)); err != nil {
			return fmt.Errorf("restoring the optimizer's %s: %w", name, err)
		}
	}
	return nil
}

// optimizerName returns the name of an optimizer variable in a file: m/model.fc1.weight for /optimizer/m/model.fc1.weight.
func optimizerName(scopeAndName string) string {
	return strings.TrimPrefix(scopeAndName, "/optimizer/")
}
