package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/jobs"
	"slotscope/model"
	"slotscope/model/data"
)

// fewSets is a catalogue with additional datasets for a test.
type fewSets struct {
	*jobs.Datasets
	more map[string]data.Set
	fail error // of Open
}

func (c fewSets) List(ctx context.Context) []data.Info {
	infos := c.Catalogue.List(ctx)
	for _, set := range c.more {
		infos = append(infos, set.Info())
	}
	return infos
}

func (c fewSets) Open(ctx context.Context, name string) (data.Set, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	if set, ok := c.more[name]; ok {
		return set, nil
	}
	return c.Catalogue.Open(ctx, name)
}

// gappy has two greys times three places without one combination; image i has brightness 40·i.
type gappy struct{}

var gappyTuples = [][]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 2}}

func (gappy) Info() data.Info {
	return data.Info{Name: "gappy", Title: "Gappy", H: 2, W: 2, C: 1, Len: len(gappyTuples), Factors: []data.Factor{
		{Name: "grey", Values: []string{"light", "dark"}}, {Name: "place", Values: []string{"left", "middle", "right"}},
	}}
}

func (gappy) Images(dst []byte, index []int) error {
	for b, i := range index {
		copy(dst[4*b:], bytes.Repeat([]byte{byte(40 * i)}, 4))
	}
	return nil
}

func (gappy) Classes(dst, index []int) error {
	for b, i := range index {
		copy(dst[2*b:], gappyTuples[i])
	}
	return nil
}

func (g gappy) Index(classes []int) (int, error) {
	i := slices.IndexFunc(gappyTuples, func(t []int) bool { return slices.Equal(t, classes) })
	if i < 0 {
		return 0, fmt.Errorf("no image has the classes %v: %w", classes, model.ErrNotFound)
	}
	return i, nil
}

func (gappy) Close() error { return nil }

// ask returns the response to a GET request of the dataset routes.
func ask(t *testing.T, catalogue DatasetCatalogue, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := chi.NewRouter()
	Datasets{Catalogue: catalogue}.Routes(r)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func (c fewSets) Entries(ctx context.Context) []data.Entry {
	entries := c.Datasets.Entries(ctx)
	for _, set := range c.more {
		entries = append(entries, data.Entry{Info: set.Info(), State: data.Ready, Kind: data.Packed})
	}
	return entries
}

func builtIn(t *testing.T) fewSets {
	adding := jobs.NewDatasets(data.Catalogue{Dir: t.TempDir()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { adding.Close() })
	return fewSets{Datasets: adding}
}

func dom(t *testing.T, w *httptest.ResponseRecorder) *goquery.Document {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func part(name string) string { return fmt.Sprintf("[data-testid=%q]", name) }

const theSet = "/datasets/shapes3d-synthetic"

func TestDatasetsAreListed(t *testing.T) {
	doc := dom(t, ask(t, builtIn(t), "/datasets"))
	card := doc.Find(part("datasets") + " > li")
	if card.Length() != 2 {
		t.Fatalf("%d datasets listed", card.Length())
	}
	text := card.Text()
	for _, want := range []string{"dsprites-synthetic", "737,280 images", "64 × 64 × 1", "not comparable with published dSprites scores", "Shapes3D, synthetic", "shapes3d-synthetic", "480,000 images", "64 × 64 × 3", "6 factors", "not comparable with published Shapes3D scores"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if href, _ := card.Find("h2 a").Attr("href"); href != theSet {
		t.Errorf("the title links to %q", href)
	}
}

// TestDatasetPage checks the page of one image without scripts: controls, strips, random images, table.
func TestDatasetPage(t *testing.T) {
	// 123,456 = 2·48000 + 5·4800 + 7·480 + 1·60 + 2·15 + 6
	w := ask(t, builtIn(t), theSet+"?index=123456&grid=5")
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	doc := dom(t, w)
	attr := func(selector, name string) string {
		t.Helper()
		s := doc.Find(selector)
		if s.Length() != 1 {
			t.Fatalf("%d elements match %s", s.Length(), selector)
		}
		v, _ := s.Attr(name)
		return v
	}
	for _, c := range []struct{ selector, name, want string }{
		{part("dataset-index"), "value", "123456"},
		{part("dataset-tuple"), "value", "2.5.7.1.2.6"},
		{part("dataset-image"), "src", "/api/datasets/shapes3d-synthetic/images/123456.png"},
		{part("dataset-image"), "alt", "Image 123456: floor hue 0.2, wall hue 0.5, object hue 0.7, scale 0.821, shape sphere, orientation -4.3°"},
		{part("dataset-image"), "width", "384"},
		{part("send-a"), "href", "/play?a=123456&dataset=shapes3d-synthetic"},
		{part("send-b"), "href", "/play?b=123456&dataset=shapes3d-synthetic"},
		{part("grid-seed"), "value", "5"},
		{part("reroll"), "href", theSet + "?grid=6&index=123456"},
		{part("select-shape") + " option[selected]", "value", "2"},
		{part("range-orientation"), "value", "6"},
		{part("range-orientation"), "max", "14"},
		{part("strip-shape") + " [aria-current]", "aria-label", "shape sphere"},
	} {
		if got := attr(c.selector, c.name); got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.name, c.selector, got, c.want)
		}
	}
	if !strings.Contains(doc.Find(part("dataset-note")).Text(), "not comparable with published Shapes3D scores") {
		t.Error("the page lacks the note that scores are not comparable")
	}
	checkStrips(t, doc)
	checkTable(t, doc)
}

func checkStrips(t *testing.T, doc *goquery.Document) {
	t.Helper()
	for name, n := range map[string]int{"floor_hue": 10, "wall_hue": 10, "object_hue": 10, "scale": 8, "shape": 4, "orientation": 15} {
		cells := doc.Find(part("strip-"+name) + " a")
		if cells.Length() != n || doc.Find(part("select-"+name)+" option").Length() != n {
			t.Errorf("%s has %d cells and %d options, want %d", name, cells.Length(), doc.Find(part("select-"+name)+" option").Length(), n)
		}
		if pictures := cells.Find("image").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("href", "") }); len(slices.Compact(pictures)) != 1 {
			t.Errorf("%s uses %d sheets, want one", name, len(slices.Compact(pictures)))
		}
	}
	second := doc.Find(part("strip-scale") + " a").Eq(2)
	if href := second.AttrOr("href", ""); href != theSet+"?grid=5&index=123516" { // scale 1 → 2 is a stride of 60
		t.Errorf("the third scale links to %q", href)
	}
	if box := second.Find("svg").AttrOr("viewBox", second.Find("svg").AttrOr("viewbox", "")); box != "128 0 64 64" {
		t.Errorf("the third scale shows %q of its strip", box)
	}
	if n := doc.Find(part("grid") + " a").Length(); n != 64 {
		t.Errorf("%d random images", n)
	}
}

