package evaluate

import (
	"context"

	"slotscope/model"
)

// heldOut measures the held-out images like those of the training part, with the same model and seed; metric predictors are
// fitted separately on each part. It also measures recombination of training images into combinations that were left out.
func (e *evaluation) heldOut(ctx context.Context, r *Result) error {
	if e.o.Rest == nil {
		return nil
	}
	o := e.o
	o.Noise = 0
	o.Progress = func(stage, unit string, done, of float64) { e.o.Progress(stage+", held out", unit, done, of) }
	rest := &evaluation{net: e.net, set: o.Rest, info: o.Rest.Info(), o: o, file: e.file}
	if err := inTurn(ctx, rest.draw, rest.represent, rest.measure); err != nil {
		return err
	}
	s := rest.scores
	r.Scores.HeldOut = &model.HeldOut{Dataset: rest.info.Name, Images: s.Images, PSNR: *s.PSNRInterval, Metrics: s.Metrics, Usage: s.Usage, NoFactors: s.NoFactors}
	var err error
	if r.Scores.HeldOut.Recombination, r.Scores.HeldOut.NoRecombination, err = e.recombine(ctx, rest); err != nil {
		return err
	}
	found := rest.result()
	found.Scores = model.Scores{}
	r.HeldOut = &found
	return nil
}
