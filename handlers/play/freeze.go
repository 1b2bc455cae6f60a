package play

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/format/weights"
	"slotscope/model/play"
	ui "slotscope/views/play"
)

// Freezer writes the playground of checkpoints as one HTML file that needs no server: the same page, style sheets and modules of
// script as the live one, with the models and 64 pictures of each.
type Freezer struct {
	Library  *play.Library
	Static   fs.FS  // what pages load: style sheets, modules, the codec
	Revision string // of the program
}

// frozenRank is that of the probe's large matrix in a file, with which it takes a third of the bytes of the whole: of pictures of random codes
// it reads 92 to 99% of each factor as the whole probe does, of the dataset's images all.
const frozenRank = 44

// mostFrozen is the largest number of models in one file.
const mostFrozen = 16

// frozenModel is a model in the file, as static/play/boot.js and frozen.js read it.
type frozenModel struct {
	Key      string          `json:"key"`
	Title    string          `json:"title"` // of the document
	Page     string          `json:"page"`  // HTML
	Data     json.RawMessage `json:"data"`  // what the page's modules start from
	Usage    *play.Usage     `json:"usage"`
	Examples []play.Example  `json:"examples"`
	Sheet    string          `json:"sheet"` // address of the picture of all examples
	Probe    string          `json:"probe"` // name of the blob that reads the dataset's factors; empty where there is none

	weights []byte
	reader  []byte
}

// Freeze writes the file. Names are those of Library.Find; a model that is too large is model.Invalid.
func (f Freezer) Freeze(ctx context.Context, names []string, w io.Writer) error {
	if len(names) < 1 || len(names) > mostFrozen {
		return model.Invalid{"checkpoint": fmt.Sprintf("%d checkpoints are named; one file holds 1 to %d", len(names), mostFrozen)}
	}
	sources := make([]play.Source, len(names))
	for i, name := range names {
		src, err := f.Library.Find(name)
		if err != nil {
			return err
		}
		sources[i] = src
	}
	var models []frozenModel
	styles := ""
	examples := map[string][]play.Example{} // of the first model of each dataset
	for _, src := range sources {
		m, sheets, err := f.model(ctx, src, sources, examples[src.Config.Dataset])
		if err != nil {
			return fmt.Errorf("freezing %s: %w", src.Title, err)
		}
		examples[src.Config.Dataset] = m.Examples
		models, styles = append(models, m), sheets
	}
	return f.write(w, models, styles)
}

// model freezes one checkpoint; styles are what its page loads.
func (f Freezer) model(ctx context.Context, src play.Source, all []play.Source, like []play.Example) (m frozenModel, styles string, err error) {
	frozen, err := f.Library.Freeze(ctx, src, like)
	if err != nil {
		return m, "", err
	}
	opened, release, err := f.Library.Use(ctx, src)
	if err != nil {
		return m, "", err
	}
	defer release()
	room := playRoom{play: &Play{Library: f.Library}, model: opened, source: src}
	q := url.Values{}
	if len(frozen.Examples) > 1 {
		q.Set("a", strconv.Itoa(frozen.Examples[0].Index))
		q.Set("b", strconv.Itoa(frozen.Examples[1].Index))
	}
	state, err := room.read(ctx, q)
	if err != nil {
		return m, "", err
	}
	view, err := room.view(ctx, state)
	if err != nil {
		return m, "", err
	}
	view.Weights, view.Checkpoints, view.Others, view.Steps = "", nil, nil, nil
	contrast := play.Contrast(all, src)
	for _, other := range all {
		if other.Key != src.Key && other.Config.Dataset == src.Config.Dataset {
			view.Others = append(view.Others, ui.PlayOption{Value: other.Key, Text: optionText(other), Chosen: other.Key == contrast})
		}
		view.Checkpoints = append(view.Checkpoints, ui.PlayOption{Value: other.Key, Text: optionText(other), Chosen: other.Key == src.Key})
	}
	view.Frozen, view.Nameable = f.facts(frozen), true // by the browser that opens the file
	var page bytes.Buffer
	if err := ui.Play(view).Render(ctx, &page); err != nil {
		return m, "", err
	}
	m = frozenModel{Key: src.Key, Title: "Slotscope: " + src.Title, Usage: frozenUsage(frozen.Usage), Examples: frozen.Examples, weights: frozen.Weights}
	m.Sheet = "data:image/png;base64," + base64.StdEncoding.EncodeToString(frozen.Sheet)
	reader, err := f.Library.Reader(ctx, src.Config.Dataset)
	switch {
	case err == nil:
		m.Probe, m.reader = src.Config.Dataset+".probe", reader.Encode(frozenRank)
	case !errors.Is(err, model.ErrNotFound):
		return m, "", err
	}
	styles, err = f.take(&m, &page)
	return m, styles, err
}