func checkTable(t *testing.T, doc *goquery.Document) {
	t.Helper()
	var rows []string
	doc.Find(part("factor-table") + " tbody tr").Each(func(_ int, row *goquery.Selection) {
		rows = append(rows, strings.Join(row.Find("td").Map(func(_ int, cell *goquery.Selection) string { return cell.Text() }), " | "))
	})
	want := []string{
		"floor_hue | 10 | 0.0 … 0.9 | 48,000 | 48,000", "wall_hue | 10 | 0.0 … 0.9 | 48,000 | 4,800", "object_hue | 10 | 0.0 … 0.9 | 48,000 | 480",
		"scale | 8 | 0.750 … 1.250 | 60,000 | 60", "shape | 4 | cube, cylinder, sphere, capsule | 120,000 | 15", "orientation | 15 | -30.0° … 30.0° | 32,000 | 1",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the table reads\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// TestDatasetAddresses checks the ways to name an image in the URL, and that the playground's parameters are kept.
func TestDatasetAddresses(t *testing.T) {
	for _, c := range []struct{ query, index string }{
		{"?index=123,456", "123456"},
		{"?f=2.5.7.1.2.6", "123456"},
		{"?f=2&f=5&f=7&f=1&f=2&f=6", "123456"},
		{"?f=2+5+7+1+2+6", "123456"},
		{"?index=0&f=2.5.7.1.2.6", "123456"},
		{"", "301630"},
	} {
		w := ask(t, builtIn(t), theSet+c.query)
		if got := dom(t, w).Find(part("dataset-index")).AttrOr("value", ""); w.Code != http.StatusOK || got != c.index {
			t.Errorf("%q shows image %s with status %d, want %s", c.query, got, w.Code, c.index)
		}
	}
	doc := dom(t, ask(t, builtIn(t), theSet+"?index=9&a=4&b=77&checkpoint=0123456789abcdef"))
	if href := doc.Find(part("send-a")).AttrOr("href", ""); href != "/play?a=9&b=77&checkpoint=0123456789abcdef&dataset=shapes3d-synthetic" {
		t.Errorf("Send to A links to %q", href)
	}
	if href := doc.Find(part("strip-shape")+" a").First().AttrOr("href", ""); href != theSet+"?a=4&b=77&checkpoint=0123456789abcdef&grid=1&index=9" {
		t.Errorf("a strip links to %q", href)
	}
}

// TestDatasetPageKeepsWhatWasTyped checks that invalid values in the URL are reported beside the field, with an image still shown.
func TestDatasetPageKeepsWhatWasTyped(t *testing.T) {
	for _, c := range []struct{ query, field, typed, message, text string }{
		{"?index=480000", "dataset-index", "480000", "index-error", "There is no image 480000; shapes3d-synthetic has images 0 to 479999."},
		{"?index=-1", "dataset-index", "-1", "index-error", "There is no image -1; shapes3d-synthetic has images 0 to 479999."},
		{"?index=ten", "dataset-index", "ten", "index-error", `"ten" is not an image number; shapes3d-synthetic has images 0 to 479999.`},
		{"?f=0.0.0.9.0.0", "dataset-tuple", "0.0.0.9.0.0", "tuple-error", "There is no class 9 of scale; its classes are 0 to 7."},
		{"?f=1.2", "dataset-tuple", "1.2", "tuple-error", "2 classes given for the 6 factors of shapes3d-synthetic; give one class per factor."},
		{"?f=1.x", "dataset-tuple", "1.x", "tuple-error", `"x" is not a class; give one whole number per factor, e.g. 0.0.0.0.0.0.`},
		{"?grid=-3", "grid-seed", "-3", "seed-error", `"-3" is not a seed; use a whole number from 0 to 2147483647.`},
	} {
		w := ask(t, builtIn(t), theSet+c.query)
		doc := dom(t, w)
		field := doc.Find(part(c.field))
		if w.Code != http.StatusUnprocessableEntity || field.AttrOr("value", "") != c.typed || field.AttrOr("aria-invalid", "") != "true" {
			t.Errorf("%s: status %d, field %q, aria-invalid %q", c.query, w.Code, field.AttrOr("value", ""), field.AttrOr("aria-invalid", ""))
		}
		if got := doc.Find("#" + c.message).Text(); got != c.text {
			t.Errorf("%s: message %q, want %q", c.query, got, c.text)
		}
		if field.AttrOr("aria-describedby", "") != c.message {
			t.Errorf("%s: the message is not linked to its field", c.query)
		}
		if doc.Find(part("dataset-image")).AttrOr("src", "") != "/api/datasets/shapes3d-synthetic/images/301630.png" {
			t.Errorf("%s shows no image", c.query)
		}
	}
}

func TestDatasetRandomIsAnAddress(t *testing.T) {
	w := ask(t, builtIn(t), theSet+"?index=random&grid=4&b=7")
	to, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther || to.Path != theSet || to.Query().Get("grid") != "4" || to.Query().Get("b") != "7" {
		t.Fatalf("status %d to %v", w.Code, to)
	}
	if w := ask(t, builtIn(t), to.String()); w.Code != http.StatusOK {
		t.Errorf("the random URL has status %d", w.Code)
	}
}

// TestDatasetWithGaps checks that a dataset with missing combinations works by links alone and leaves their cells empty.
func TestDatasetWithGaps(t *testing.T) {
	sets := builtIn(t)
	sets.more = map[string]data.Set{"gappy": gappy{}}
	doc := dom(t, ask(t, sets, "/datasets/gappy?index=3"))
	links := doc.Find(part("strip-place") + " a[href]").Map(func(_ int, s *goquery.Selection) string { return s.AttrOr("aria-label", "") })
	if !slices.Equal(links, []string{"place left", "place right"}) {
		t.Errorf("the strip has %v", links)
	}
	if gap := doc.Find(part("strip-place") + " a[aria-disabled]"); gap.Length() != 1 || gap.AttrOr("aria-label", "") != "place middle" {
		t.Errorf("%d empty cells", gap.Length())
	}
	if doc.Find(part("incomplete")).Length() != 1 || !strings.Contains(doc.Find("#dataset-data").Text(), `"complete":false,"classes":[1,0],"near":[[0,3],[3,-1,4]]`) {
		t.Errorf("the page's data: %s", doc.Find("#dataset-data").Text())
	}
	doc = dom(t, ask(t, sets, "/datasets/gappy?f=1.1"))
	if got := doc.Find("#tuple-error").Text(); !strings.Contains(got, "No image has the classes [1 1]") {
		t.Errorf("message of a missing combination: %q", got)
	}
	img := pixels(t, ask(t, sets, "/api/datasets/gappy/strip/place.png?index=3"))
	if got := []byte{img[0], img[2*3], img[4*3]}; !bytes.Equal(got, []byte{120, 0, 160}) {
		t.Errorf("the strip's greys are %v", got)
	}
}

// pixels decodes a PNG to RGB bytes, row by row.
func pixels(t *testing.T, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/png" {
		t.Fatalf("status %d, %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	img, err := png.Decode(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	var rgb []byte
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			rgb = append(rgb, byte(r>>8), byte(g>>8), byte(b>>8))
		}
	}
	return rgb
}

// TestDatasetPictures compares every kind of image response with the dataset's bytes.
func TestDatasetPictures(t *testing.T) {
	sets := builtIn(t)
	set, err := sets.Open(t.Context(), "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	image := func(index int) []byte {
		b := make([]byte, 64*64*3)
		if err := set.Images(b, []int{index}); err != nil {
			t.Fatal(err)
		}
		return b
	}
	const api = "/api/datasets/shapes3d-synthetic/"
	w := ask(t, sets, api+"images/123456.png")
	if cache := w.Header().Get("Cache-Control"); !strings.Contains(cache, "immutable") {
		t.Errorf("Cache-Control of an image: %q", cache)
	}
	if !bytes.Equal(pixels(t, w), image(123456)) {
		t.Error("image 123456 differs from the dataset's")
	}
	if !bytes.Equal(pixels(t, ask(t, sets, api+"images.png?classes=2.5.7.1.2.6")), image(123456)) {
		t.Error("the image by classes differs from the dataset's")
	}
	large := pixels(t, ask(t, sets, api+"images/123456.png?x=3"))
	if len(large) != 9*64*64*3 || !bytes.Equal(at(large, 192, 100, 95), at(image(123456), 64, 33, 31)) {
		t.Error("the image magnified three times differs")
	}
	strip := pixels(t, ask(t, sets, api+"strip/shape.png?index=123456"))
	if len(strip) != 4*64*64*3 || !bytes.Equal(at(strip, 256, 64*3+32, 40), at(image(123471), 64, 32, 40)) {
		t.Error("the fourth of the shapes is not the capsule")
	}
	var grid struct {
		Images []datasetImage `json:"images"`
	}
	if err := json.Unmarshal(ask(t, sets, api+"grid.json?seed=9&n=6").Body.Bytes(), &grid); err != nil || len(grid.Images) != 6 {
		t.Fatalf("%d images (%v)", len(grid.Images), err)
	}
	sheet := pixels(t, ask(t, sets, api+"grid.png?seed=9&n=6&columns=3"))
	if len(sheet) != 6*64*64*3 || !bytes.Equal(at(sheet, 192, 64+20, 64+50), at(image(grid.Images[4].Index), 64, 20, 50)) {
		t.Error("the fifth random image is not the one listed")
	}
}

// TestPicturesOfAnAddedSet checks that images of added datasets are revalidated, because another dataset can take a removed one's name.
func TestPicturesOfAnAddedSet(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "0.png"), drawnPNG(t, 200), 0o600), os.WriteFile(filepath.Join(dir, "1.png"), drawnPNG(t, 9), 0o600),
		os.WriteFile(filepath.Join(dir, "metadata.csv"), []byte("file_name,a/b %2F?\n0.png,x\n1.png,y\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	sets := builtIn(t)
	add := func(from string) {
		t.Helper()
		if _, err := sets.Catalogue.Add(t.Context(), data.Request{From: from, Name: "mine"}, func(data.Work) {}); err != nil {
			t.Fatal(err)
		}
	}
	add(dir)
	const one = "/api/datasets/mine/images/0.png"
	first := ask(t, sets, one)
	if cache := first.Header().Get("Cache-Control"); first.Code != 200 || strings.Contains(cache, "immutable") || first.Header().Get("ETag") == "" {
		t.Errorf("status %d, Cache-Control %q, ETag %q", first.Code, cache, first.Header().Get("ETag"))
	}
	if w := ask(t, sets, "/api/datasets/mine/strip/"+url.PathEscape("a/b %2F?")+".png?index=0"); w.Code != 200 || len(pixels(t, w)) != 2*64*64*3 {
		t.Errorf("the strip of a factor with an odd name: status %d, %s", w.Code, w.Body)
	}
	if err := sets.Catalogue.Remove("mine"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "metadata.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0.png"), drawnPNG(t, 70), 0o600); err != nil {
		t.Fatal(err)
	}
	add(dir)
	if again := ask(t, sets, one); again.Code != 200 || again.Header().Get("ETag") == first.Header().Get("ETag") {
		t.Errorf("status %d, another image has the same ETag", again.Code)
	}
	if got := ask(t, sets, "/api/datasets/mine").Body.String(); !strings.Contains(got, `"factors":[]`) {
		t.Errorf("a dataset without factors: %s", got)
	}
}

