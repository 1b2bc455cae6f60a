package play

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
	"slotscope/model/play"
	ui "slotscope/views/play"
)

// mostMany is the maximum number of images per request.
const mostMany = 32

// many returns seeded random images of the dataset with their codes.
func (p *Play) many(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	n, seed, err := manyQuery(r, 12)
	if err != nil {
		return err
	}
	set, err := p.Library.Set(r.Context(), rm.source.Config.Dataset)
	if err != nil {
		return err
	}
	out := make([]encodeReply, n)
	for i, index := range drawn(set, n, seed) {
		s, err := rm.encodeIndex(r.Context(), set, index)
		if err != nil {
			return err
		}
		out[i] = encodeReply{Index: index, Classes: s.classes, Codes: s.codes, PSNR: s.psnr, Original: fmt.Sprintf("/api/play/%s/original.png?index=%d", rm.source.Key, index)}
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"seed": seed, "images": out})
}

// manyQuery reads n and seed.
func manyQuery(r *http.Request, otherwise int) (n int, seed uint64, err error) {
	bad := model.Invalid{}
	n, seed = otherwise, 1
	if text := r.URL.Query().Get("n"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostMany {
			bad["n"] = fmt.Sprintf("%q is not a number of images in 1–%d", text, mostMany)
		}
	}
	if text := r.URL.Query().Get("seed"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 32); err != nil {
			bad["seed"] = fmt.Sprintf("%q is not a seed; use a whole number in 0–4294967295", text)
		}
	}
	return n, seed, bad.OrNil()
}

// drawn returns n random image indices with replacement, reproducible by seed.
func drawn(set data.Set, n int, seed uint64) []int {
	rng := rand.New(rand.NewPCG(seed, 'm'))
	out := make([]int, n)
	for i := range out {
		out[i] = rng.IntN(set.Info().Len)
	}
	return out
}

// figure serves the paper's swap figure, pairs × groups, as SVG, PNG or PDF: the state's pair first, then seeded random pairs.
func (p *Play) figure(w http.ResponseWriter, r *http.Request) error {
	kind := chi.URLParam(r, "kind")
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	n, seed, err := manyQuery(r, 5)
	if err != nil {
		return err
	}
	usage, err := p.counted(rm)
	if err != nil {
		return err
	}
	set, err := p.Library.Set(r.Context(), rm.source.Config.Dataset)
	if err != nil {
		return err
	}
	pairs := [][2]playSide{{s.a, s.b}}
	if !slices.Equal(s.codes, s.a.codes) || !slices.Equal(s.bcodes, s.b.codes) {
		pairs[0] = [2]playSide{{index: -1, codes: s.codes}, {index: -1, codes: s.bcodes}} // edited: the dataset has no such pair
	}
	indices := drawn(set, 2*(n-1), seed)
	for at := 0; at < len(indices); at += 2 {
		var pair [2]playSide
		for i := range pair {
			if pair[i], err = rm.encodeIndex(r.Context(), set, indices[at+i]); err != nil {
				return err
			}
		}
		pairs = append(pairs, pair)
	}
	names, err := p.Library.Names(rm.source)
	if err != nil {
		return err
	}
	sheet, err := rm.swapSheet(r.Context(), set, usage, names, pairs)
	if err != nil {
		return err
	}
	sheet.Seed = seed
	return handlers.SendFigure(w, r, sheet.Draw(), kind)
}

