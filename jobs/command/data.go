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
	List    dataList    `cmd:"" help:"list what can be used, what was found, and what is to be got where"`
	Add     dataAdd     `cmd:"" help:"add a dataset"`
	Preview dataPreview `cmd:"" help:"say what adding a file would make of it"`
	Info    dataInfo    `cmd:"" help:"describe a dataset: images, factors, values, licence"`
	Check   dataCheck   `cmd:"" help:"compare packed images with their checksums, published files with the published ones"`
	Sample  dataSample  `cmd:"" help:"draw a sheet of images at random"`
	Remove  dataRemove  `cmd:"" help:"take a dataset out of the data folder; files elsewhere stay"`
}

// dataFlags are those of every subcommand of data.
type dataFlags struct {
	dataFlag
	jsonFlag
}

func (f dataFlags) sets() data.Catalogue { return data.Catalogue{Dir: f.Data} }

// readingFlags say how a file of one's own is read.
type readingFlags struct {
	Images string `placeholder:"NAME" help:"array of images in a NumPy, HDF5 or MATLAB file"`
	Labels string `placeholder:"NAMES" help:"its arrays of labels, commas between, or none"`
	Scale  string `placeholder:"LOW..HIGH" help:"which numbers are black and white, such as -1..1"`
}

func (f readingFlags) reading() data.Reading {
	return data.Reading{Images: f.Images, Labels: f.Labels, Scale: f.Scale}
}

type dataList struct{ dataFlags }

func (c *dataList) Run(ctx context.Context, env environment) error {
	return list(ctx, env, c.sets(), c.JSON)
}

type dataAdd struct {
	From       string `arg:"" help:"path, URL, or the name of a published dataset"`
	Name       string `placeholder:"NAME" help:"what to call the dataset; else its published name, or the file's"`
	SkipBroken bool   `help:"leave out pictures that are damaged"`
	readingFlags
	dataFlags
}

func (c *dataAdd) Run(ctx context.Context, env environment) error {
	return addData(ctx, env, c.sets(), data.Request{Name: c.Name, From: c.From, Skip: c.SkipBroken, Reading: c.reading()}, c.JSON)
}

type dataPreview struct {
	Path string `arg:"" help:"file or folder"`
	Out  string `placeholder:"FILE.png" help:"picture of the first images to write"`
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
	Out  string `default:"sample.png" placeholder:"FILE.png" help:"picture to write"`
	Seed int64  `default:"0" placeholder:"N" help:"which images are drawn"`
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

// list prints every dataset that the program knows, with its state and, where it cannot be opened, what helps.
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

// previewData says what adding a file would make of it, and draws the first images where a file is named for them.
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
	for _, text := range p.Used {
		fmt.Fprintln(env.out, "uses", oneLine(text))
	}
	for _, text := range p.Unused {
		fmt.Fprintln(env.out, "does not use", oneLine(text))
	}
	fmt.Fprintf(env.out, "in memory: %s\n", data.Bytes(int64(p.Info.Len)*int64(p.Info.H*p.Info.W*p.Info.C)))
	return nil
}

// asShell makes a path that exists absolute, as the shell means it.
func asShell(from string) string {
	if path, err := filepath.Abs(from); err == nil && exists(path) {
		return path
	}
	return from
}

// addData adds a dataset in this process, showing how far it is.
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

// counted is a number of things: "1 factor", "12 factors".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// withoutDamaged says what helps where a set could not be added for one damaged picture.
func withoutDamaged(ctx context.Context, sets data.Catalogue, name string, err error) error {
	if e, other := sets.Entry(ctx, name); other == nil && e.State == data.Failed && e.Work.Damaged != "" {
		return fmt.Errorf("%w. To leave damaged pictures out: slotscope data add %s --skip-broken", err, name)
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
	fmt.Fprintln(env.out, name, "is whole")
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

// workLine shows progress: one line that renews itself on a terminal, a line every ten seconds elsewhere.
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
		fmt.Fprintf(w, "  %-20s %3d values: %s … %s\n", oneLine(f.Name), len(f.Values), oneLine(f.Values[0]), oneLine(f.Values[len(f.Values)-1]))
	}
	if len(info.Factors) == 0 {
		fmt.Fprintln(w, "  it has no factors: it can be learned from, but nothing can be measured against factors")
	}
	if info.Licence != "" {
		fmt.Fprintf(w, "licence: %s\n", info.Licence)
	}
}

const sampleSide = 8 // images along each side of a sample sheet

// sample writes a sheet of images drawn at random, and says so where a program listens.
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
