package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/folder"
	"slotscope/model/measure/report"
	"slotscope/model/play"
	"slotscope/model/sweep"
	"slotscope/model/whole"
)

type reportCommand struct {
	Names   []string `arg:"" name:"run" help:"run IDs or folders, or the ID of a sweep"`
	Out     string   `default:"report" placeholder:"FOLDER" help:"output folder; existing files of the same name are replaced"`
	Rule    string   `default:"paper" enum:"${rules}" placeholder:"RULE" help:"rule for which values are set in bold"`
	Title   string   `placeholder:"TEXT" help:"title of the report"`
	Bundles bool     `help:"include the bundle of every run with a checkpoint, as written by slotscope export"`
	dataFlag
	jsonFlag
}

// Run writes a report of runs or of a sweep into a folder.
func (c *reportCommand) Run(ctx context.Context, env environment) error {
	in, err := reportInput(c.Data, c.Names)
	if err != nil {
		return err
	}
	closePairs, err := withPairs(ctx, &in, c.Data)
	if err != nil {
		return err
	}
	defer closePairs()
	if c.Bundles {
		addBundles(ctx, env, in, c.Data)
	}
	in.Rule = report.Rule(c.Rule)
	in.Again = report.AgainOf(c.Names...)
	if c.Title != "" {
		in.Title = c.Title
	}
	r, err := report.New(in)
	if err != nil {
		return err
	}
	written, err := writeReport(ctx, env, r, c.Out)
	if err != nil {
		return err
	}
	return tellReport(env, r, c.Out, written, c.JSON)
}

// withPairs lets a report show a pair of images for runs of a data folder; their checkpoints stay open until close is called.
func withPairs(ctx context.Context, in *report.Input, dataDir string) (close func(), err error) {
	engine, err := compute.Open("cpu")
	if err != nil {
		return nil, err
	}
	library := play.NewLibrary(dataDir, engine, data.Catalogue{Dir: dataDir})
	for _, part := range in.Parts {
		for i := range part.Entries {
			e := &part.Entries[i]
			e.Pair = func(a, b int) (report.Pair, error) {
				p, err := library.Pair(ctx, e.Run.ID, a, b)
				return report.Pair(p), err
			}
			e.Between = func() (a, b int, err error) {
				set, err := library.Set(ctx, e.Run.Config.Dataset)
				if err == nil {
					a, b = play.GoodPair(set)
				}
				return a, b, err
			}
		}
	}
	return library.Close, nil
}

// addBundles adds the models of its runs to a report and reports runs without one.
func addBundles(ctx context.Context, env environment, in report.Input, dataDir string) {
	told := map[string]bool{}
	for _, part := range in.Parts {
		for i, e := range part.Entries {
			why := noModel(e, dataDir)
			if why == "" {
				part.Entries[i].Bundle = func(w io.Writer) error { return writeModel(ctx, env, ExportOptions{dataDir, e.Run.ID}, w) }
			} else if !told[e.Run.ID] {
				told[e.Run.ID] = true
				fmt.Fprintf(env.err, "no model included for run %s: %s\n", e.Run.ID, why)
			}
		}
	}
}

// noModel returns why a run has no model in a data folder; empty if it has one.
func noModel(e report.Entry, dataDir string) string {
	if e.Run.Config.Model == model.External {
		return "it is served by an external program"
	}
	f, err := folder.Open(filepath.Join(dataDir, "runs", e.Run.ID))
	if err == nil {
		defer f.Close()
	}
	if err != nil || len(f.Checkpoints()) == 0 {
		return "it has no checkpoint in " + dataDir
	}
	return ""
}

// writeModel writes a run's bundle as a zip archive.
func writeModel(ctx context.Context, env environment, o ExportOptions, w io.Writer) error {
	b, free, err := env.export(ctx, o)
	if err != nil {
		return err
	}
	defer free()
	_, err = b.WriteZip(w, o.Name)
	return err
}

// reportInput finds the named runs, or the runs of a sweep.
func reportInput(dataDir string, names []string) (report.Input, error) {
	if len(names) == 1 {
		saved, err := sweep.OpenStore(dataDir).Get(names[0])
		if err == nil {
			return sweepInput(dataDir, saved.Plan), nil
		}
		if !errors.Is(err, model.ErrNotFound) {
			return report.Input{}, err
		}
	}
	part := report.Part{}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		dir, err := runDir(dataDir, name)
		if err != nil {
			return report.Input{}, err
		}
		e, err := entryOf(dir)
		if err != nil {
			return report.Input{}, err
		}
		part.Entries = append(part.Entries, e)
	}
	title := fmt.Sprintf("%d runs", len(part.Entries))
	if len(part.Entries) == 1 {
		title = part.Entries[0].Run.Name
	}
	return report.Input{Title: title, Parts: []report.Part{part}}, nil
}

// sweepInput returns the report input for the current state of a sweep.
func sweepInput(dataDir string, p sweep.Plan) report.Input {
	return report.OfSweep(p.Look(finder(dataDir)), func(id string) (report.Entry, bool) {
		e, err := entryOf(filepath.Join(dataDir, "runs", id))
		return e, err == nil
	})
}

// archiveName is the archive that contains all other files of a report.
const archiveName = "report.zip"

// writeReport writes every file of a report, their checksums and the archive, rendering each file once, and returns the file names.
func writeReport(ctx context.Context, env environment, r *report.Report, out string) (names []string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	shown := newProgress(env.err)
	defer shown.end()
	r.Told = func(p report.Progress) { shown.show("writing "+p.File, "", p.Share, 1) }
	err = writeFile(filepath.Join(out, archiveName), func(archive io.Writer) error {
		return r.ZipBeside(archive, func(name string, write func(io.Writer) error) error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("the report is incomplete: %w", err)
			}
			path := filepath.Join(out, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			names = append(names, name)
			return writeFile(path, write)
		})
	})
	return append(names, archiveName), err
}

// writeFile replaces a file atomically; after an error the old file is unchanged.
func writeFile(path string, write func(io.Writer) error) error {
	err := whole.Write(path, func(f *os.File) error {
		b := bufio.NewWriter(f)
		return errors.Join(write(b), b.Flush())
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// tellReport prints the tables of a report, or all of its results as JSON.
func tellReport(env environment, r *report.Report, out string, written []string, asJSON bool) error {
	if asJSON {
		return printJSON(env.out, map[string]any{"out": out, "files": written, "results": r.Results()})
	}
	for _, l := range r.Left() {
		fmt.Fprintf(env.err, "left out: run %s, seed %d: %s\n", l.Run.ID, l.Run.Config.Seed, l.Why)
	}
	if err := r.Tables(env.out); err != nil {
		return err
	}
	fmt.Fprintf(env.out, "wrote %d files to %s; start with %s\n", len(written), out, filepath.Join(out, "report.html"))
	return nil
}
