package bundle

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/learn/evaluate"
	"slotscope/model/play"
	"slotscope/model/shipped"
)

// Source creates bundles of the checkpoints in a data folder.
type Source struct {
	Library  *play.Library
	Engine   *compute.Engine // computes the examples
	Data     string          // the data folder
	Revision string          // of the program
	// Freeze writes the playground of checkpoints as one page. If nil, bundles have no page.
	Freeze func(ctx context.Context, names []string, w io.Writer) error
}

// Bundle returns the bundle of a checkpoint. name is a run ID, ID@step, a checkpoint key, or empty for the demo model.
func (s Source) Bundle(ctx context.Context, name string) (Bundle, error) {
	src, file, err := s.read(name)
	if err != nil {
		return Bundle{}, err
	}
	b := Bundle{Name: src.Title, Run: src.Run, File: file, Revision: s.Revision}
	if b.Scores, err = s.scores(src); err != nil {
		return Bundle{}, err
	}
	if b.Probe, err = s.probe(b.Scores); err != nil {
		return Bundle{}, err
	}
	if set, err := s.Library.Set(ctx, src.Config.Dataset); err == nil { // without the dataset there are no examples
		examples, err := Exemplify(ctx, s.Engine, file, set)
		if err != nil {
			return Bundle{}, err
		}
		b.Examples = &examples
	}
	if s.Freeze != nil {
		b.Page = func(w io.Writer) error { return s.Freeze(ctx, []string{name}, w) }
	}
	return b, nil
}

// Check returns an error if there is no such checkpoint, it runs as an external program, or it cannot be read.
func (s Source) Check(name string) error {
	_, _, err := s.read(name)
	return err
}

// read finds and reads a checkpoint. It is an error if its weights are not available.
func (s Source) read(name string) (play.Source, checkpoint.File, error) {
	src, err := s.Library.Find(name)
	if err != nil {
		return src, checkpoint.File{}, err
	}
	if src.Config.Model == model.External {
		return src, checkpoint.File{}, play.NoWeights(src)
	}
	file, err := s.Library.Checkpoint(src)
	return src, file, err
}

// probe returns the probe used for scores, or nil if there was none or it is neither in the data folder nor embedded in the program.
func (s Source) probe(scores *model.Scores) (*checkpoint.File, error) {
	if scores == nil || scores.Probe == "" {
		return nil, nil
	}
	for _, dir := range []fs.FS{os.DirFS(filepath.Join(s.Data, evaluate.ProbesDir)), shipped.Probes()} {
		file, err := evaluate.FindProbe(dir, scores.Probe)
		if err == nil {
			return &file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, nil
}

// scores returns the scores of the checkpoint's step, or nil if it was not evaluated.
func (s Source) scores(src play.Source) (*model.Scores, error) {
	if src.Run == "" {
		return nil, nil
	}
	f, err := folder.Open(filepath.Join(s.Data, "runs", src.Run))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	scores, err := f.Scores()
	switch {
	case errors.Is(err, model.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case scores.Step != src.Step:
		return nil, nil
	}
	return &scores, nil
}
