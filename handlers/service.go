package handlers

import (
	"context"
	"fmt"
	"strings"

	"slotscope/model"
	"slotscope/model/data"
)

// RunService creates, controls and reads runs. Methods with an id return an error that wraps model.ErrNotFound if the run is
// unknown, and model.ErrConflict if the run's state does not allow the action. Pages depend only on the parts they use.
type RunService interface {
	RunReader
	RunSeries
	RunFiles
	RunControl
	RunNews
}

// RunReader lists runs and their state.
type RunReader interface {
	List(ctx context.Context) ([]model.Run, error)
	Get(ctx context.Context, id string) (model.Run, error)
}

// RunSeries reads the points that runs measured in training.
type RunSeries interface {
	Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error)
	// Walk calls take with every sample of the named series up to step until, 0 for the last, series by series in blocks by ascending step.
	// A block is valid only during the call.
	Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error
	// DamagedPoints counts the damaged lines of a run's points: measured steps that are lost.
	DamagedPoints(ctx context.Context, id string) (int, error)
}

// RunFiles locates the files in a run's folder.
type RunFiles interface {
	// Log returns the last lines of the run's log.
	Log(ctx context.Context, id string, lines int) (string, error)
	// Sample returns the reconstructions file at step (no file if step is 0) and all steps that have one.
	Sample(ctx context.Context, id string, step int) (path string, steps []int, err error)
	Checkpoints(ctx context.Context, id string) ([]int, error)
	CheckpointPath(ctx context.Context, id string, step int) (string, error)
}

// RunControl creates, controls and edits runs.
type RunControl interface {
	// CreateAt validates cfg, stores the run and queues it at the given placement.
	CreateAt(ctx context.Context, cfg model.Config, name string, at model.Placement) (model.Run, error)
	Stop(ctx context.Context, id string) error
	// Resume queues the run again, up to steps in total; 0 keeps the configured number.
	Resume(ctx context.Context, id string, steps int) error
	Delete(ctx context.Context, id string) error
	Rename(ctx context.Context, id, name string) error
	Annotate(ctx context.Context, id, notes string) error
}

// RunNews reports changes and alerts of runs.
type RunNews interface {
	// Watch sends on every change of the run, or of any run if id is ""; the channel buffers one.
	Watch(id string) (changes <-chan struct{}, cancel func())
	// Alerts lists alerts, newest first.
	Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error)
}

// DatasetList lists the available datasets.
type DatasetList interface {
	List(ctx context.Context) []data.Info
}

// ScoreService reads the scores of runs; the error wraps model.ErrNotFound if the run has none.
type ScoreService interface {
	Scores(ctx context.Context, id string) (model.Scores, error)
}

// NoiseService locates the sheet of a run's images under noise; the error wraps model.ErrNotFound if there is none.
type NoiseService interface {
	NoiseSheet(ctx context.Context, id string) (path string, err error)
}

// datasetOpener also opens unlisted datasets: parts selected by the name.
type datasetOpener interface {
	Open(ctx context.Context, name string) (data.Set, error)
}

// InfoOf returns the description of a dataset or of a part of one.
func InfoOf(ctx context.Context, datasets DatasetList, name string) (data.Info, error) {
	var names []string
	for _, info := range datasets.List(ctx) {
		if info.Name == name {
			return info, nil
		}
		names = append(names, info.Name)
	}
	opener, ok := datasets.(datasetOpener)
	if !ok {
		return data.Info{}, model.Invalid{"dataset": fmt.Sprintf("unknown dataset %q; available: %s", name, strings.Join(names, ", "))}
	}
	set, err := opener.Open(ctx, name)
	if err != nil {
		return data.Info{}, err
	}
	defer set.Close()
	return set.Info(), nil
}

// EvaluationService evaluates runs in the background; jobs.Evaluations implements it.
type EvaluationService interface {
	// Queue queues an evaluation with the effort in ask; if ask.Now is set, it does not wait for a device.
	Queue(ctx context.Context, id string, ask model.Evaluation) error
	Cancel(ctx context.Context, id string) error
	State(id string) model.Evaluation
}
