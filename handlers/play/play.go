// Package play serves the playground: its page, images, socket and API.
package play

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/play"
	ui "slotscope/views/play"
)

// Play serves the playground. Every state of the page has a URL, and so does every image.
type Play struct {
	Library  *play.Library
	Static   fs.FS  // style sheets and scripts to embed in a standalone page
	Revision string // of the program
}

// Routes registers the playground's paths. {checkpoint} is a key (16 hex digits), a run's ID, or ID@step.
func (p *Play) Routes(r chi.Router) {
	r.Get("/play", handlers.Handle(p.enter))
	r.Get("/play/{checkpoint}", handlers.Handle(p.page))
	r.Post("/play/{checkpoint}/upload", handlers.Handle(p.upload))
	r.Get("/play/{checkpoint}/atlas", handlers.Handle(p.atlas))
	r.Get("/play/{checkpoint}/atlas/{slot}", handlers.Handle(p.atlas))
	r.Get("/play/{checkpoint}/atlas/{slot}/{code}", handlers.Handle(p.atlas))
	r.Post("/play/{checkpoint}/atlas/{slot}/{code}", handlers.Handle(p.nameInAtlas))
	r.Get("/img/{checkpoint}/{file}", handlers.Handle(p.image))
	r.Get("/ws/play/{checkpoint}", p.socket)
	r.Get("/api/play", handlers.Handle(p.list))
	r.Route("/api/play/{checkpoint}", func(r chi.Router) {
		r.Get("/", handlers.Handle(p.about))
		r.Get("/usage", handlers.Handle(p.usage))
		r.Get("/original.png", handlers.Handle(p.original))
		r.Post("/encode", handlers.Handle(p.encode))
		r.Post("/decode", handlers.Handle(p.decode))
		r.Get("/palette", handlers.Handle(p.palette))
		r.Get("/swaps", handlers.Handle(p.swaps))
		r.Get("/check", handlers.Handle(p.check))
		r.Get("/truth", handlers.Handle(p.truth))
		r.Get("/sheet.png", handlers.Handle(p.sheet))
		r.Get("/strip.gif", handlers.Handle(p.film))
		r.Get("/animation.{kind:gif|png}", handlers.Handle(p.movie))
		r.Get("/figure.{kind:svg|png|pdf}", handlers.Handle(p.figure))
		r.Get("/images", handlers.Handle(p.many))
		r.Get("/frozen.html", handlers.Handle(p.frozen))
		r.Get("/weights.bin", handlers.Handle(p.weights))
		r.Get("/slots", handlers.Handle(p.slots))
		r.Get("/names", handlers.Handle(p.names))
		r.Put("/names", handlers.Handle(p.rename))
		r.Get("/atlas", handlers.Handle(p.atlasData))
		r.Get("/atlas/{slot}", handlers.Handle(p.atlasData))
		r.Get("/atlas/{slot}/{code}", handlers.Handle(p.atlasData))
		r.Get("/probe.bin", handlers.Handle(p.probe))
		r.Get("/codes.json", handlers.Handle(p.codes))
	})
}

// enter chooses a checkpoint and a pair of images and redirects to the URL of that state.
func (p *Play) enter(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	src, err := p.choose(q.Get("checkpoint"), q.Get("dataset"))
	if errors.Is(err, model.ErrNotFound) && q.Get("checkpoint") == "" {
		return handlers.Draw(w, r, ui.PlayEmpty(handlers.Sentence(trimNotFound(err))))
	}
	if err != nil {
		return err
	}
	q.Del("checkpoint")
	if q.Get("dataset") == src.Config.Dataset {
		q.Del("dataset") // implied by the checkpoint
	}
	if err := p.fillPair(r.Context(), src, q); err != nil {
		return err
	}
	http.Redirect(w, r, playAddress(src.Key, q), http.StatusSeeOther)
	return nil
}

// choose returns the named checkpoint, the first one for a dataset if no name is given, or the demo model if neither is.
func (p *Play) choose(name, dataset string) (play.Source, error) {
	if name == "" && dataset != "" {
		for _, src := range p.Library.List() {
			if src.Config.Dataset == dataset {
				return src, nil
			}
		}
		return play.Source{}, fmt.Errorf("no checkpoint was trained on %s yet; train a model on it first: %w", dataset, model.ErrNotFound)
	}
	return p.Library.Find(name)
}