// frozenUsage is what a file needs of a count; names and groups are in the page's data already.
func frozenUsage(u *play.Usage) *play.Usage {
	if u == nil {
		return nil
	}
	return &play.Usage{Version: u.Version, Images: u.Images, Counts: u.Counts}
}

// facts are what the page says of itself.
func (f Freezer) facts(frozen play.Frozen) []ui.PlayFact {
	src := frozen.Source
	precision := "float16; pictures differ from the original model's by at most " + strconv.Itoa(frozen.Difference) + " of 255"
	if frozen.Type == weights.Float32 {
		precision = "float32"
	}
	out := []ui.PlayFact{
		{Name: "Model", Text: playAbout(src)},
		{Name: "Dataset", Text: src.Config.Dataset + ", " + strconv.Itoa(len(frozen.Examples)) + " of its pictures are in this file"},
		{Name: "Checkpoint", Text: src.Key},
		{Name: "Weights", Text: precision},
		{Name: "Written by", Text: "Slotscope " + f.Revision + ", whose scripts are under the Apache License 2.0"},
	}
	if src.Run != "" {
		out = append(out, ui.PlayFact{Name: "Run", Text: src.Run})
	}
	return out
}

// offline are the downloads that the page makes by itself, as static/play/files.js does.
const offline = ":has([data-file=png], [data-file=png4], [data-file='animation.gif'], [data-file='animation.png'], [data-file='codes.json'])"

// hash is what static.Assets puts into addresses.
var hash = regexp.MustCompile(`\.[0-9a-f]{12}(\.\w+)$`)

// nothing is a picture of one transparent pixel.
const nothing = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

// take takes the playground out of its rendered page: what would ask the server for something is left out.
func (f Freezer) take(m *frozenModel, page io.Reader) (styles string, err error) {
	doc, err := goquery.NewDocumentFromReader(page)
	if err != nil {
		return "", err
	}
	var problem error
	doc.Find(`link[rel="stylesheet"]`).Each(func(_ int, link *goquery.Selection) {
		name := hash.ReplaceAllString(strings.TrimPrefix(link.AttrOr("href", ""), "/static/"), "$1")
		sheet, err := fs.ReadFile(f.Static, name)
		if err != nil {
			problem = err
		}
		styles += bare(string(sheet))
	})
	sheet, err := fs.ReadFile(f.Static, "play/atlas.css") // the live page's atlas is a page of its own
	if err != nil {
		return "", err
	}
	styles += bare(string(sheet))
	m.Data = json.RawMessage(doc.Find("#play-data").Text())
	main := doc.Find("#main")
	main.Find("script, .nojs, input[type=hidden]").Remove()
	main.Find("#download li").Not(offline).Remove()
	main.Find("a[role=button][href^='/']").SetAttr("href", "#") // scripts hear them; without an address no key would reach them
	main.Find("[href^='/']").RemoveAttr("href")
	main.Find("form").RemoveAttr("action").RemoveAttr("method").RemoveAttr("enctype")
	main.Find("img[src^='/']").SetAttr("src", nothing)
	m.Page, err = main.Html()
	if err == nil {
		err = problem
	}
	return styles, err
}

// write puts the file together.
func (f Freezer) write(w io.Writer, models []frozenModel, styles string) error {
	scripts, err := f.scripts()
	if err != nil {
		return err
	}
	var page bytes.Buffer
	to := json.NewEncoder(&page)
	to.SetEscapeHTML(false) // nobody reads it as HTML, and < is the commonest character of all
	if err := to.Encode(map[string]any{"styles": styles, "scripts": scripts, "models": models}); err != nil {
		return err
	}
	codec, err := fs.ReadFile(f.Static, "play/codec.wasm")
	if err != nil {
		return err
	}
	boot, err := fs.ReadFile(f.Static, "play/boot.js")
	if err != nil {
		return err
	}
	blobs := []frozenBlob{{"page", page.Bytes()}, {"codec.wasm", codec}}
	for _, m := range models {
		blobs = append(blobs, frozenBlob{m.Key + ".weights", m.weights})
		if m.Probe != "" && !slices.ContainsFunc(blobs, func(b frozenBlob) bool { return b.name == m.Probe }) {
			blobs = append(blobs, frozenBlob{m.Probe, m.reader})
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, frozenHead, html.EscapeString(f.Revision), html.EscapeString(models[0].Title))
	for _, b := range blobs {
		small, err := deflated(b.raw)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "<script type=\"text/plain\" id=\"blob:%s\" data-length=\"%d\">", b.name, len(small))
		out.WriteString(septets(small))
		out.WriteString("</script>\n")
	}
	fmt.Fprintf(&out, "<script>\n%s</script>\n</body>\n</html>\n", boot)
	_, err = w.Write(out.Bytes())
	return err
}

