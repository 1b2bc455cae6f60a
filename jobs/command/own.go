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

// ownFlags are the flags of a sweep over user-chosen hyperparameters.
type ownFlags struct {
	Name     string   `default:"my sweep" placeholder:"NAME" help:"name of the sweep, for own"`
	Vary     []string `sep:"none" placeholder:"NAME=VALUES" help:"hyperparameter to vary, for own (repeatable): comma-separated values, or with --random also a range, e.g. lr=0.0001..0.01 or 'lr=0.0001..0.01 log'"`
	Set      []string `sep:"none" placeholder:"NAME=VALUE" help:"hyperparameter of every run, for own (repeatable)"`
	Random   int      `default:"0" placeholder:"N" help:"settings to draw at random, for own; 0 runs every combination"`
	DrawSeed int64    `default:"0" placeholder:"N" help:"seed for drawing settings, for own"`
	Race     int      `default:"0" placeholder:"N" help:"seeds per setting before clearly worse settings are dropped, for own; 0 drops none"`
}

// question returns the sweep that the flags describe.
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

// scaling are the flags of paper and field, which own shares in part; asking are the flags of own only.
var (
	scaling = []string{"preset", "steps", "seeds", "datasets", "models", "parts"}
	asking  = []string{"name", "vary", "set", "random", "draw-seed", "race"}
)

// refused returns an error that names the given flags that do not apply to what is swept; nil if there are none.
func refused(typed given, what string) error {
	not, why := slices.Concat(scaling, asking), "applies only to paper, field and own; other plans set it themselves"
	switch what {
	case "paper", "field":
		not, why = asking, "applies only to own, not to the protocol "+what
	case "own":
		not, why = []string{"parts"}, "applies only to paper and field"
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

// own returns the plan of a user-defined sweep.
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

// estimate returns how long the plan takes, from the speed of all runs in the data folder and of the records.
func (s *shellSweep) estimate(b sweep.Board) sweep.Estimate {
	var runs []model.Run
	for _, dir := range []string{filepath.Join(s.dataDir, "runs"), s.options.Records} {
		entries, _ := os.ReadDir(dir) // none if the folder does not exist
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

// told formats an estimate as a line.
func told(e sweep.Estimate) string {
	if !e.Known {
		return fmt.Sprintf("at most %d runs, %d done; time left unknown: no run of this preset has been timed here", e.Runs, e.Done)
	}
	return fmt.Sprintf("at most %d runs, %d done; about %v to train the rest one after another, at the speed of %s", e.Runs, e.Done, time.Duration(e.Seconds)*time.Second, e.From)
}
