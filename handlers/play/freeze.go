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

// Freezer writes the playground of one or more checkpoints as one HTML file that needs no server. The file has the page, style sheets and
// script modules of the live playground, the models, and up to 64 images for each.
type Freezer struct {
	Library  *play.Library
	Static   fs.FS  // style sheets, script modules and the codec
	Revision string // of the program
}

// frozenRank is the rank of the probe's large matrix in a file, which reduces the probe to a third of its bytes. On images of random codes it
// agrees with the full probe on 92–99% of each factor's values, on the dataset's images on all of them.
const frozenRank = 44

// mostFrozen is the maximum number of models per file.
const mostFrozen = 16

// frozenModel is a model in the file, as static/play/boot.js and frozen.js read it.
type frozenModel struct {
	Key      string          `json:"key"`
	Title    string          `json:"title"` // of the document
	Page     string          `json:"page"`  // HTML
	Data     json.RawMessage `json:"data"`  // initial state of the page's modules
	Usage    *play.Usage     `json:"usage"`
	Examples []play.Example  `json:"examples"`
	Sheet    string          `json:"sheet"` // data URL of one image with all examples
	Probe    string          `json:"probe"` // name of the blob with the dataset's factor probe; empty if none

	weights []byte
	reader  []byte
}

// Freeze writes the file. It looks up names with Library.Find and returns a model.Invalid if a model is too large.
func (f Freezer) Freeze(ctx context.Context, names []string, w io.Writer) error {
	if len(names) < 1 || len(names) > mostFrozen {
		return model.Invalid{"checkpoint": fmt.Sprintf("got %d checkpoints; choose 1–%d per file", len(names), mostFrozen)}
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

// model freezes one checkpoint and returns the style sheets that its page loads.
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
			view.Others = append(view.Others, ui.PlayOption{Value: other.Key, Text: origin(other).Option(), Chosen: other.Key == contrast})
		}
		view.Checkpoints = append(view.Checkpoints, ui.PlayOption{Value: other.Key, Text: origin(other).Option(), Chosen: other.Key == src.Key})
	}
	view.Frozen, view.Nameable = f.facts(frozen), true // names are stored by the browser that opens the file
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

// frozenUsage returns the part of a count that a file needs. Names and groups are already in the page's data.
func frozenUsage(u *play.Usage) *play.Usage {
	if u == nil {
		return nil
	}
	return &play.Usage{Version: u.Version, Images: u.Images, Counts: u.Counts}
}

// facts returns the page's facts about itself.
func (f Freezer) facts(frozen play.Frozen) []ui.PlayFact {
	src, precision := frozen.Source, "float16"
	if frozen.Type == weights.Float32 {
		precision = "float32"
	}
	return ui.FrozenFacts(origin(src), src.Key, src.Run, f.Revision, precision, frozen.Difference, len(frozen.Examples))
}

// offline selects the downloads that work without a server; static/play/files.js creates them.
const offline = ":has([data-file=png], [data-file=png4], [data-file='animation.gif'], [data-file='animation.png'], [data-file='codes.json'])"

// hash matches the content hash that static.Assets adds to file names.
var hash = regexp.MustCompile(`\.[0-9a-f]{12}(\.\w+)$`)

// nothing is an image of one transparent pixel.
const nothing = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="

// take extracts the playground from its rendered page, without anything that would request from the server.
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
	sheet, err := fs.ReadFile(f.Static, "play/atlas.css") // the live atlas is a separate page
	if err != nil {
		return "", err
	}
	styles += bare(string(sheet))
	m.Data = json.RawMessage(doc.Find("#play-data").Text())
	main := doc.Find("#main")
	main.Find("script, .nojs, input[type=hidden]").Remove()
	main.Find("#download li").Not(offline).Remove()
	main.Find("a[role=button][href^='/']").SetAttr("href", "#") // scripts handle them; without href they cannot be focused
	main.Find("[href^='/']").RemoveAttr("href")
	main.Find("form").RemoveAttr("action").RemoveAttr("method").RemoveAttr("enctype")
	main.Find("img[src^='/']").SetAttr("src", nothing)
	m.Page, err = main.Html()
	if err == nil {
		err = problem
	}
	return styles, err
}

// write assembles the file.
func (f Freezer) write(w io.Writer, models []frozenModel, styles string) error {
	scripts, err := f.scripts()
	if err != nil {
		return err
	}
	var page bytes.Buffer
	to := json.NewEncoder(&page)
	to.SetEscapeHTML(false) // it is compressed, not parsed as HTML, and < is the most frequent character
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
	fmt.Fprintf(&out, ui.FrozenHead, html.EscapeString(f.Revision), html.EscapeString(models[0].Title))
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

// frozenBlob is a named blob in the file.
type frozenBlob struct {
	name string
	raw  []byte
}

// live lists modules that standalone pages do not need: the server connection and the benchmark.
var live = []string{"play/bench.js", "play/server.js"}

// imported matches a module's path where another module imports it.
var imported = regexp.MustCompile(`(from |import\(|import\.meta\.resolve\()'(\.\.?/[^']+\.js)'`)

// comment matches a comment on lines of its own.
var comment = regexp.MustCompile(`(?m)^[ \t]*(//.*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/[ \t]*)\n`)

// indent matches indentation. No string in our scripts spans lines.
var indent = regexp.MustCompile(`(?m)^[ \t]+`)

// bare removes comments and indentation, which would be a sixth of the file.
func bare(source string) string {
	return indent.ReplaceAllString(comment.ReplaceAllString(source, ""), "")
}

// scripts returns the page's modules by the names in the file's import map, with imports rewritten to those names: relative paths do not
// resolve in modules without a URL.
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
	err = w.Close() // flushes; must precede out.Bytes
	return out.Bytes(), err
}

// forbidden lists the septets that HTML text cannot hold verbatim: NUL, line ends, and the start of a tag.
var forbidden = []byte{0, '\n', '\r', '<'}

// septets encodes bytes as text of a UTF-8 page, seven bits per character: 14% larger than the bytes, compared to 33% for base64. A
// forbidden septet and the one after it become one character from 160 up:
//
//	160 + 128·(index in forbidden) + (the septet after it)
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

// frozen sends one checkpoint's playground as a standalone HTML file.
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
