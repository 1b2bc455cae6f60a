// Package dataset answers the list of datasets and the browser of one, with its API.
package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
	ui "slotscope/views/dataset"
)

// DatasetCatalogue knows, opens, adds and removes datasets. Opening is quick; adding happens in the background.
type DatasetCatalogue interface {
	List(ctx context.Context) []data.Info
	Open(ctx context.Context, name string) (data.Set, error)
	// Entries lists all that are known, with their states; Entry is the one of a name, model.ErrNotFound in its chain for none.
	Entries(ctx context.Context) []data.Entry
	Entry(ctx context.Context, name string) (data.Entry, error)
	// Add queues a request, and returns the name that the dataset will have.
	Add(ctx context.Context, r data.Request) (name string, err error)
	// Stop ends the adding of a dataset and keeps what was done; model.ErrConflict is in the chain where it is not being added.
	Stop(ctx context.Context, name string) error
	Remove(ctx context.Context, name string) error
}

// Datasets are the pages that show what a dataset varies, and the pictures on them.
type Datasets struct {
	Catalogue DatasetCatalogue
}

// Routes enters /datasets and /api/datasets.
func (h Datasets) Routes(r chi.Router) {
	r.Get("/datasets", handlers.Handle(h.list))
	r.Post("/datasets", handlers.Handle(h.add))
	r.Get("/datasets/{name}", handlers.Handle(h.page))
	r.Get("/datasets/{name}/part", handlers.Handle(h.part))
	r.Post("/datasets/{name}/add", handlers.Handle(h.again))
	r.Post("/datasets/{name}/stop", handlers.Handle(h.stop))
	r.Post("/datasets/{name}/remove", handlers.Handle(h.remove))
	r.Get("/api/datasets", handlers.Handle(h.listJSON))
	r.Post("/api/datasets", handlers.Handle(h.addJSON))
	r.Route("/api/datasets/{name}", h.apiRoutes)
}

// with opens the dataset that the path names for the length of one request; an unknown one is not found.
func (h Datasets) with(fn func(w http.ResponseWriter, r *http.Request, set data.Set) error) http.HandlerFunc {
	return handlers.Handle(func(w http.ResponseWriter, r *http.Request) error {
		set, err := h.Catalogue.Open(r.Context(), datasetName(r))
		var invalid model.Invalid
		if errors.As(err, &invalid) && invalid["dataset"] != "" {
			return missing(invalid["dataset"])
		}
		if err != nil {
			return err
		}
		defer set.Close() // read only: nothing is lost if it fails
		return fn(w, r, set)
	})
}

// missing is a sentence about what does not exist; model.ErrNotFound is in its chain.
type missing string

func (m missing) Error() string { return string(m) }

func (missing) Is(target error) bool { return target == model.ErrNotFound }

// datasetName is the name in the path, with its selection in brackets.
func datasetName(r *http.Request) string { return pathParam(r, "name") }

// pathParam is a part of the path as its address means it.
func pathParam(r *http.Request, name string) string {
	text := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return text // chi matched the decoded path
	}
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// page draws one image of a dataset that is ready, and else what is to be done about that.
func (h Datasets) page(w http.ResponseWriter, r *http.Request) error {
	if e, err := h.Catalogue.Entry(r.Context(), datasetName(r)); err == nil && e.State != data.Ready {
		return handlers.Draw(w, r, ui.DatasetWaiting(entryView(e)))
	}
	h.with(h.show)(w, r)
	return nil
}

func datasetCard(info data.Info) ui.DatasetCard {
	card := ui.DatasetCard{
		Name: info.Name, Title: info.Title, About: info.About, Note: info.Note, Licence: info.Licence, Citation: info.Citation,
		H: info.H, W: info.W, C: info.C, Len: info.Len,
	}
	card.Complete = info.Complete && len(info.Factors) > 0
	stride := data.Grid(info.Sizes()).Len()
	for _, f := range info.Factors {
		stride /= max(1, len(f.Values))
		card.Factors = append(card.Factors, ui.DatasetFactor{Name: f.Name, Values: f.Values, Stride: stride})
	}
	return card
}

