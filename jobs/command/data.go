package command

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slotscope/model/data"
)

type dataCommand struct {
	List    dataList    `cmd:"" help:"list the datasets that are ready, found, or available to download"`
	Add     dataAdd     `cmd:"" help:"add a dataset"`
	Preview dataPreview `cmd:"" help:"show how a file or folder would be read, without adding it"`
	Info    dataInfo    `cmd:"" help:"describe a dataset: images, factors, values, licence"`
	Check   dataCheck   `cmd:"" help:"verify the checksums of packed images and of published files"`
	Sample  dataSample  `cmd:"" help:"write a sheet of random images"`
	Remove  dataRemove  `cmd:"" help:"remove a dataset from the data folder; files elsewhere are kept"`
}

// dataFlags are the flags of every subcommand of data.
type dataFlags struct {
	dataFlag
	jsonFlag
}

func (f dataFlags) sets() data.Catalogue { return data.Catalogue{Dir: f.Data} }

// readingFlags set how a user's file is read.
type readingFlags struct {
	Images      string `placeholder:"NAME" help:"array of images in a NumPy, HDF5 or MATLAB file"`
	Labels      string `placeholder:"NAMES" help:"comma-separated arrays of labels in such a file, or none"`
	Scale       string `placeholder:"LOW..HIGH" help:"values of black and white, e.g. -1..1"`
	Orientation string `placeholder:"AXES" help:"order of the axes of the images, e.g. nwhc: n images, w columns, h rows, c channels"`
}

func (f readingFlags) reading() data.Reading {
	return data.Reading{Images: f.Images, Labels: f.Labels, Scale: f.Scale, Orientation: f.Orientation}
}

type dataList struct{ dataFlags }

func (c *dataList) Run(ctx context.Context, env environment) error {
	return list(ctx, env, c.sets(), c.JSON)
}

type dataAdd struct {
	From       string `arg:"" help:"path, URL, or name of a published dataset"`
	Name       string `placeholder:"NAME" help:"name of the dataset; default: its published name or the name of the file"`
	SkipBroken bool   `help:"skip damaged images"`
	readingFlags
	dataFlags
}

func (c *dataAdd) Run(ctx context.Context, env environment) error {
	return addData(ctx, env, c.sets(), data.Request{Name: c.Name, From: c.From, Skip: c.SkipBroken, Reading: c.reading()}, c.JSON)
}

type dataPreview struct {
	Path string `arg:"" help:"file or folder"`
	Out  string `placeholder:"FILE.png" help:"file to write a sheet of the first images to"`
	readingFlags
	dataFlags
}

func (c *dataPreview) Run(ctx context.Context, env environment) error {
	return previewData(ctx, env, c.sets(), data.Request{From: c.Path, Reading: c.reading()}, c.Out, c.JSON)
}

type dataInfo struct {
	Name string `arg:"" help:"dataset"`
	dataFlags
}

func (c *dataInfo) Run(ctx context.Context, env environment) error {
	set, err := c.sets().Open(ctx, c.Name)
	if err != nil {
		return err
	}
	defer set.Close()
	if c.JSON {
		return printJSON(env.out, set.Info())
	}
	explain(env.out, set.Info())
	return nil
}

type dataCheck struct {
	Name string `arg:"" help:"dataset"`
	dataFlags
}

func (c *dataCheck) Run(ctx context.Context, env environment) error {
	return checkData(ctx, env, c.sets(), c.Name, c.JSON)
}

type dataSample struct {
	Name string `arg:"" help:"dataset"`
	Out  string `default:"sample.png" placeholder:"FILE.png" help:"file to write"`
	Seed int64  `default:"0" placeholder:"N" help:"seed for drawing the images"`
	dataFlags
}

func (c *dataSample) Run(ctx context.Context, env environment) error {
	set, err := c.sets().Open(ctx, c.Name)
	if err != nil {
		return err
	}
	defer set.Close()
	return sample(env, set, c.Seed, c.Out, c.JSON)
}

type dataRemove struct {
	Name string `arg:"" help:"dataset"`
	dataFlags
}

func (c *dataRemove) Run(env environment) error {
	return removeData(env, c.sets(), c.Name, c.JSON)
}

// list prints every known dataset with its state and, if it cannot be opened, how to fix that.
func list(ctx context.Context, env environment, sets data.Catalogue, asJSON bool) error {
	entries := sets.Entries(ctx)
	if asJSON {
		infos, known := sets.List(ctx), []map[string]any{}
		for _, e := range entries {
			known = append(known, map[string]any{"name": e.Info.Name, "state": e.State, "kind": e.Kind, "paths": e.Paths, "bytes": e.Disk, "why": e.Why()})
		}
		return printJSON(env.out, map[string]any{"datasets": infos, "catalogue": known})
	}
	for _, e := range entries {
		if e.State == data.Ready {
			fmt.Fprintf(env.out, "%-24s %s, %d×%d×%d, %s\n", e.Info.Name, counted(e.Info.Len, "image"), e.Info.H, e.Info.W, e.Info.C, counted(len(e.Info.Factors), "factor"))
		} else {
			fmt.Fprintf(env.out, "%-24s %s: %s\n", e.Info.Name, e.State, e.Why())
		}
	}
	return nil
}

