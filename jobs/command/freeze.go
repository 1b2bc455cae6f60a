package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"slotscope/model"
)

// Freeze writes the playground of checkpoints as one HTML file; main provides it.
type Freeze func(ctx context.Context, o FreezeOptions, w io.Writer) error

// FreezeOptions are the options of `slotscope freeze`.
type FreezeOptions struct {
	Data  string   // the data folder
	Names []string // runs or checkpoints: a run's ID, ID@step, or a checkpoint's key; empty for the models that ship with the program
}

type freezeCommand struct {
	Names []string `arg:"" optional:"" name:"run" help:"RUN, RUN@STEP, or a checkpoint key; default: the models that ship with the program"`
	Out   string   `default:"playground.html" placeholder:"FILE" help:"HTML file to write; an existing file is replaced"`
	dataFlag
	jsonFlag
}

// Run writes the playground of runs or checkpoints as one HTML file.
func (c *freezeCommand) Run(ctx context.Context, env environment) error {
	if ext := filepath.Ext(c.Out); !strings.EqualFold(ext, ".html") && !strings.EqualFold(ext, ".htm") {
		return model.Invalid{"out": fmt.Sprintf("%q is not an HTML file name; it must end in .html", c.Out)}
	}
	if err := placeShipped(c.Data, c.Names...); err != nil {
		return err
	}
	var page bytes.Buffer
	if err := env.freeze(ctx, FreezeOptions{c.Data, c.Names}, &page); err != nil {
		return err
	}
	size := page.Len()
	err := writeFile(c.Out, func(w io.Writer) error {
		_, err := page.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("no file was changed: writing %s: %w", c.Out, err)
	}
	if c.JSON {
		return printJSON(env.out, map[string]any{"file": c.Out, "bytes": size})
	}
	fmt.Fprintf(env.out, "%s: %d KB; open it in a browser\n", c.Out, (size+999)/1000)
	return nil
}