// swapSheet returns A, B and A with each owned group of B, one row per pair.
func (rm playRoom) swapSheet(ctx context.Context, set data.Set, u *play.Usage, names play.Names, pairs [][2]playSide) (ui.SwapSheet, error) {
	sheet := ui.SwapSheet{Of: origin(rm.source), Dataset: set.Info().Title}
	var groups []model.Group
	for _, g := range u.Ownership.Groups {
		if g.Owned {
			groups, sheet.Groups = append(groups, g), append(sheet.Groups, cmp.Or(names.Groups[u.Factors[g.Factor]], plainName(u.Factors[g.Factor])))
		}
	}
	for _, pair := range pairs {
		a, b := pair[0].codes, pair[1].codes
		tuples := [][]int{a, b}
		for _, g := range groups {
			tuples = append(tuples, play.Take(a, b, g.Slots))
		}
		decoded, err := rm.model.Decode(ctx, play.Strip, tuples)
		if err != nil {
			return sheet, err
		}
		row := ui.SwapRow{}
		for _, pixels := range decoded {
			row.Images = append(row.Images, play.Picture(pixels, rm.model.Image, 1))
		}
		for j, g := range groups {
			hit, err := rm.hit(set, g.Factor, pair, decoded[0], decoded[2+j])
			if err != nil {
				return sheet, err
			}
			row.Hits = append(row.Hits, hit)
		}
		sheet.Rows = append(sheet.Rows, row)
	}
	return sheet, nil
}

// hit compares a swap with the true image; it is not measured if there is none.
func (rm playRoom) hit(set data.Set, factor int, pair [2]playSide, before, swap []byte) (ui.SwapHit, error) {
	a, b := pair[0], pair[1]
	if !set.Info().Complete || a.index < 0 || b.index < 0 || a.classes[factor] == b.classes[factor] {
		return ui.SwapHit{}, nil // a swap that should change nothing cannot get closer
	}
	classes := append([]int{}, a.classes...)
	classes[factor] = b.classes[factor]
	index, err := set.Index(classes)
	if err != nil {
		return ui.SwapHit{}, err
	}
	truth, err := rm.original(set, index)
	if err != nil {
		return ui.SwapHit{}, err
	}
	c := rm.model.Image.C
	reached := play.Compare(swap, truth, c).PSNR
	return ui.SwapHit{Measured: true, PSNR: reached, Hit: metric.SwapHit(reached, a.psnr, play.Compare(before, truth, c).PSNR)}, nil
}

// movie serves the interpolation from A to B, back, or both, as a captioned animation.
func (p *Play) movie(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	direction := r.URL.Query().Get("direction")
	ways := map[string][2]bool{"": {true, true}, "both": {true, true}, "there": {true, false}, "back": {false, true}}
	way, ok := ways[direction]
	if !ok {
		return model.Invalid{"direction": fmt.Sprintf("%.20q is not a direction; use both, there or back", direction)}
	}
	names, err := p.Library.Names(rm.source)
	if err != nil {
		return err
	}
	slots := rm.slots(p.Library.Usage(rm.source).Usage, rm.dataset(r.Context()), names)
	movie := play.Movie{Shape: rm.model.Image, Hundredths: 60}
	add := func(from, to []int, a, b string) error {
		decoded, err := rm.model.Decode(r.Context(), play.Strip, play.Interpolation(from, to, s.order))
		if err != nil {
			return err
		}
		for j, pixels := range decoded {
			caption := a
			if j > 0 {
				caption = ui.StepCaption(a, b, slots[s.order[j-1]])
			}
			if j == len(decoded)-1 {
				caption = b
			}
			movie.Frames = append(movie.Frames, play.Frame{Pixels: pixels, Caption: caption})
		}
		movie.Stops = append(movie.Stops, len(movie.Frames)-len(decoded), len(movie.Frames)-1)
		return nil
	}
	if way[0] {
		err = add(s.codes, s.bcodes, "A", "B")
	}
	if err == nil && way[1] {
		err = add(s.bcodes, s.codes, "B", "A")
	}
	if err != nil {
		return err
	}
	return sendMovie(w, r, movie, rm.source.Key)
}

func sendMovie(w http.ResponseWriter, r *http.Request, movie play.Movie, key string) error {
	encode, mime := movie.GIF, "image/gif"
	if chi.URLParam(r, "kind") == "png" {
		encode, mime = movie.APNG, "image/apng"
	}
	raw, err := encode()
	if err != nil {
		return err
	}
	handlers.AsFile(w, fmt.Sprintf("slotscope-%s-animation.%s", key[:8], chi.URLParam(r, "kind")))
	return handlers.SendBytes(w, r, mime, raw)
}
