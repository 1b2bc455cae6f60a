package dataset

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/data"
)

// apiRoutes registers the routes of one dataset. Several images come as one sheet, so that a page needs few requests.
func (h Datasets) apiRoutes(r chi.Router) {
	r.Get("/", h.with(infoJSON))
	r.Delete("/", handlers.Handle(h.removeJSON))
	r.Get("/state", handlers.Handle(h.stateJSON))
	r.Post("/stop", handlers.Handle(h.stopJSON))
	r.Get("/images/{index}.png", h.with(onePNG))
	r.Get("/images/{index}.json", h.with(oneJSON))
	r.Get("/images.png", h.with(onePNG))
	r.Get("/images.json", h.with(oneJSON))
	r.Get("/strip/{factor}.png", h.with(stripPNG))
	r.Get("/grid.png", h.with(gridPNG))
	r.Get("/grid.json", h.with(gridJSON))
}

func infoJSON(w http.ResponseWriter, _ *http.Request, set data.Set) error {
	return handlers.JSON(w, http.StatusOK, set.Info())
}

// onePNG sends one image by index or by ?classes=; each pixel is magnified to x × x.
func onePNG(w http.ResponseWriter, r *http.Request, set data.Set) error {
	index, err := askedIndex(r, set)
	if err != nil {
		return err
	}
	return sendImages(w, r, set, []int{index}, 1)
}

// datasetImage is one image in API responses.
type datasetImage struct {
	Index   int      `json:"index"`
	Classes []int    `json:"classes"`
	Values  []string `json:"values"`
	Near    [][]int  `json:"near,omitempty"` // with ?near=1: images of each factor's strip; −1 if there is none
}

func oneJSON(w http.ResponseWriter, r *http.Request, set data.Set) error {
	index, err := askedIndex(r, set)
	if err != nil {
		return err
	}
	im, err := describeImage(set, index)
	if err != nil {
		return err
	}
	if r.URL.Query().Get("near") == "1" {
		for f := range im.Classes {
			im.Near = append(im.Near, vary(set, im.Classes, f))
		}
	}
	return handlers.JSON(w, http.StatusOK, im)
}

func describeImage(set data.Set, index int) (datasetImage, error) {
	factors := set.Info().Factors
	im := datasetImage{Index: index, Classes: make([]int, len(factors)), Values: make([]string, len(factors))}
	if err := set.Classes(im.Classes, []int{index}); err != nil {
		return im, err
	}
	for f, c := range im.Classes {
		im.Values[f] = factors[f].Values[c]
	}
	return im, nil
}

// askedIndex returns the index of the requested image, from the path, ?index= or ?classes=.
func askedIndex(r *http.Request, set data.Set) (int, error) {
	text := chi.URLParam(r, "index")
	if text == "" {
		text = r.URL.Query().Get("index")
	}
	if text != "" {
		return readIndex(set.Info(), text)
	}
	classes := r.URL.Query().Get("classes")
	if classes == "" {
		return 0, model.Invalid{"classes": fmt.Sprintf("missing; choose an image by index=0, or by classes=%s with one class per factor", tupleForm(len(set.Info().Factors)))}
	}
	return readTuple(set, classes)
}

// stripPNG sends every value of one factor in a row, with the other factors as in image ?index= or ?classes=.
func stripPNG(w http.ResponseWriter, r *http.Request, set data.Set) error {
	info, name := set.Info(), pathParam(r, "factor")
	f := slices.IndexFunc(info.Factors, func(f data.Factor) bool { return f.Name == name })
	if f < 0 {
		return missing(fmt.Sprintf("%s has no factor %q", info.Name, name))
	}
	index, err := askedIndex(r, set)
	if err != nil {
		return err
	}
	im, err := describeImage(set, index)
	if err != nil {
		return err
	}
	row := vary(set, im.Classes, f)
	return sendImages(w, r, set, row, len(row))
}

// gridPNG sends ?n= random images for ?seed=, ?columns= per row.
func gridPNG(w http.ResponseWriter, r *http.Request, set data.Set) error {
	index, _, err := drawnGrid(r, set)
	if err != nil {
		return err
	}
	columns, err := queryNumber(r, "columns", gridSide, 1, maxSprites)
	if err != nil {
		return err
	}
	return sendImages(w, r, set, index, min(columns, len(index)))
}

// gridJSON lists the images that gridPNG shows.
func gridJSON(w http.ResponseWriter, r *http.Request, set data.Set) error {
	index, seed, err := drawnGrid(r, set)
	if err != nil {
		return err
	}
	images := make([]datasetImage, len(index))
	for n, i := range index {
		if images[n], err = describeImage(set, i); err != nil {
			return err
		}
	}
	return handlers.JSON(w, http.StatusOK, map[string]any{"seed": seed, "images": images})
}

func drawnGrid(r *http.Request, set data.Set) (index []int, seed int, err error) {
	length := set.Info().Len
	n, err := queryNumber(r, "n", min(gridSide*gridSide, length), 1, min(maxSprites, length))
	if err != nil {
		return nil, 0, err
	}
	if seed, err = readSeed(r.URL.Query().Get("seed")); err != nil {
		return nil, 0, err
	}
	index, err = data.Draw(int64(seed), n, length)
	return index, seed, err
}

// queryNumber reads a whole number from the query; otherwise is the default.
func queryNumber(r *http.Request, name string, otherwise, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, model.Invalid{name: fmt.Sprintf("%q is not a whole number from %d to %d", text, least, most)}
	}
	return n, nil
}

// sendImages sends images as one PNG sheet, columns per row, magnified by ?x=. Images of drawn datasets never change, so browsers may
// cache them for good; images of other datasets are revalidated by ETag. Index −1 leaves a black cell.
func sendImages(w http.ResponseWriter, r *http.Request, set data.Set, index []int, columns int) error {
	scale, err := queryNumber(r, "x", 1, 1, 8)
	if err != nil {
		return err
	}
	info := set.Info()
	if most := 8 * 8 * 64 * 64 * 16; len(index)*info.H*info.W*scale*scale > most {
		return model.Invalid{"x": fmt.Sprintf("%d images at %d× exceed the size limit; request fewer images or a smaller x", len(index), scale)}
	}
	pixels, err := pixelsOf(set, index)
	if err != nil {
		return err
	}
	body, err := encodePNG(info.Picture(pixels, columns, scale))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/png")
	if data.IsDrawn(info.Name) {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "private, no-cache")
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// pixelsOf returns the pixels of images [n, H, W, C], zeros for index −1.
func pixelsOf(set data.Set, index []int) ([]byte, error) {
	info := set.Info()
	each := info.H * info.W * info.C
	pixels := make([]byte, len(index)*each)
	if !slices.Contains(index, -1) {
		return pixels, set.Images(pixels, index)
	}
	for n, i := range index {
		if i < 0 {
			continue
		}
		if err := set.Images(pixels[n*each:(n+1)*each], []int{i}); err != nil {
			return nil, err
		}
	}
	return pixels, nil
}

var fastPNG = png.Encoder{CompressionLevel: png.BestSpeed}

func encodePNG(img image.Image) ([]byte, error) {
	var buf bytes.Buffer
	if err := fastPNG.Encode(&buf, img); err != nil {
		return nil, fmt.Errorf("encoding PNG: %w", err)
	}
	return buf.Bytes(), nil
}
