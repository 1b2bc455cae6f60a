// Package dataset serves the list of datasets, the dataset browser and their API.
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

// DatasetCatalogue lists, opens, adds and removes datasets. Opening is quick; adding happens in the background.
type DatasetCatalogue interface {
	List(ctx context.Context) []data.Info
	Open(ctx context.Context, name string) (data.Set, error)
	// Entries lists all known datasets with their states. Entry returns one by name; the error wraps model.ErrNotFound if there is none.
	Entries(ctx context.Context) []data.Entry
	Entry(ctx context.Context, name string) (data.Entry, error)
	// Preview reads the description and the first images of what a request would add. It writes nothing.
	Preview(ctx context.Context, r data.Request) (data.Preview, error)
	// Add queues a request and returns the name of the future dataset.
	Add(ctx context.Context, r data.Request) (name string, err error)
	// Stop interrupts adding a dataset and keeps the progress; the error wraps model.ErrConflict if it is not being added.
	Stop(ctx context.Context, name string) error
	Remove(ctx context.Context, name string) error
}

// Datasets serves the dataset pages and their images.
type Datasets struct {
	Catalogue DatasetCatalogue
}

// Routes registers the routes of /datasets and /api/datasets.
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

// with opens the dataset named in the path for the duration of one request; an unknown one is a not-found error.
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

// missing is a message about something that does not exist; it matches model.ErrNotFound.
type missing string

func (m missing) Error() string { return string(m) }

func (missing) Is(target error) bool { return target == model.ErrNotFound }

// datasetName returns the name in the path, with its selection in brackets.
func datasetName(r *http.Request) string { return pathParam(r, "name") }

// pathParam returns a path parameter, unescaped.
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

// page draws the browser of a ready dataset, or the state and actions of one that is not ready.
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

// show draws the page of one image. The URL holds its state: ?index=, or ?f= once per factor or once with dots between; ?grid= is
// the seed of the random images. Invalid values are reported beside their field, with the default image shown.
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

// anyImage redirects to the URL of a random image.
func anyImage(w http.ResponseWriter, r *http.Request, set data.Set, q url.Values) error {
	info := set.Info()
	q.Set("index", strconv.Itoa(rand.IntN(info.Len)))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "/datasets/"+url.PathEscape(info.Name)+"?"+q.Encode(), http.StatusSeeOther)
	return nil
}

// carried returns the URL parameters that the page keeps for the playground: the checkpoint and its two images.
func carried(q url.Values) []ui.Param {
	var kept []ui.Param
	for _, name := range []string{"checkpoint", "a", "b"} {
		if v := q.Get(name); v != "" {
			kept = append(kept, ui.Param{Name: name, Value: v})
		}
	}
	return kept
}

// datasetState is the state in the URL of a dataset's page. Each text holds the input if its error is not empty.
type datasetState struct {
	index                             int
	classes                           []int
	seed                              int
	indexText, tupleText, seedText    string
	indexError, tupleError, seedError string
}

const (
	firstSeed  = 1   // default seed of the random grid
	gridSide   = 8   // the random grid is gridSide × gridSide
	maxSprites = 256 // images in one sheet
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

// firstImage returns the default image: its classes are spread by the golden ratio, so that colours differ.
func firstImage(set data.Set) int {
	sizes := set.Info().Sizes()
	classes := make([]int, len(sizes))
	for f, n := range sizes {
		_, part := math.Modf(float64(f+1) * (math.Phi - 1))
		classes[f] = int(part * float64(n))
	}
	index, err := set.Index(classes)
	if err != nil {
		return 0 // the dataset lacks this combination
	}
	return index
}

// fieldSentence returns the message of one field as a sentence, or else the text of the whole error.
func fieldSentence(err error, field string) string {
	var invalid model.Invalid
	if errors.As(err, &invalid) && invalid[field] != "" {
		return handlers.Sentence(invalid[field])
	}
	return handlers.ErrorText(err)
}

// readIndex parses the index of an image; −1 if text is empty.
func readIndex(info data.Info, text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return -1, nil
	}
	index, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		return 0, model.Invalid{"index": fmt.Sprintf("%q is not an image number; %s has images 0 to %d", text, info.Name, info.Len-1)}
	}
	return index, info.CheckIndex(index)
}

// readTuple parses one class per factor, separated by dots, commas or spaces, and returns the image's index.
func readTuple(set data.Set, text string) (int, error) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("., ", r) })
	classes := make([]int, len(parts))
	for f, part := range parts {
		c, err := strconv.Atoi(part)
		if err != nil {
			return 0, model.Invalid{"classes": fmt.Sprintf("%q is not a class; give one whole number per factor, e.g. %s", part, tupleForm(len(set.Info().Factors)))}
		}
		classes[f] = c
	}
	if err := set.Info().CheckClasses(classes); err != nil {
		return 0, err
	}
	return set.Index(classes)
}

// tupleForm returns an example tuple: 0.0.0 for three factors.
func tupleForm(factors int) string {
	return strings.TrimSuffix(strings.Repeat("0.", factors), ".")
}

func readSeed(text string) (int, error) {
	text = cmp.Or(strings.TrimSpace(text), strconv.Itoa(firstSeed))
	seed, err := strconv.Atoi(text)
	if err != nil || seed < 0 || seed > math.MaxInt32 {
		return 0, model.Invalid{"seed": fmt.Sprintf("%q is not a seed; use a whole number from 0 to %d", text, math.MaxInt32)}
	}
	return seed, nil
}

// view returns the page of the state, with the images of each strip and the random ones.
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

// stripMost is the most images in a strip; of more values it shows that many, evenly spaced.
const stripMost = 48

// stripClasses returns the classes in a factor's strip, ascending.
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

// vary returns the image of every shown value of factor f with the other factors as in classes; −1 if there is none.
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
