package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slotscope/model/exchange"
)

// importRuns brings runs of other programs into the data folder.
func importRuns(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "import")
	follow := fs.Bool("follow", false, "go on until interrupted, adding what is new")
	dataDir, asJSON := dataFlag(fs), jsonFlag(fs)
	names, err := parseNames(fs, args)
	if err != nil {
		return err
	}
	if len(names) != 2 || !slices.Contains(exchange.Tools(), names[0]) {
		return fmt.Errorf("%w: slotscope import %s PATH; `slotscope import -h` lists the flags", errUsage, strings.Join(exchange.Tools(), "|"))
	}
	for {
		begun := time.Now()
		runs, err := exchange.Import(ctx, *dataDir, names[0], names[1])
		if tellErr := tellImported(env, runs, *asJSON, *follow); tellErr != nil {
			return tellErr
		}
		if err != nil || !*follow {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("following %s: %w", names[1], ctx.Err())
		case <-time.After(max(2*time.Second, 5*time.Since(begun))): // a large file is read at most a sixth of the time
		}
	}
}

// tellImported prints what became of each run; while following, only what is new.
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