func trimNotFound(err error) string {
	text, suffix := err.Error(), ": "+model.ErrNotFound.Error()
	if n := len(text) - len(suffix); n > 0 && text[n:] == suffix {
		return text[:n]
	}
	return text
}

func playAddress(key string, q url.Values) string {
	if len(q) == 0 {
		return "/play/" + key
	}
	return "/play/" + key + "?" + q.Encode()
}

// fillPair sets images A and B if the query does not: to the pair with the most swap hits, or to one that differs in every factor.
func (p *Play) fillPair(ctx context.Context, src play.Source, q url.Values) error {
	if (q.Get("a") != "" || q.Get("codes") != "") && (q.Get("b") != "" || q.Get("bcodes") != "") {
		return nil
	}
	pair := p.firstPair(ctx, src)
	if pair == nil {
		return nil // codes can be edited without images
	}
	if q.Get("a") == "" && q.Get("codes") == "" {
		q.Set("a", strconv.Itoa(pair[0]))
	}
	if q.Get("b") == "" && q.Get("bcodes") == "" {
		q.Set("b", strconv.Itoa(pair[1]))
	}
	return nil
}

// firstPair returns the indices of the initial images A and B, or nil without a dataset. The first count of codes may change them.
func (p *Play) firstPair(ctx context.Context, src play.Source) []int {
	set, err := p.Library.Set(ctx, src.Config.Dataset)
	if err != nil {
		return nil
	}
	if u := p.Library.Usage(src).Usage; u != nil && u.Pair != nil {
		return []int{u.Pair.A, u.Pair.B}
	}
	a, b := play.GoodPair(set)
	return []int{a, b}
}

// drawRandom replaces the word "random" by a random index and reports whether it did.
func (p *Play) drawRandom(ctx context.Context, src play.Source, q url.Values) bool {
	set, err := p.Library.Set(ctx, src.Config.Dataset)
	drawn := false
	for _, name := range []string{"a", "b"} {
		if last := len(q[name]) - 1; err == nil && last >= 0 && q[name][last] == "random" {
			q.Set(name, strconv.Itoa(rand.IntN(set.Info().Len)))
			drawn = true
		}
	}
	return drawn
}

// page renders one state of the playground.
func (p *Play) page(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "checkpoint")
	src, err := p.Library.Find(name)
	if err != nil {
		return err
	}
	if name != src.Key {
		http.Redirect(w, r, playAddress(src.Key, r.URL.Query()), http.StatusSeeOther)
		return nil
	}
	q := r.URL.Query()
	if p.drawRandom(r.Context(), src, q) {
		http.Redirect(w, r, playAddress(src.Key, q), http.StatusSeeOther)
		return nil
	}
	if err := p.fillPair(r.Context(), src, q); err != nil {
		return err
	}
	if d := q.Get("dataset"); d != "" && d != src.Config.Dataset {
		return model.Invalid{"dataset": fmt.Sprintf("this checkpoint was trained on %s, so it cannot use images of %q", src.Config.Dataset, d)}
	}
	m, release, err := p.Library.Use(r.Context(), src)
	if err != nil {
		return err
	}
	defer release()
	room := playRoom{play: p, model: m, source: src}
	state, err := room.read(r.Context(), q)
	if err != nil {
		return err
	}
	view, err := room.view(r.Context(), state)
	if err != nil {
		return err
	}
	return handlers.Draw(w, r, ui.Play(view))
}

// playRoom is one open checkpoint during one request.
type playRoom struct {
	play   *Play
	model  *play.Model
	source play.Source
}

// playState is the state that a playground URL encodes.
type playState struct {
	a, b   playSide
	codes  []int // of row A as edited
	bcodes []int // of row B as edited
	order  []int
	slot   int // slot shown in the palette
}

// playSide is the source image of a row.
type playSide struct {
	index   int // in the dataset; −1 if only codes are known
	classes []int
	codes   []int // as encoded
	psnr    float64
	pixels  []byte
}

// read parses a query into a state, encoding images and validating codes.
func (rm playRoom) read(ctx context.Context, q url.Values) (s playState, err error) {
	if s.codes, err = rm.tuple(q, "codes"); err != nil {
		return s, err
	}
	if s.bcodes, err = rm.tuple(q, "bcodes"); err != nil {
		return s, err
	}
	if s.a, err = rm.side(ctx, q, "a", s.codes); err != nil {
		return s, err
	}
	if s.b, err = rm.side(ctx, q, "b", s.bcodes); err != nil {
		return s, err
	}
	if s.codes == nil {
		s.codes = s.a.codes
	}
	if s.bcodes == nil {
		s.bcodes = s.b.codes
	}
	if s.order, err = play.ParseOrder(q.Get("order"), rm.model.Config.M); err != nil {
		return s, err
	}
	if text := q.Get("slot"); text != "" {
		if s.slot, err = strconv.Atoi(text); err != nil || s.slot < 0 || s.slot >= rm.model.Config.M {
			return s, model.Invalid{"slot": fmt.Sprintf("%q is not a slot; this checkpoint has slots 0–%d", text, rm.model.Config.M-1)}
		}
	}
	return s, nil
}

