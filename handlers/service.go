package handlers

import (
	"context"
	"fmt"
	"strings"

	"slotscope/model"
	"slotscope/model/data"
)

// RunService creates, supervises and reads runs. Every method that takes an id returns model.ErrNotFound in its chain for
// an unknown one, and model.ErrConflict where the run's state does not allow what is asked. Pages ask for the parts that they use.
type RunService interface {
	RunReader
	RunSeries
	RunFiles
	RunControl
	RunNews
}

// RunReader says which runs there are, and how each stands.
type RunReader interface {
	List(ctx context.Context) ([]model.Run, error)
	Get(ctx context.Context, id string) (model.Run, error)
}

// RunSeries reads what runs measured while they trained.
type RunSeries interface {
	Points(ctx context.Context, id string, q model.PointQuery) (model.PointPage, error)
	// Walk hands over every sample of the named series up to a step, 0 for the last, series by series and each in blocks by step; a block
	// is the callee's for the call alone.
	Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error
	// DamagedPoints counts the lines of a run's points that are damaged: steps that were measured and are lost.
	DamagedPoints(ctx context.Context, id string) (int, error)
}

// RunFiles finds what lies in a run's folder.
type RunFiles interface {
	// Log returns the last lines of what the run's process wrote.
	Log(ctx context.Context, id string, lines int) (string, error)
	// Sample returns the file of the reconstructions at step, 0 for none wanted, and all steps that have one.
	Sample(ctx context.Context, id string, step int) (path string, steps []int, err error)
	Checkpoints(ctx context.Context, id string) ([]int, error)
	CheckpointPath(ctx context.Context, id string, step int) (string, error)
}

// RunControl makes runs and changes them.
type RunControl interface {
	// CreateAt validates cfg, stores the run and queues it where it is to be computed.
	CreateAt(ctx context.Context, cfg model.Config, name string, at model.Placement) (model.Run, error)
	Stop(ctx context.Context, id string) error
	// Resume queues the run again, up to steps in total; 0 keeps what its configuration says.
	Resume(ctx context.Context, id string, steps int) error
	Delete(ctx context.Context, id string) error
	Rename(ctx context.Context, id, name string) error
	Annotate(ctx context.Context, id, notes string) error
}

// RunNews tells that something happened.
type RunNews interface {
	// Watch sends, at most one ahead, whenever something about the run is new; id "" watches all.
	Watch(id string) (changes <-chan struct{}, cancel func())
	// Alerts lists what was told of runs, newest first.
	Alerts(ctx context.Context, q model.AlertQuery) ([]model.Alert, error)
}

// DatasetList says which datasets can be learned from.
type DatasetList interface {
	List(ctx context.Context) []data.Info
}

// ScoreService reads what runs measured; model.ErrNotFound is in the error's chain before a run is scored.
type ScoreService interface {
	Scores(ctx context.Context, id string) (model.Scores, error)
}

// NoiseService finds the sheet of a run's images under noise; model.ErrNotFound is in the error's chain where there is none.
type NoiseService interface {
	NoiseSheet(ctx context.Context, id string) (path string, err error)
}

// datasetOpener also opens what no list has: parts of datasets, by a selection in the name.
type datasetOpener interface {
	Open(ctx context.Context, name string) (data.Set, error)
}

// InfoOf describes a dataset, or a part of one.
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

// EvaluationService measures runs in the background; jobs.Evaluations is one.
type EvaluationService interface {
	// Queue asks for an evaluation with ask's effort; with ask.Now it does not wait for a device.
	Queue(ctx context.Context, id string, ask model.Evaluation) error
	Cancel(ctx context.Context, id string) error
	State(id string) model.Evaluation
}
