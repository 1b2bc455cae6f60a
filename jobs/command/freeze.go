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

// FreezeOptions is what `slotscope freeze` was told.
type FreezeOptions struct {
	Data  string   // the data folder
	Names []string // of runs or checkpoints: a run's ID, ID@step, or a checkpoint's key; none for the models that ship with the program
}

// freezePages writes runs or checkpoints as one page; without a name the models that ship with the program.
func freezePages(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "freeze")
	out := fs.String("out", "playground.html", "`FILE` to write; an existing file is replaced")
	dataDir, asJSON := dataFlag(fs), jsonFlag(fs)
	names, err := parseNames(fs, args)
	if err != nil {
		return err
	}
	if ext := filepath.Ext(*out); !strings.EqualFold(ext, ".html") && !strings.EqualFold(ext, ".htm") {
		return model.Invalid{"out": fmt.Sprintf("%q is not the name of a page; it must end in .html", *out)}
	}
	var page bytes.Buffer
	if err := env.freeze(ctx, FreezeOptions{*dataDir, names}, &page); err != nil {
		return err
	}
	size := page.Len()
	err = writeFile(*out, func(w io.Writer) error {
		_, err := page.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w; no file was changed", *out, err)
	}
	if *asJSON {
		return printJSON(env.out, map[string]any{"file": *out, "bytes": size})
	}
	fmt.Fprintf(env.out, "%s: %d KB; open it in a browser\n", *out, (size+999)/1000)
	return nil
}
