// Package home serves the home page.
package home

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/play"
	ui "slotscope/views/home"
)

// Home serves the home page: a description and links to play, train and browse datasets.
type Home struct {
	Runs interface {
		handlers.RunReader
		handlers.RunFiles
	}
	Datasets handlers.DatasetList
	Library  *play.Library // checkpoints of the playground; nil if none

	strip homeStrip
}

// homeRuns is the number of runs shown.
const homeRuns = 5

// Routes registers / and the data of its swap animation.
func (h *Home) Routes(r chi.Router) {
	r.Get("/", handlers.Handle(h.page))
	r.Get("/home/swaps.png", handlers.Handle(h.swaps))
	r.Get("/home/swap.json", handlers.Handle(h.swap))
}

func (h *Home) page(w http.ResponseWriter, r *http.Request) error {
	runs, err := h.Runs.List(r.Context())
	if err != nil {
		return err
	}
	slices.SortFunc(runs, func(a, b model.Run) int { return b.Created.Compare(a.Created) })
	view := ui.HomeView{Runs: runs[:min(len(runs), homeRuns)], Total: len(runs)}
	if src, ok := h.checkpoint(); ok {
		view.Checkpoint = src.Key
		view.Trained = ui.TrainedSaid(src.Config, src.Step)
	}
	if infos := h.Datasets.List(r.Context()); len(infos) > 0 {
		view.Dataset, view.Images, view.Factors = infos[0].Name, infos[0].Len, len(infos[0].Factors)
	}
	view.Sheet = h.newestSheet(r.Context(), runs)
	return handlers.Draw(w, r, ui.Home(view))
}

// checkpoint returns the checkpoint that the page demonstrates.
func (h *Home) checkpoint() (play.Source, bool) {
	if h.Library == nil {
		return play.Source{}, false
	}
	list := h.Library.List()
	if len(list) == 0 {
		return play.Source{}, false
	}
	return list[0], true
}

// newestSheet returns the URL of the newest reconstructions of the newest run that has any, or "".
func (h *Home) newestSheet(ctx context.Context, runs []model.Run) string {
	for _, run := range runs {
		if _, steps, err := h.Runs.Sample(ctx, run.ID, 0); err == nil && len(steps) > 0 {
			return fmt.Sprintf("/api/runs/%s/samples/%d.png?a=%d", run.ID, steps[len(steps)-1], run.Attempt)
		}
	}
	return ""
}

// homeStrip caches the image of one checkpoint.
type homeStrip struct {
	mu  sync.Mutex
	key string
	png []byte
}

// tileScale is the magnification of the image, which has three tiles: image A, A with the slot of B that changes it most, and image B.
const tileScale = 2

// swaps sends the image as PNG, cached for one checkpoint.
func (h *Home) swaps(w http.ResponseWriter, r *http.Request) error {
	src, ok := h.checkpoint()
	if !ok {
		return fmt.Errorf("there is no checkpoint to draw: %w", model.ErrNotFound)
	}
	h.strip.mu.Lock()
	defer h.strip.mu.Unlock()
	if h.strip.key != src.Key {
		raw, err := h.drawSwaps(r.Context(), src)
		if err != nil {
			return err
		}
		h.strip.key, h.strip.png = src.Key, raw
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable") // the page's URL of it contains the checkpoint's key
	_, _ = w.Write(h.strip.png)
	return nil
}

func (h *Home) drawSwaps(ctx context.Context, src play.Source) ([]byte, error) {
	m, release, err := h.Library.Use(ctx, src)
	if err != nil {
		return nil, err
	}
	defer release()
	set, err := h.Library.Set(ctx, src.Config.Dataset)
	if err != nil {
		return nil, err
	}
	n := set.Info().Len
	a, b, err := encodePair(ctx, m, set, n/7, n-1-n/5) // distant indices, so that the images differ
	if err != nil {
		return nil, err
	}
	images, err := m.Decode(ctx, play.Strip, append([][]int{a, b}, play.Swaps(a, b)...))
	if err != nil {
		return nil, err
	}
	return row([][]byte{images[0], mostChanged(images[0], images[2:], m.Image.C), images[1]}, m)
}

// swapped is a group of slots and the image of A with these slots from B.
type swapped struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// swap returns the frames of the animation as image URLs: A, B, and A with each group of slots from B.
func (h *Home) swap(w http.ResponseWriter, r *http.Request) error {
	src, ok := h.checkpoint()
	if !ok {
		return fmt.Errorf("there is no checkpoint to draw: %w", model.ErrNotFound)
	}
	m, release, err := h.Library.Use(r.Context(), src)
	if err != nil {
		return err
	}
	defer release()
	set, err := h.Library.Set(r.Context(), src.Config.Dataset)
	if err != nil {
		return err
	}
	names, err := h.Library.Names(src)
	if err != nil {
		return err
	}
	usage := h.Library.Usage(src).Usage
	first, second := play.GoodPair(set)
	if usage != nil && usage.Pair != nil {
		first, second = usage.Pair.A, usage.Pair.B
	}
	a, b, err := encodePair(r.Context(), m, set, first, second)
	if err != nil {
		return err
	}
	picture := func(codes []int) string { return "/img/" + src.Key + "/" + play.FormatCodes(codes) + ".png" }
	groups := []swapped{}
	if usage != nil {
		for _, g := range usage.Ownership.Groups {
			if g.Owned {
				factor := usage.Factors[g.Factor]
				groups = append(groups, swapped{cmp.Or(names.Groups[factor], strings.ReplaceAll(factor, "_", " ")), picture(play.Take(a, b, g.Slots))})
			}
		}
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"a": picture(a), "b": picture(b), "groups": groups})
}

// encodePair encodes two images of a dataset.
func encodePair(ctx context.Context, m *play.Model, set data.Set, first, second int) (a, b []int, err error) {
	pixels := make([]byte, 2*m.Size())
	if err := set.Images(pixels, []int{first, second}); err != nil {
		return nil, nil, err
	}
	codes, err := m.Encode(ctx, pixels)
	if err != nil {
		return nil, nil, err
	}
	return codes[0], codes[1], nil
}

// mostChanged returns the image that differs from base in the most pixels.
func mostChanged(base []byte, images [][]byte, channels int) []byte {
	return slices.MaxFunc(images, func(a, b []byte) int {
		return cmp.Compare(play.Compare(base, a, channels).Changed, play.Compare(base, b, channels).Changed)
	})
}

// row places images side by side, scaled by tileScale.
func row(tiles [][]byte, m *play.Model) ([]byte, error) {
	w, h := tileScale*m.Image.W, tileScale*m.Image.H
	out := image.NewRGBA(image.Rect(0, 0, len(tiles)*w, h))
	for i, pixels := range tiles {
		at := image.Rect(i*w, 0, (i+1)*w, h)
		draw.Draw(out, at, play.Picture(pixels, m.Image, tileScale), image.Point{}, draw.Src)
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, out); err != nil {
		return nil, fmt.Errorf("encoding the image of the home page: %w", err)
	}
	return buf.Bytes(), nil
}