// show draws the page of one image. Its address is its state: ?index=, or ?f= once per factor or once with dots between; ?grid= is
// the seed of the random images. What cannot be read is said beside its field, and the set's first choice is shown meanwhile.
func (h Datasets) show(w http.ResponseWriter, r *http.Request, set data.Set) error {
	q := r.URL.Query()
	if q.Get("index") == "random" {
		return anyImage(w, r, set, q)
	}
	state, err := readDatasetState(set, q)
	if err != nil {
		return err
	}
	view, err := state.view(r.Context(), set)
	if err != nil {
		return err
	}
	view.Carry = carried(q)
	if q.Get("select_error") != "" {
		view.SelectText = q.Get("select")
		_, err := h.Catalogue.Open(r.Context(), fmt.Sprintf("%s[%s]", set.Info().Name, view.SelectText))
		if err != nil {
			view.SelectError = fieldSentence(err, "dataset")
		}
	}
	status := http.StatusOK
	if view.IndexError != "" || view.TupleError != "" || view.SeedError != "" || view.SelectError != "" {
		status = http.StatusUnprocessableEntity
	}
	return handlers.DrawStatus(w, r, status, ui.Dataset(view))
}

// anyImage sends the visitor to the address of an image chosen at random.
func anyImage(w http.ResponseWriter, r *http.Request, set data.Set, q url.Values) error {
	info := set.Info()
	q.Set("index", strconv.Itoa(rand.IntN(info.Len)))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "/datasets/"+url.PathEscape(info.Name)+"?"+q.Encode(), http.StatusSeeOther)
	return nil
}

// carried are the parts of the address that the page keeps for the playground: the checkpoint it came from and its two images.
func carried(q url.Values) []ui.Param {
	var kept []ui.Param
	for _, name := range []string{"checkpoint", "a", "b"} {
		if v := q.Get(name); v != "" {
			kept = append(kept, ui.Param{Name: name, Value: v})
		}
	}
	return kept
}

// datasetState is what an address of a dataset's page says. A text is what was typed where its error is not empty.
type datasetState struct {
	index                             int
	classes                           []int
	seed                              int
	indexText, tupleText, seedText    string
	indexError, tupleError, seedError string
}

const (
	firstSeed  = 1   // of the random grid, where the address has none
	gridSide   = 8   // the random grid is gridSide × gridSide
	maxSprites = 256 // images in one sprite
)

func readDatasetState(set data.Set, q url.Values) (datasetState, error) {
	info := set.Info()
	s := datasetState{seed: firstSeed}
	s.index = firstImage(set)
	if i, err := readIndex(info, q.Get("index")); err != nil {
		s.indexText, s.indexError = q.Get("index"), fieldSentence(err, "index")
	} else if i >= 0 {
		s.index = i
	}
	if text := strings.Join(q["f"], "."); text != "" {
		if i, err := readTuple(set, text); err != nil {
			s.tupleText, s.tupleError = text, fieldSentence(err, "classes")
		} else {
			s.index = i
		}
	}
	if seed, err := readSeed(q.Get("grid")); err != nil {
		s.seedText, s.seedError = q.Get("grid"), fieldSentence(err, "seed")
	} else {
		s.seed = seed
	}
	s.classes = make([]int, len(info.Factors))
	return s, set.Classes(s.classes, []int{s.index})
}

// firstImage is the image shown where the address names none: its classes lie apart, by the golden ratio, so that colours differ.
func firstImage(set data.Set) int {
	sizes := set.Info().Sizes()
	classes := make([]int, len(sizes))
	for f, n := range sizes {
		_, part := math.Modf(float64(f+1) * (math.Phi - 1))
		classes[f] = int(part * float64(n))
	}
	index, err := set.Index(classes)
	if err != nil {
		return 0 // a set without this combination
	}
	return index
}

