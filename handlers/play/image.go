package play

import (
	"encoding/json"
	"fmt"
	"image"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/play"
)

// open finds and opens the checkpoint in the path.
func (p *Play) open(r *http.Request) (rm playRoom, release func(), err error) {
	src, err := p.Library.Find(chi.URLParam(r, "checkpoint"))
	if err != nil {
		return playRoom{}, nil, err
	}
	m, release, err := p.Library.Use(r.Context(), src)
	return playRoom{play: p, model: m, source: src}, release, err
}

// image serves /img/{checkpoint}/{codes}.png?x=n: the image of a code tuple, each pixel enlarged to n × n. Under a checkpoint's key the bytes
// never change, so they are cached as immutable.
func (p *Play) image(w http.ResponseWriter, r *http.Request) error {
	text, ok := strings.CutSuffix(chi.URLParam(r, "file"), ".png")
	if !ok {
		return fmt.Errorf("images are served as PNG only, such as /img/%s/17.301.4.png: %w", chi.URLParam(r, "checkpoint"), model.ErrNotFound)
	}
	scale, err := scaleOf(r)
	if err != nil {
		return err
	}
	codes, err := play.ParseCodes(text)
	if err != nil {
		return err
	}
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	images, err := rm.model.Decode(r.Context(), urgencyOf(r.URL.Query().Get("lane")), [][]int{codes})
	if err != nil {
		return err
	}
	keepFor(w, chi.URLParam(r, "checkpoint") == rm.source.Key)
	if r.URL.Query().Has("download") {
		handlers.AsFile(w, fmt.Sprintf("slotscope-%s-%s.png", rm.source.Key[:8], text))
	}
	return sendPNG(w, r, play.Picture(images[0], rm.model.Image, scale))
}

func scaleOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("x")
	if text == "" {
		return 1, nil
	}
	scale, err := strconv.Atoi(text)
	if err != nil || scale < 1 || scale > 8 {
		return 0, model.Invalid{"x": fmt.Sprintf("%q is not a scale; use 1–8", text)}
	}
	return scale, nil
}

// urgencyOf maps a lane of the page to its priority. Images being dragged are decoded first.
func urgencyOf(lane string) play.Urgency {
	switch lane {
	case "strip", "rest":
		return play.Strip
	case "palette", "beside", "aside", "many":
		return play.Palette
	}
	return play.Held
}

