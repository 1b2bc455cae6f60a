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
)

// Export gathers a checkpoint for a bundle; main provides it. close frees what the bundle reads from while it is written.
type Export func(ctx context.Context, o ExportOptions) (b bundle.Bundle, close func(), err error)

// ExportOptions is what `slotscope export` was told.
type ExportOptions struct {
	Data string // the data folder
	Name string // a run's ID, ID@step, a checkpoint's key, or empty for the demo model
}

// exportRun writes a run's model as a bundle.
func exportRun(ctx context.Context, env environment, args []string) error {
	fs := flags(env, "export")
	out := fs.String("out", "", "`DIR` or FILE.zip to write (default: the run's ID)")
	as := fs.String("as", "bundle", "`FORMAT`: bundle, or the run's points as tensorboard, mlflow or parquet")
	license := fs.String("license", "", "licence `ID` for the model card, such as apache-2.0 (default: unknown)")
	dataDir, asJSON := dataFlag(fs), jsonFlag(fs)
	names, err := parseNames(fs, args)
	if err != nil {
		return err
	}
	if len(names) > 1 {
		return fmt.Errorf("%w: slotscope export takes one run, %d are given", errUsage, len(names))
	}
	name := strings.Join(names, "")
	if *as != "bundle" {
		return exportPoints(env, *as, *dataDir, name, *out, *asJSON)
	}
	if *out == "" {
		*out = strings.ReplaceAll(name, "@", "-step-")
		if name == "" {
			*out = "demo"
		}
	}
	b, free, err := env.export(ctx, ExportOptions{*dataDir, name})
	if err != nil {
		return err
	}
	defer free()
	b.License = *license
	files, err := writeBundle(b, *out)
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(env.out, map[string]any{"out": *out, "files": files})
	}
	if b.Scores == nil {
		fmt.Fprintln(env.err, "This checkpoint is not evaluated, so the bundle has no scores; run `slotscope eval` first to include them.")
	}
	fmt.Fprintf(env.out, "%d files in %s; check them with `slotscope verify %s`\n", len(files), *out, *out)
	return nil
}

func writeBundle(b bundle.Bundle, out string) (files []string, err error) {
	if !strings.EqualFold(filepath.Ext(out), ".zip") {
		return b.WriteDir(out)
	}
	err = writeFile(out, func(w io.Writer) error {
		files, err = b.WriteZip(w, strings.TrimSuffix(filepath.Base(out), filepath.Ext(out)))
		return err
	})
	return files, err
}

// exportPoints writes what a run measured for another program.
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
	way, ok := ways[as]
	if !ok {
		return fmt.Errorf("%w: --as %q is not one of bundle, tensorboard, mlflow, parquet", errUsage, as)
	}
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