// frozenBlob is bytes in the file, under a name.
type frozenBlob struct {
	name string
	raw  []byte
}

const frozenHead = `<!DOCTYPE html>
<!-- A playground of Slotscope %s, frozen: one file that needs no server. Its scripts are under the Apache License 2.0,
     https://www.apache.org/licenses/LICENSE-2.0; the model and the pictures are under the terms of those who made them. -->
<html lang="en" data-frozen>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<link rel="icon" href="data:,">
</head>
<body>
<main id="main"><noscript>This page decodes pictures in your browser, so it needs JavaScript.</noscript></main>
`

// live are modules that no frozen page needs: what asks a server, and the benchmark.
var live = []string{"play/bench.js", "play/server.js"}

// imported is a module's address in another.
var imported = regexp.MustCompile(`(from |import\(|import\.meta\.resolve\()'(\.\.?/[^']+\.js)'`)

// comment is one that has its lines to itself.
var comment = regexp.MustCompile(`(?m)^[ \t]*(//.*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/[ \t]*)\n`)

// indent is what begins a line; no string of ours goes over several.
var indent = regexp.MustCompile(`(?m)^[ \t]+`)

// bare leaves out comments and indentation: of a page that nobody edits they would be a sixth.
func bare(source string) string {
	return indent.ReplaceAllString(comment.ReplaceAllString(source, ""), "")
}

// scripts are the modules that the page runs, under names that the file's import map knows: addresses relative to a module mean
// nothing where modules have no place.
func (f Freezer) scripts() (map[string]string, error) {
	out, waiting := map[string]string{}, []string{"play/play.js"}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		if _, known := out[name]; known {
			continue
		}
		raw, err := fs.ReadFile(f.Static, name)
		if err != nil {
			return nil, err
		}
		out[name] = imported.ReplaceAllStringFunc(bare(string(raw)), func(found string) string {
			parts := imported.FindStringSubmatch(found)
			other := path.Join(path.Dir(name), parts[2])
			if !slices.Contains(live, other) {
				waiting = append(waiting, other)
			}
			return parts[1] + "'" + other + "'"
		})
	}
	return out, nil
}

func deflated(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	err = w.Close() // before the bytes are taken
	return out.Bytes(), err
}

// forbidden are the septets that a page cannot hold as they are: NUL, the ends of lines, and the beginning of a tag.
var forbidden = []byte{0, '\n', '\r', '<'}

// septets writes bytes as text of a UTF-8 page, seven bits a character: 14 % more than the bytes, where base64 takes a third. A
// forbidden septet and the one after it become one character from 160 on.
//
//	160 + 128·(place among the forbidden) + (the septet after it)
func septets(raw []byte) string {
	var out strings.Builder
	out.Grow(len(raw) * 6 / 5)
	next := func(i int) (byte, bool) { // septet i
		at, shift := 7*i/8, 7*i%8
		if at >= len(raw) {
			return 0, false
		}
		two := uint16(raw[at]) << 8
		if at+1 < len(raw) {
			two |= uint16(raw[at+1])
		}
		return byte(two>>(9-shift)) & 127, true
	}
	for i := 0; ; i++ {
		v, ok := next(i)
		if !ok {
			return out.String()
		}
		if place := bytes.IndexByte(forbidden, v); place >= 0 {
			i++
			after, _ := next(i)
			out.WriteRune(rune(160 + 128*place + int(after)))
			continue
		}
		out.WriteByte(v)
	}
}

// frozen answers the page of one checkpoint as a file.
func (p *Play) frozen(w http.ResponseWriter, r *http.Request) error {
	src, err := p.Library.Find(chi.URLParam(r, "checkpoint"))
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := (Freezer{p.Library, p.Static, p.Revision}).Freeze(r.Context(), []string{src.Key}, &page); err != nil {
		return err
	}
	handlers.AsFile(w, fmt.Sprintf("slotscope-%s.html", src.Key[:8]))
	return handlers.SendBytes(w, r, "text/html; charset=utf-8", page.Bytes())
}