func keepFor(w http.ResponseWriter, forGood bool) {
	if forGood {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
}

func sendPNG(w http.ResponseWriter, r *http.Request, img image.Image) error {
	raw, err := play.PNG(img)
	if err != nil {
		return err
	}
	return handlers.SendBytes(w, r, "image/png", raw)
}

// original serves an image of the checkpoint's dataset, unmodified.
func (p *Play) original(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	scale, err := scaleOf(r)
	if err != nil {
		return err
	}
	set, err := p.Library.Set(r.Context(), rm.source.Config.Dataset)
	if err != nil {
		return err
	}
	index, err := indexOf(set, r.URL.Query())
	if err != nil {
		return err
	}
	if n := set.Info().Len; index < 0 || index >= n {
		return notAnImage("index", r.URL.Query().Get("index"), set)
	}
	pixels, err := rm.original(set, index)
	if err != nil {
		return err
	}
	keepFor(w, chi.URLParam(r, "checkpoint") == rm.source.Key)
	return sendPNG(w, r, play.Picture(pixels, rm.model.Image, scale))
}

// indexOf returns the index of the image that a query selects by index, or by classes: one class per factor, separated by dots.
func indexOf(set data.Set, q url.Values) (int, error) {
	if text := q.Get("classes"); text != "" {
		classes, err := play.ParseCodes(text)
		if err != nil {
			return 0, model.Invalid{"classes": fmt.Sprintf("%q is not one class per factor, such as 3.4.7.4.1.11", text)}
		}
		return set.Index(classes)
	}
	index, err := strconv.Atoi(q.Get("index"))
	if err != nil {
		return 0, notAnImage("index", q.Get("index"), set)
	}
	return index, nil
}

// probe serves the factor probe for use in the browser, or 404 if none was trained; model/play/reader.go documents the format.
func (p *Play) probe(w http.ResponseWriter, r *http.Request) error {
	src, err := p.Library.Find(chi.URLParam(r, "checkpoint"))
	if err != nil {
		return err
	}
	reader, err := p.Library.Reader(r.Context(), src.Config.Dataset)
	if err != nil {
		return err
	}
	keepFor(w, false) // an evaluation may train a new one
	return handlers.SendBytes(w, r, "application/octet-stream", reader.Encode(0))
}

// weights serves the weights for running the model in the browser; model/format/weights documents the format.
func (p *Play) weights(w http.ResponseWriter, r *http.Request) error {
	rm, release, err := p.open(r)
	if err != nil {
		return err
	}
	defer release()
	raw, err := rm.model.Weights()
	if err != nil {
		return err
	}
	keepFor(w, chi.URLParam(r, "checkpoint") == rm.source.Key)
	w.Header().Set("ETag", `"`+rm.source.Key+`-1"`) // 1 is the version of the format
	return handlers.SendBytes(w, r, "application/octet-stream", raw)
}

// opened opens the checkpoint and reads the state in the URL, for downloads.
func (p *Play) opened(r *http.Request) (rm playRoom, s playState, release func(), err error) {
	rm, release, err = p.open(r)
	if err != nil {
		return rm, s, release, err
	}
	q := r.URL.Query()
	if err = p.fillPair(r.Context(), rm.source, q); err == nil {
		s, err = rm.read(r.Context(), q)
	}
	if err != nil {
		release()
	}
	return rm, s, release, err
}

// sheet serves the paper's two figures for a state: single swaps and the interpolation.
func (p *Play) sheet(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	m := rm.model.Config.M
	tuples := append([][]int{s.codes, s.bcodes}, play.Swaps(s.codes, s.bcodes)...)
	tuples = append(tuples, play.Interpolation(s.codes, s.bcodes, s.order)...)
	images, err := rm.model.Decode(r.Context(), play.Strip, tuples)
	if err != nil {
		return err
	}
	swaps := []play.Cell{{Caption: "A", Pixels: images[0]}}
	for i := range m {
		d := play.Compare(images[0], images[2+i], rm.model.Image.C)
		swaps = append(swaps, play.Cell{Caption: fmt.Sprintf("slot %d  %.1f%%", i, 100*d.Changed), Pixels: images[2+i]})
	}
	swaps = append(swaps, play.Cell{Caption: "B", Pixels: images[1]})
	strip := []play.Cell{{Caption: "A", Pixels: images[2+m]}}
	for j, i := range s.order {
		strip = append(strip, play.Cell{Caption: fmt.Sprintf("+ slot %d", i), Pixels: images[3+m+j]})
	}
	handlers.AsFile(w, fmt.Sprintf("slotscope-%s-swaps.png", rm.source.Key[:8]))
	return sendPNG(w, r, play.Sheet([][]play.Cell{swaps, strip}, rm.model.Image))
}

// film serves the interpolation as an animated GIF.
func (p *Play) film(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	images, err := rm.model.Decode(r.Context(), play.Strip, play.Interpolation(s.codes, s.bcodes, s.order))
	if err != nil {
		return err
	}
	raw, err := play.Film(images, rm.model.Image, 60)
	if err != nil {
		return err
	}
	handlers.AsFile(w, fmt.Sprintf("slotscope-%s-interpolation.gif", rm.source.Key[:8]))
	return handlers.SendBytes(w, r, "image/gif", raw)
}

// playFile is a state of the playground as a file.
type playFile struct {
	Checkpoint string    `json:"checkpoint"`
	Run        string    `json:"run,omitempty"`
	Step       int       `json:"step"`
	Dataset    string    `json:"dataset"`
	M          int       `json:"m"`
	K          int       `json:"k"`
	A          *int      `json:"a,omitempty"` // index in the dataset
	B          *int      `json:"b,omitempty"`
	Codes      []int     `json:"codes"`
	BCodes     []int     `json:"bcodes"`
	PSNR       float64   `json:"psnr,omitempty"`  // dB, of A's reconstruction
	BPSNR      float64   `json:"bpsnr,omitempty"` // of B's
	Order      []int     `json:"order"`
	Values     []float64 `json:"values,omitempty"`  // real numbers that Codes represent, if slots are continuous
	BValues    []float64 `json:"bvalues,omitempty"` // the same for BCodes
	Address    string    `json:"address"`
}

// codes serves the state as JSON.
func (p *Play) codes(w http.ResponseWriter, r *http.Request) error {
	rm, s, release, err := p.opened(r)
	if err != nil {
		return err
	}
	defer release()
	out := playFile{
		Checkpoint: rm.source.Key, Run: rm.source.Run, Step: rm.source.Step, Dataset: rm.source.Config.Dataset,
		M: rm.model.Config.M, K: rm.model.Codes(), Codes: s.codes, BCodes: s.bcodes, PSNR: s.a.psnr, BPSNR: s.b.psnr, Order: s.order,
		Address: playAddress(rm.source.Key, rm.query(s)),
	}
	if rm.model.Continuous() {
		for i := range s.codes {
			out.Values, out.BValues = append(out.Values, rm.model.Value(s.codes[i])), append(out.BValues, rm.model.Value(s.bcodes[i]))
		}
	}
	if s.a.index >= 0 {
		out.A = &s.a.index
	}
	if s.b.index >= 0 {
		out.B = &s.b.index
	}
	raw, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state as JSON: %w", err)
	}
	handlers.AsFile(w, fmt.Sprintf("slotscope-%s-codes.json", rm.source.Key[:8]))
	return handlers.SendBytes(w, r, "application/json; charset=utf-8", append(raw, '\n'))
}
