package command

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"slotscope/model/bundle"
	"slotscope/model/exchange"
	"slotscope/model/folder"
	"slotscope/model/whole"
)

// Export collects the parts of a bundle for a checkpoint; main provides it. close frees what the bundle reads while it is written.
type Export func(ctx context.Context, o ExportOptions) (b bundle.Bundle, close func(), err error)

// ExportOptions are the options of `slotscope export`.
type ExportOptions struct {
	Data string // the data folder
	Name string // a run's ID, ID@step, a checkpoint's key, or empty for the demo model
}

type exportCommand struct {
	Name    string `arg:"" optional:"" name:"run" help:"RUN, RUN@STEP, or a checkpoint key; default: the demo model"`
	Out     string `placeholder:"DIR|FILE.zip" help:"folder or file to write; default: the run's name, or for its points tensorboard, mlruns or points.parquet"`
	As      string `default:"bundle" enum:"bundle,tensorboard,mlflow,parquet" placeholder:"FORMAT" help:"bundle exports the model, the other formats the run's points"`
	License string `placeholder:"ID" help:"licence for the model card, e.g. apache-2.0; default: unknown"`
	dataFlag
	jsonFlag
}

// Run writes a run's model as a bundle, or its points.
func (c *exportCommand) Run(ctx context.Context, env environment) error {
	if c.As != "bundle" {
		return exportPoints(env, c.As, c.Data, c.Name, c.Out, c.JSON)
	}
	if c.Out == "" {
		c.Out = strings.ReplaceAll(c.Name, "@", "-step-")
		if c.Name == "" {
			c.Out = "demo"
		}
	}
	if err := placeShipped(c.Data, c.Name); err != nil {
		return err
	}
	b, free, err := env.export(ctx, ExportOptions{c.Data, c.Name})
	if err != nil {
		return err
	}
	defer free()
	b.License = c.License
	files, err := writeBundle(b, c.Out)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env.out, map[string]any{"out": c.Out, "files": files})
	}
	if b.Scores == nil {
		fmt.Fprintln(env.err, "This checkpoint has not been evaluated, so the bundle has no scores; to include them, run `slotscope eval` first.")
	}
	fmt.Fprintf(env.out, "wrote %d files to %s; check them with `slotscope verify %s`\n", len(files), c.Out, c.Out)
	return nil
}

func writeBundle(b bundle.Bundle, out string) (files []string, err error) {
	if !strings.EqualFold(filepath.Ext(out), ".zip") {
		return b.WriteDir(out)
	}
	_ = whole.CleanFor(out) // files that cannot be removed only take space
	err = writeFile(out, func(w io.Writer) error {
		files, err = b.WriteZip(w, strings.TrimSuffix(filepath.Base(out), filepath.Ext(out)))
		return err
	})
	return files, err
}

// exportPoints writes the points of a run in the format of another program.
func exportPoints(env environment, as, dataDir, name, out string, asJSON bool) error {
	ways := map[string]struct {
		out   string
		write func(f *folder.Folder, out string) (string, error)
	}{
		"tensorboard": {"tensorboard", func(f *folder.Folder, out string) (string, error) {
			return exchange.TensorBoard(f, filepath.Join(out, f.ID()))
		}},
		"mlflow":  {"mlruns", exchange.MLflow},
		"parquet": {"points.parquet", func(f *folder.Folder, out string) (string, error) { return out, exchange.Parquet(f, out) }},
	}
	way := ways[as]
	if out == "" {
		out = way.out
	}
	dir, err := runDir(dataDir, name)
	if err != nil {
		return err
	}
	f, err := folder.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	path, err := way.write(f, out)
	if err != nil {
		return fmt.Errorf("exporting run %s as %s: %w", f.ID(), as, err)
	}
	if asJSON {
		return printJSON(env.out, map[string]any{"out": path})
	}
	fmt.Fprintln(env.out, path)
	return nil
}
