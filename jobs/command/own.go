package command

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/sweep"
)

// ownFlags are the flags of a sweep over hyperparameters of one's own choice.
func ownFlags(fs *flag.FlagSet) *sweep.Own {
	o := &sweep.Own{}
	fs.StringVar(&o.Name, "name", "my sweep", "name of the sweep, for own")
	lines := func(to *[]sweep.Line) func(string) error {
		return func(text string) error {
			line, err := sweep.ParseLine(text)
			*to = append(*to, line)
			return err
		}
	}
	fs.Func("vary", "a hyperparameter to vary, as `name=values`, for own; may be given again. Values are joined by commas; random search also draws from ranges, as in lr=0.0001..0.01 or \"lr=0.0001..0.01 log\"", lines(&o.Vary))
	fs.Func("set", "a hyperparameter of every run, as `name=value`, for own; may be given again", lines(&o.Set))
	fs.IntVar(&o.Draws, "random", 0, "settings to draw at random, for own; 0 for every combination")
	fs.Int64Var(&o.DrawSeed, "draw-seed", 0, "seed of the draws: the same one draws the same settings")
	fs.IntVar(&o.Race, "race", 0, "seeds that every setting gets before those that are worse beyond doubt get no more, for own; 0 for no race")
	return o
}

// scaling are the flags that scale paper and field, and of which own has its share; asking are those of own alone.
var (
	scaling = []string{"preset", "steps", "seeds", "datasets", "models", "parts"}
	asking  = []string{"name", "vary", "set", "random", "draw-seed", "race"}
)

// refused says which of the flags given do not go with what is swept; nil for none.
func refused(fs *flag.FlagSet, what string) error {
	not, why := slices.Concat(scaling, asking), "is for paper, field and own; a plan in a file says this itself"
	switch what {
	case "paper", "field":
		not, why = asking, "is for own, not for the protocol "+what
	case "own":
		not, why = []string{"parts"}, "is for paper and field"
	}
	var given []string
	fs.Visit(func(f *flag.Flag) {
		if slices.Contains(not, f.Name) {
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) > 0 {
		return fmt.Errorf("%w: %s %s", errUsage, strings.Join(given, ", "), why)
	}
	return nil
}

// own is the plan of a question of one's own.
func (o sweepOptions) own(ctx context.Context, dataDir string) (sweep.Plan, error) {
	q := *o.question
	q.Preset, q.Steps, q.Seeds, q.Models, q.Datasets = o.preset, o.steps, o.seeds, commas(o.models), commas(o.datasets)
	if len(q.Models) == 0 {
		q.Models = []string{"hrr"}
	}
	if len(q.Datasets) == 0 {
		q.Datasets = []string{"shapes3d-synthetic"}
	}
	p, err := q.Plan()
	if err != nil {
		return p, err
	}
	return settled(ctx, p, dataDir)
}

// earlier are the runs of a data folder, whatever made them.
func earlier(dataDir string) (runs []model.Run) {
	entries, err := os.ReadDir(filepath.Join(dataDir, "runs"))
	if err != nil {
		return nil
	}
	find := finder(dataDir)
	for _, e := range entries {
		if found, ok := find(e.Name()); ok {
			runs = append(runs, found.Run)
		}
	}
	return runs
}

// told is an estimate as a line.
func told(e sweep.Estimate) string {
	if !e.Known {
		return fmt.Sprintf("%d runs at most, %d done; how long the rest takes is not known: no run of this preset has been timed here", e.Runs, e.Done)
	}
	return fmt.Sprintf("%d runs at most, %d done; about %v to train the rest one after another, at the pace of %s", e.Runs, e.Done, time.Duration(e.Seconds)*time.Second, e.From)
}