// fieldSentence is the sentence of an error on one field; what is no sentence for the visitor is still better told than hidden.
func fieldSentence(err error, field string) string {
	var invalid model.Invalid
	if errors.As(err, &invalid) && invalid[field] != "" {
		return handlers.Sentence(invalid[field])
	}
	return handlers.ErrorText(err)
}

// readIndex reads the index of an image; −1 for none given.
func readIndex(info data.Info, text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return -1, nil
	}
	index, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		return 0, model.Invalid{"index": fmt.Sprintf("%q is not the number of an image; %s has images 0 to %d", text, info.Name, info.Len-1)}
	}
	return index, info.CheckIndex(index)
}

// readTuple reads one class per factor, dots or commas between them, and finds the image.
func readTuple(set data.Set, text string) (int, error) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("., ", r) })
	classes := make([]int, len(parts))
	for f, part := range parts {
		c, err := strconv.Atoi(part)
		if err != nil {
			return 0, model.Invalid{"classes": fmt.Sprintf("%q is not a class; a tuple has one whole number per factor, as in %s", part, tupleForm(len(set.Info().Factors)))}
		}
		classes[f] = c
	}
	if err := set.Info().CheckClasses(classes); err != nil {
		return 0, err
	}
	return set.Index(classes)
}

// tupleForm is a tuple to show as an example: 0.0.0 for three factors.
func tupleForm(factors int) string {
	return strings.TrimSuffix(strings.Repeat("0.", factors), ".")
}

func readSeed(text string) (int, error) {
	text = cmp.Or(strings.TrimSpace(text), strconv.Itoa(firstSeed))
	seed, err := strconv.Atoi(text)
	if err != nil || seed < 0 || seed > math.MaxInt32 {
		return 0, model.Invalid{"seed": fmt.Sprintf("%q is not a seed, a whole number from 0 to %d", text, math.MaxInt32)}
	}
	return seed, nil
}

// view finds what the page shows around the state: the images of each strip, and those drawn at random.
func (s datasetState) view(ctx context.Context, set data.Set) (ui.DatasetView, error) {
	info := set.Info()
	v := ui.DatasetView{
		DatasetCard: datasetCard(info), Index: s.index, Seed: s.seed,
		IndexText: cmp.Or(s.indexText, strconv.Itoa(s.index)), IndexError: s.indexError,
		TupleText: cmp.Or(s.tupleText, ui.Tuple(s.classes)), TupleError: s.tupleError,
		SeedText: cmp.Or(s.seedText, strconv.Itoa(s.seed)), SeedError: s.seedError,
		GridColumns: min(gridSide, info.Len),
	}
	counts, err := data.Counts(ctx, set)
	if err != nil {
		return v, err
	}
	for f := range v.Factors {
		v.Factors[f].Class, v.Factors[f].Counts = s.classes[f], counts[f]
		v.Factors[f].Shown = stripClasses(len(v.Factors[f].Values))
		v.Factors[f].Index = vary(set, s.classes, f)
	}
	v.Rest, _ = data.Complement(info.Name)
	v.Grid, err = data.Draw(int64(s.seed), min(gridSide*gridSide, info.Len), info.Len)
	return v, err
}

// stripMost is how many images a strip has; of more values it shows so many, evenly spaced.
const stripMost = 48

// stripClasses are the classes that a factor's strip shows, ascending.
func stripClasses(values int) []int {
	classes := make([]int, min(values, stripMost))
	for i := range classes {
		classes[i] = i
		if values > stripMost {
			classes[i] = i * (values - 1) / (stripMost - 1)
		}
	}
	return classes
}

// vary is the image of every shown value of factor f, the others as in classes; −1 where the set has none.
func vary(set data.Set, classes []int, f int) []int {
	tuple := append([]int(nil), classes...)
	index := stripClasses(len(set.Info().Factors[f].Values))
	for i, c := range index {
		tuple[f] = c
		var err error
		if index[i], err = set.Index(tuple); err != nil {
			index[i] = -1
		}
	}
	return index
}