// TestGridOfFewImages checks that the page draws the sheet at the width of the requested image.
func TestGridOfFewImages(t *testing.T) {
	sets := builtIn(t)
	sets.more = map[string]data.Set{"gappy": gappy{}}
	sheet := dom(t, ask(t, sets, "/datasets/gappy")).Find("image[href*='grid.png']").First()
	href, width := sheet.AttrOr("href", ""), sheet.AttrOr("width", "")
	w := ask(t, sets, href)
	img, err := png.Decode(w.Body)
	if err != nil || fmt.Sprint(img.Bounds().Dx()) != width || width != "10" {
		t.Errorf("%s is drawn %s wide, and is %v (%v)", href, width, img.Bounds(), err)
	}
}

// drawnPNG returns an image of one colour.
func drawnPNG(t *testing.T, red uint8) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(img, img.Rect, image.NewUniform(color.NRGBA{red, 1, 2, 255}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// at returns one pixel of an image of the given width.
func at(rgb []byte, width, x, y int) []byte { return rgb[(y*width+x)*3 : (y*width+x)*3+3] }

func TestDatasetAPI(t *testing.T) {
	sets := builtIn(t)
	var list struct{ Datasets []data.Info }
	if err := json.Unmarshal(ask(t, sets, "/api/datasets").Body.Bytes(), &list); err != nil || len(list.Datasets) != 2 || list.Datasets[0].Len != 480_000 {
		t.Errorf("the list is %+v (%v)", list, err)
	}
	var info data.Info
	if err := json.Unmarshal(ask(t, sets, "/api/datasets/shapes3d-synthetic").Body.Bytes(), &info); err != nil || info.Factors[5].Values[14] != "30.0°" {
		t.Errorf("the set is %+v (%v)", info, err)
	}
	got := ask(t, sets, "/api/datasets/shapes3d-synthetic/images/123456.json").Body.String()
	if want := `{"index":123456,"classes":[2,5,7,1,2,6],"values":["0.2","0.5","0.7","0.821","sphere","-4.3°"]}` + "\n"; got != want {
		t.Errorf("the image is %s", got)
	}
}

func TestDatasetErrors(t *testing.T) {
	const api = "/api/datasets/shapes3d-synthetic/"
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/datasets/moon", 404, "Unknown dataset &#34;moon&#34;; available: shapes3d-synthetic, dsprites-synthetic."},
		{"/api/datasets/moon", 404, `Unknown dataset \"moon\"; available: shapes3d-synthetic, dsprites-synthetic.`},
		{"/api/datasets/moon/images/0.png", 404, "moon"},
		{api + "images/480000.png", 422, "there is no image 480000; shapes3d-synthetic has images 0 to 479999"},
		{api + "images/-1.png", 422, "there is no image -1"},
		{api + "images/one.png", 422, `\"one\" is not an image number`},
		{api + "images.png?classes=0.12.0.0.0.0", 422, "there is no class 12 of wall_hue; its classes are 0 to 9"},
		{api + "images.png?classes=1", 422, "1 class given for the 6 factors"},
		{api + "images.png", 422, "choose an image by index"},
		{api + "images/7.png?x=9", 422, `\"9\" is not a whole number from 1 to 8`},
		{api + "images/7.png?x=0", 422, `\"0\"`},
		{api + "strip/colour.png?index=1", 404, `Shapes3d-synthetic has no factor \"colour\".`},
		{api + "strip/shape.png?index=480000", 422, "480000"},
		{api + "grid.png?seed=x", 422, `\"x\" is not a seed`},
		{api + "grid.png?n=257", 422, "1 to 256"},
		{api + "grid.png?n=256&x=8", 422, "exceed the size limit"},
		{api + "grid.json?n=0", 422, "1 to 256"},
	} {
		w := ask(t, builtIn(t), c.path)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: status %d, want %d; body %.300s", c.path, w.Code, c.status, w.Body)
		}
	}
	broken := builtIn(t)
	broken.fail = errors.New("disk on fire")
	if w := ask(t, broken, theSet); w.Code != 500 || strings.Contains(w.Body.String(), "fire") {
		t.Errorf("a dataset that does not open: status %d: %.200s", w.Code, w.Body)
	}
}