func (rm playRoom) tuple(q url.Values, name string) ([]int, error) {
	text := q.Get(name)
	if text == "" {
		return nil, nil
	}
	codes, err := play.ParseCodes(text)
	if err == nil {
		err = rm.model.Check(codes)
	}
	var invalid model.Invalid
	if errors.As(err, &invalid) && name != "codes" && invalid["codes"] != "" {
		return nil, model.Invalid{name: invalid["codes"]}
	}
	return codes, err
}

// side encodes the image whose index is the query parameter name, or uses codes alone if there is none.
func (rm playRoom) side(ctx context.Context, q url.Values, name string, codes []int) (playSide, error) {
	text := q.Get(name)
	if text == "" {
		if codes == nil {
			codes = rm.model.Nothing()
		}
		return playSide{index: -1, codes: codes}, nil
	}
	set, err := rm.play.Library.Set(ctx, rm.source.Config.Dataset)
	if err != nil {
		return playSide{}, err
	}
	index, err := strconv.Atoi(text)
	if n := set.Info().Len; err != nil || index < 0 || index >= n {
		return playSide{}, notAnImage(name, text, set)
	}
	return rm.encodeIndex(ctx, set, index)
}

// notAnImage returns the error for an index (as given in the request) that the dataset does not have.
func notAnImage(field, index string, set data.Set) error {
	return model.Invalid{field: fmt.Sprintf("%q is not an image index of %s; choose 0–%d", index, set.Info().Name, set.Info().Len-1)}
}

func (rm playRoom) encodeIndex(ctx context.Context, set data.Set, index int) (playSide, error) {
	pixels, err := rm.original(set, index)
	if err != nil {
		return playSide{}, err
	}
	s, err := rm.encodePixels(ctx, pixels)
	if err != nil {
		return playSide{}, err
	}
	s.index, s.classes = index, make([]int, len(set.Info().Factors))
	return s, set.Classes(s.classes, []int{index})
}

// original returns one image of the dataset. It is an error if the checkpoint takes images of another size.
func (rm playRoom) original(set data.Set, index int) ([]byte, error) {
	info := set.Info()
	if info.H != rm.model.Image.H || info.W != rm.model.Image.W || info.C != rm.model.Image.C {
		return nil, model.Invalid{"dataset": fmt.Sprintf("images of %s are %d × %d × %d, but this checkpoint takes %d × %d × %d; choose a checkpoint trained on this dataset",
			info.Name, info.H, info.W, info.C, rm.model.Image.H, rm.model.Image.W, rm.model.Image.C)}
	}
	pixels := make([]byte, rm.model.Size())
	return pixels, set.Images(pixels, []int{index})
}

func (rm playRoom) encodePixels(ctx context.Context, pixels []byte) (playSide, error) {
	codes, err := rm.model.Encode(ctx, pixels)
	if err != nil {
		return playSide{}, err
	}
	decoded, err := rm.model.Decode(ctx, play.Held, codes)
	if err != nil {
		return playSide{}, err
	}
	return playSide{index: -1, codes: codes[0], psnr: play.Compare(pixels, decoded[0], rm.model.Image.C).PSNR, pixels: pixels}, nil
}

// query formats a state as a query, omitting parameters that follow from the others.
func (rm playRoom) query(s playState) url.Values {
	q := url.Values{}
	if s.a.index >= 0 {
		q.Set("a", strconv.Itoa(s.a.index))
	}
	if s.b.index >= 0 {
		q.Set("b", strconv.Itoa(s.b.index))
	}
	q.Set("codes", play.FormatCodes(s.codes))
	if s.b.index < 0 || !slices.Equal(s.bcodes, s.b.codes) {
		q.Set("bcodes", play.FormatCodes(s.bcodes))
	}
	if !slices.IsSorted(s.order) {
		q.Set("order", play.FormatCodes(s.order))
	}
	return q
}
