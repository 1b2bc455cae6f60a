package command

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/sweep"
)

// ownFlags are the flags of a sweep over hyperparameters of one's own choice.
type ownFlags struct {
	Name     string   `default:"my sweep" placeholder:"NAME" help:"name of the sweep, for own"`
	Vary     []string `sep:"none" placeholder:"NAME=VALUES" help:"a hyperparameter to vary, for own; may be given again. Values are joined by commas; random search also draws from ranges, as in lr=0.0001..0.01 or 'lr=0.0001..0.01 log'"`
	Set      []string `sep:"none" placeholder:"NAME=VALUE" help:"a hyperparameter of every run, for own; may be given again"`
	Random   int      `default:"0" placeholder:"N" help:"settings to draw at random, for own; 0 for every combination"`
	DrawSeed int64    `default:"0" placeholder:"N" help:"seed of the draws: the same one draws the same settings"`
	Race     int      `default:"0" placeholder:"N" help:"seeds that every setting gets before those that are worse beyond doubt get no more, for own; 0 for no race"`
}

// question is what the flags ask.
func (f ownFlags) question() (o sweep.Own, err error) {
	o = sweep.Own{Name: f.Name, Draws: f.Random, DrawSeed: f.DrawSeed, Race: f.Race}
	if o.Vary, err = linesOf("vary", f.Vary); err != nil {
		return o, err
	}
	o.Set, err = linesOf("set", f.Set)
	return o, err
}

func linesOf(flag string, texts []string) (lines []sweep.Line, err error) {
	for _, text := range texts {
		line, err := sweep.ParseLine(text)
		if err != nil {
			return nil, badFlag{flag, err}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// scaling are the flags that scale paper and field, and of which own has its share; asking are those of own alone.
var (
	scaling = []string{"preset", "steps", "seeds", "datasets", "models", "parts"}
	asking  = []string{"name", "vary", "set", "random", "draw-seed", "race"}
)

// refused says which of the flags given do not go with what is swept; nil for none.
func refused(typed given, what string) error {
	not, why := slices.Concat(scaling, asking), "is for paper, field and own; a plan in a file says this itself"
	switch what {
	case "paper", "field":
		not, why = asking, "is for own, not for the protocol "+what
	case "own":
		not, why = []string{"parts"}, "is for paper and field"
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(typed)) {
		if slices.Contains(not, name) {
			wrong = append(wrong, "--"+name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s %s", errUsage, strings.Join(wrong, ", "), why)
	}
	return nil
}

// own is the plan of a question of one's own.
func (c *sweepCommand) own(ctx context.Context, dataDir string) (sweep.Plan, error) {
	q, err := c.question()
	if err != nil {
		return sweep.Plan{}, err
	}
	q.Preset, q.Steps, q.Seeds, q.Models, q.Datasets = c.Preset, c.Steps, c.Seeds, commas(c.Models), commas(c.Datasets)
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

// estimate says how long the plan takes by the pace of the runs of the data folder, whatever made them, and of the records.
func (s *shellSweep) estimate(b sweep.Board) sweep.Estimate {
	var runs []model.Run
	for _, dir := range []string{filepath.Join(s.dataDir, "runs"), s.options.Records} {
		entries, _ := os.ReadDir(dir) // none where there is no folder
		find := finderIn(dir)
		for _, e := range entries {
			known := slices.ContainsFunc(runs, func(r model.Run) bool { return r.ID == e.Name() })
			if found, ok := find(e.Name()); ok && !known {
				runs = append(runs, found.Run)
			}
		}
	}
	return b.Estimate(runs)
}

// told is an estimate as a line.
func told(e sweep.Estimate) string {
	if !e.Known {
		return fmt.Sprintf("%d runs at most, %d done; how long the rest takes is not known: no run of this preset has been timed here", e.Runs, e.Done)
	}
	return fmt.Sprintf("%d runs at most, %d done; about %v to train the rest one after another, at the pace of %s", e.Runs, e.Done, time.Duration(e.Seconds)*time.Second, e.From)
}
