package command

import (
	"context"
	"fmt"
	"time"

	"slotscope/model/exchange"
)

type importCommand struct {
	Tool   string `arg:"" enum:"${tools}" help:"program that wrote the runs"`
	Path   string `arg:"" help:"folder with the runs"`
	Follow bool   `help:"keep importing new points until interrupted"`
	dataFlag
	jsonFlag
}

// Run imports runs of other programs into the data folder.
func (c *importCommand) Run(ctx context.Context, env environment) error {
	for {
		begun := time.Now()
		runs, err := exchange.Import(ctx, c.Data, c.Tool, c.Path)
		if tellErr := tellImported(env, runs, c.JSON, c.Follow); tellErr != nil {
			return tellErr
		}
		if err != nil || !c.Follow {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("following %s: %w", c.Path, ctx.Err())
		case <-time.After(max(2*time.Second, 5*time.Since(begun))): // reading a large file takes at most a sixth of the time
		}
	}
}

// tellImported prints the imported runs; while following, only those with new points.
func tellImported(env environment, runs []exchange.Imported, asJSON, newOnly bool) error {
	if asJSON && !newOnly {
		if runs == nil {
			runs = []exchange.Imported{}
		}
		return printJSON(env.out, map[string]any{"runs": runs})
	}
	for _, r := range runs {
		if r.Added > 0 || !newOnly {
			fmt.Fprintf(env.out, "%s  %s: %d new steps, last step %d\n", r.ID, oneLine(r.Name), r.Added, r.Steps)
		}
	}
	return nil
}