// previewData prints how a file would be read, and writes a sheet of the first images to out if it is not empty.
func previewData(ctx context.Context, env environment, sets data.Catalogue, r data.Request, out string, asJSON bool) error {
	r.From = asShell(r.From)
	p, err := sets.Preview(ctx, r)
	if err != nil {
		return err
	}
	if out != "" {
		if err := writePNG(out, p.Info.Picture(p.Images, sampleSide, 1)); err != nil {
			return err
		}
	}
	if asJSON {
		return printJSON(env.out, p)
	}
	fmt.Fprintf(env.out, "read as: %s\n", p.Format)
	explain(env.out, p.Info)
	if p.Axes != "" {
		fmt.Fprintln(env.out, "axes of the images:", p.Axes)
	}
	for _, text := range p.Used {
		fmt.Fprintln(env.out, "uses", oneLine(text))
	}
	for _, text := range p.Unused {
		fmt.Fprintln(env.out, "ignores", oneLine(text))
	}
	fmt.Fprintf(env.out, "in memory: %s\n", data.Bytes(int64(p.Info.Len)*int64(p.Info.H*p.Info.W*p.Info.C)))
	return nil
}

// asShell makes an existing path absolute, relative to the shell's folder.
func asShell(from string) string {
	if path, err := filepath.Abs(from); err == nil && exists(path) {
		return path
	}
	return from
}

// addData adds a dataset in this process and shows the progress.
func addData(ctx context.Context, env environment, sets data.Catalogue, r data.Request, asJSON bool) error {
	r.From = asShell(r.From)
	show, end := workLine(env.err)
	name, err := sets.Add(ctx, r, show)
	end()
	if err != nil {
		if err := withoutDamaged(ctx, sets, name, err); ctx.Err() != nil || err != nil && strings.Contains(err.Error(), "--skip-broken") {
			return err
		}
		return errors.Join(err, sets.Forget(name))
	}
	e, err := sets.Entry(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(env.out, e.Info)
	}
	fmt.Fprintf(env.out, "%s is ready: %s, %s, %s in the data folder\n", name, counted(e.Info.Len, "image"), counted(len(e.Info.Factors), "factor"), data.Bytes(e.Disk))
	return nil
}

// counted formats a number of things: "1 factor", "12 factors".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// withoutDamaged adds a hint to the error if a damaged image is why a dataset could not be added.
func withoutDamaged(ctx context.Context, sets data.Catalogue, name string, err error) error {
	if e, other := sets.Entry(ctx, name); other == nil && e.State == data.Failed && e.Work.Damaged != "" {
		return fmt.Errorf("%w. To skip damaged images: slotscope data add %s --skip-broken", err, name)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func checkData(ctx context.Context, env environment, sets data.Catalogue, name string, asJSON bool) error {
	show, end := workLine(env.err)
	err := sets.Check(ctx, name, show)
	end()
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(env.out, map[string]any{"dataset": name, "whole": true})
	}
	fmt.Fprintln(env.out, name, "is intact")
	return nil
}

func removeData(env environment, sets data.Catalogue, name string, asJSON bool) error {
	if err := sets.Remove(name); err != nil {
		return err
	}
	if asJSON {
		return printJSON(env.out, map[string]any{"removed": name})
	}
	fmt.Fprintln(env.out, name, "is removed")
	return nil
}

// workLine shows progress: one line that is updated in place on a terminal, otherwise a line every ten seconds.
func workLine(w io.Writer) (show func(data.Work), end func()) {
	terminal, last, shown := isTerminal(w), time.Now(), false
	show = func(work data.Work) {
		switch {
		case terminal:
			shown = true
			fmt.Fprintf(w, "\r\x1b[K%s", work)
		case time.Since(last) >= 10*time.Second:
			last = time.Now()
			fmt.Fprintln(w, work)
		}
	}
	return show, func() {
		if shown {
			fmt.Fprintln(w)
		}
	}
}

func explain(w io.Writer, info data.Info) {
	fmt.Fprintf(w, "%s: %s of %d×%d×%d bytes\n%s\n", oneLine(info.Title), counted(info.Len, "image"), info.H, info.W, info.C, oneLine(info.About))
	if info.Note != "" {
		fmt.Fprintln(w, oneLine(info.Note))
	}
	for _, f := range info.Factors {
		first, last := oneLine(f.Values[0]), oneLine(f.Values[len(f.Values)-1])
		if len(f.Values) == 1 {
			fmt.Fprintf(w, "  %-20s   1 value:  %s\n", oneLine(f.Name), first)
			continue
		}
		fmt.Fprintf(w, "  %-20s %3d values: %s … %s\n", oneLine(f.Name), len(f.Values), first, last)
	}
	if len(info.Factors) == 0 {
		fmt.Fprintln(w, "  no factors: the dataset can be used for training, but not for metrics that need factors")
	}
	if info.Licence != "" {
		fmt.Fprintf(w, "licence: %s\n", info.Licence)
	}
}

const sampleSide = 8 // images along each side of a sample sheet

// sample writes a sheet of random images and, with asJSON, prints their indices.
func sample(env environment, set data.Set, seed int64, path string, asJSON bool) error {
	info := set.Info()
	index, err := data.Draw(seed, min(sampleSide*sampleSide, info.Len), info.Len)
	if err != nil {
		return err
	}
	size := info.H * info.W * info.C
	images := make([]byte, len(index)*size)
	if err := set.Images(images, index); err != nil {
		return err
	}
	sheet := info.Picture(images, min(sampleSide, len(index)), 1)
	if err := writePNG(path, sheet); err != nil || !asJSON {
		return err
	}
	return printJSON(env.out, map[string]any{"dataset": info.Name, "file": path, "index": index})
}

func writePNG(path string, img image.Image) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(file, img), file.Close())
}
