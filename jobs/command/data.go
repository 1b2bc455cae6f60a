package command

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"strings"

	"slotscope/model"
	"slotscope/model/data"
)

func dataCommand(ctx context.Context, env environment, args []string) error {
	if len(args) == 0 || args[0] != "list" && args[0] != "info" && args[0] != "sample" {
		return fmt.Errorf("%w: slotscope data list | info NAME | sample NAME --out FILE.png", errUsage)
	}
	what := args[0]
	fs := flags(env, "data "+what)
	dir, asJSON := dataFlag(fs), jsonFlag(fs)
	out := fs.String("out", "sample.png", "where sample writes its picture")
	seed := fs.Int64("seed", 0, "which images sample draws")
	name, rest := "", args[1:]
	if what != "list" {
		if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
			return fmt.Errorf("%w: slotscope data %s NAME", errUsage, what)
		}
		name, rest = rest[0], rest[1:]
	}
	if err := parse(fs, rest, 0); err != nil {
		return err
	}
	if what == "list" {
		return list(ctx, env, *dir, *asJSON)
	}
	set, err := data.Open(ctx, name, *dir)
	if err != nil {
		return err
	}
	defer set.Close()
	if what == "sample" {
		return sample(env, set, *seed, *out, *asJSON)
	}
	if *asJSON {
		return printJSON(env.out, set.Info())
	}
	explain(env.out, set.Info())
	return nil
}

func list(ctx context.Context, env environment, dir string, asJSON bool) error {
	infos := data.List(ctx, dir)
	if asJSON {
		return printJSON(env.out, map[string]any{"datasets": infos})
	}
	for _, info := range infos {
		fmt.Fprintf(env.out, "%-24s %d images, %d×%d×%d, %d factors\n", info.Name, info.Len, info.H, info.W, info.C, len(info.Factors))
	}
	return nil
}

func explain(w io.Writer, info data.Info) {
	fmt.Fprintf(w, "%s: %d images of %d×%d×%d bytes\n%s\n", info.Title, info.Len, info.H, info.W, info.C, info.About)
	if info.Note != "" {
		fmt.Fprintln(w, info.Note)
	}
	for _, f := range info.Factors {
		fmt.Fprintf(w, "  %-20s %3d values: %s … %s\n", f.Name, len(f.Values), f.Values[0], f.Values[len(f.Values)-1])
	}
	fmt.Fprintf(w, "licence: %s\n", info.Licence)
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
	if info.C != 3 {
		return model.Invalid{"dataset": fmt.Sprintf("%s has %d channels; sample draws sets of 3", info.Name, info.C)}
	}
	sheet := image.NewNRGBA(image.Rect(0, 0, sampleSide*info.W, sampleSide*info.H))
	for b := range index {
		x0, y0 := b%sampleSide*info.W, b/sampleSide*info.H
		for p := range info.H * info.W {
			at := sheet.PixOffset(x0+p%info.W, y0+p/info.W)
			copy(sheet.Pix[at:at+3], images[b*size+3*p:])
			sheet.Pix[at+3] = 255
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(png.Encode(file, sheet), file.Close()); err != nil || !asJSON {
		return err
	}
	return printJSON(env.out, map[string]any{"dataset": info.Name, "file": path, "index": index})
}
