package play_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/png"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/gorilla/websocket"

	"slotscope/handlers/handlertest"
	playpage "slotscope/handlers/play"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/play"
	"slotscope/static"
	"slotscope/web"
)

// playground is a site with one run, of a small model with initial weights.
type playground struct {
	t   *testing.T
	url string
	key string
	m   int
}

func newPlayground(t *testing.T) playground { return playgroundOf(t, "hrr") }

// playgroundOf returns a site with one run of the named model.
func playgroundOf(t *testing.T, name string) playground {
	t.Helper()
	return playgroundIn(t, t.TempDir(), name)
}

// playgroundIn is playgroundOf with its run in the given folder.
func playgroundIn(t *testing.T, dir, name string) playground {
	t.Helper()
	shareCounts(t, dir)
	handlertest.WriteRunOf(t, dir, name)
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, data.Catalogue{Dir: dir})
	t.Cleanup(library.Close)
	site, err := web.New(web.Config{Addr: "127.0.0.1:0", Pages: []web.Page{&playpage.Play{Library: library, Static: static.Files(), Revision: "test"}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	src, err := library.Find(handlertest.RunID)
	if err != nil {
		t.Fatal(err)
	}
	return playground{t, server.URL, src.Key, src.Config.M}
}

// ask sends a request and returns the reply and its body, without following redirects.
func (p playground) ask(method, path string, header http.Header, body io.Reader) (*http.Response, []byte) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	reply, err := client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer reply.Body.Close()
	raw, err := io.ReadAll(reply.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return reply, raw
}

func (p playground) get(path string) (*http.Response, []byte) { return p.ask("GET", path, nil, nil) }

// getJSON decodes a reply, which must have status 200.
func (p playground) getJSON(path string, v any) {
	p.t.Helper()
	reply, raw := p.get(path)
	if reply.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s %s", path, reply.Status, raw)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
}

func (p playground) page(path string) *goquery.Document {
	p.t.Helper()
	reply, raw := p.get(path)
	if reply.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s", path, reply.Status)
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(raw))
	if err != nil {
		p.t.Fatal(err)
	}
	return doc
}

func testID(id string) string { return fmt.Sprintf("[data-testid=%q]", id) }

func TestPlaySendsToAStateThatIsAnAddress(t *testing.T) {
	p := newPlayground(t)
	shipped, err := play.Default()
	if err != nil {
		t.Fatal(err)
	}
	reply, _ := p.get("/play")
	where, err := reply.Location()
	if err != nil || where.Path != "/play/"+shipped.Key || where.Query().Get("a") == "" || where.Query().Get("b") == "" {
		t.Fatalf("%s: %v, %v", reply.Status, where, err)
	}
	for path, want := range map[string]string{
		"/play?a=12345&dataset=shapes3d-synthetic":           "a=12345&b=",
		"/play/" + handlertest.RunID + "?a=1&b=2":            "/play/" + p.key + "?a=1&b=2",
		"/play/" + handlertest.RunID + "@250?a=1&b=2":        "/play/" + p.key + "?a=1&b=2",
		"/play?checkpoint=" + handlertest.RunID + "&a=3&b=4": "/play/" + p.key + "?a=3&b=4",
		"/play/" + p.key + "?a=random&b=2&bcodes=x":          "b=2",
	} {
		reply, _ := p.get(path)
		if got := reply.Header.Get("Location"); reply.StatusCode != http.StatusSeeOther || !strings.Contains(got, want) {
			t.Errorf("%s: %s to %q, want %q", path, reply.Status, got, want)
		}
	}
}

// Every edit is a link to another state, so no script is needed.
func TestPlayWorksByLinksAlone(t *testing.T) {
	p := newPlayground(t)
	doc := p.page("/play/" + p.key + "?a=12345&b=400000&codes=1.2.3.4.5&bcodes=6.2.8.9.10&order=4.0.1.2.3")
	codes := func(doc *goquery.Document, row string) (out []string) {
		for i := range p.m {
			out = append(out, doc.Find(testID(fmt.Sprintf("play-slot-%s-%d", row, i))).AttrOr("data-code", ""))
		}
		return out
	}
	if a, b := strings.Join(codes(doc, "a"), "."), strings.Join(codes(doc, "b"), "."); a != "1.2.3.4.5" || b != "6.2.8.9.10" {
		t.Fatalf("rows %s and %s", a, b)
	}
	if got := doc.Find(testID("play-image")).AttrOr("src", ""); got != "/img/"+p.key+"/1.2.3.4.5.png" {
		t.Errorf("the image is %s", got)
	}
	if got := doc.Find(testID("play-swap-3")).AttrOr("data-codes", ""); got != "1.2.3.9.5" {
		t.Errorf("swap 3 is %s", got)
	}
	for j, want := range []string{"1.2.3.4.5", "1.2.3.4.10", "6.2.3.4.10", "6.2.3.4.10", "6.2.8.4.10", "6.2.8.9.10"} {
		if got := doc.Find(testID(fmt.Sprintf("play-strip-%d", j))).AttrOr("data-codes", ""); got != want {
			t.Errorf("step %d is %s, want %s", j, got, want)
		}
	}
	if n := doc.Find(`[data-same]`).Length(); n != 5 { // slot 1: both tokens, its swap, and its group's heading and swap
		t.Errorf("%d parts are marked as the same", n)
	}
	next := p.page(doc.Find(testID("play-slot-b-3")).AttrOr("href", ""))
	if got := strings.Join(codes(next, "a"), "."); got != "1.2.3.9.5" {
		t.Errorf("B's code in slot 3 leads to %s", got)
	}
	third := p.page(strings.Split(next.Find(testID("play-head-2")).AttrOr("href", ""), "#")[0])
	if got := third.Find("#palette-slot").Text(); got != "2" {
		t.Errorf("the palette shows slot %q", got)
	}
	fourth := p.page(strings.Split(third.Find(testID("play-palette-11")).AttrOr("href", ""), "#")[0])
	if got := strings.Join(codes(fourth, "a"), "."); got != "1.2.11.9.5" {
		t.Errorf("entry 11 leads to %s", got)
	}
	later := p.page(strings.Split(doc.Find(`[data-place="0"] [data-by="1"]`).AttrOr("href", ""), "#")[0])
	if got := later.Find(testID("play-strip-1")).AttrOr("data-codes", ""); got != "6.2.3.4.5" {
		t.Errorf("a slot swapped later: step 1 is %s", got)
	}
}

func TestPlayRefusesBadAddressesWithASentence(t *testing.T) {
	p := newPlayground(t)
	at := "/play/" + p.key
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{at + "?codes=1.2.3.4.12", 422, "slot 4: code 12 does not exist; this checkpoint has codes 0–11"},
		{at + "?codes=1.2", 422, "got 2 codes; this checkpoint has 5 slots"},
		{at + "?codes=1.2.x.4.5", 422, "slot 2: “x” is not a code"},
		{at + "?bcodes=1.2.3.4.99", 422, "slot 4: code 99"},
		{at + "?a=480000", 422, "choose 0–479999"},
		{at + "?b=minus", 422, "is not an image index of shapes3d-synthetic"},
		{at + "?order=0.1.2.3.3", 422, "does not list each of the 5 slots once"},
		{at + "?slot=5", 422, "slots 0–4"},
		{at + "?a=1&dataset=mpi3d", 422, "trained on shapes3d-synthetic"},
		{"/play?a=1&dataset=mpi3d", 200, "No checkpoint was trained on mpi3d yet"},
		{"/play/ffffffffffffffff", 404, "ffffffffffffffff"},
		{"/play/no-such-run", 404, "no-such-run"},
		{"/play?checkpoint=..%2F..%2Fetc%2Fpasswd", 404, "o checkpoint or run is named"},
		{"/img/" + p.key + "/1.2.3.4.12.png", 422, "code 12 does not exist"},
		{"/img/" + p.key + "/1.2.3.png", 422, "got 3 codes"},
		{"/img/" + p.key + "/1.2.3.4.5.png?x=9", 422, "is not a scale; use 1–8"},
		{"/img/" + p.key + "/1.2.3.4.5.jpg", 404, "PNG"},
		{"/img/ffffffffffffffff/1.2.3.4.5.png", 404, ""},
		{"/api/play/" + p.key + "/palette?codes=1.2.3.4.5&slot=7", 422, "in 0–4"},
		{"/api/play/" + p.key + "/palette?codes=1.2.3.4.5&sort=size", 422, "usage, value, id, distance"},
		{"/api/play/" + p.key + "/palette", 422, "required: the code tuple"},
		{"/api/play/" + p.key + "/check", 422, "required: the code tuple"},
		{"/api/play/" + p.key + "/original.png?index=x", 422, "is not an image"},
	} {
		reply, raw := p.get(c.path)
		text := strings.NewReplacer("&#34;x&#34;", "“x”", `\"x\"`, "“x”").Replace(string(raw))
		if reply.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, without %q", c.path, reply.Status, c.want)
		}
	}
}

func TestImagesAreTheContentOfTheirAddress(t *testing.T) {
	p := newPlayground(t)
	path := "/img/" + p.key + "/1.2.3.4.5.png"
	first, raw := p.get(path)
	_, again := p.get(path)
	if !bytes.Equal(raw, again) || !strings.Contains(first.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("same URL: equal bytes %v, cached as %q", bytes.Equal(raw, again), first.Header.Get("Cache-Control"))
	}
	if _, other := p.get("/img/" + p.key + "/1.2.3.4.6.png"); bytes.Equal(raw, other) {
		t.Error("another code gives the same image")
	}
	small, err := png.Decode(bytes.NewReader(raw))
	if err != nil || small.Bounds() != image.Rect(0, 0, 64, 64) {
		t.Fatalf("%v, %v", small.Bounds(), err)
	}
	reply, large := p.get(path + "?x=4&download")
	big, err := png.Decode(bytes.NewReader(large))
	if err != nil || big.Bounds() != image.Rect(0, 0, 256, 256) || big.At(255, 3) != small.At(63, 0) {
		t.Errorf("at 4×: %v, %v", big.Bounds(), err)
	}
	if got := reply.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") {
		t.Errorf("Content-Disposition of a download: %q", got)
	}
	if byRun, _ := p.get("/img/" + handlertest.RunID + "/1.2.3.4.5.png"); strings.Contains(byRun.Header.Get("Cache-Control"), "immutable") {
		t.Error("a run's newest checkpoint changes, but its image is cached as immutable")
	}
}

type encoded struct {
	Index    int
	Classes  []int
	Codes    []int
	PSNR     float64
	Original string
	Said     string
}

func (p playground) encode(kind string, body []byte) (int, encoded, string) {
	p.t.Helper()
	reply, raw := p.ask("POST", "/api/play/"+p.key+"/encode", http.Header{"Content-Type": {kind}}, bytes.NewReader(body))
	var out encoded
	if reply.StatusCode == http.StatusOK {
		if err := json.Unmarshal(raw, &out); err != nil {
			p.t.Fatal(err)
		}
	}
	return reply.StatusCode, out, string(raw)
}

func TestEncodeByIndexFactorsChanceAndUpload(t *testing.T) {
	p := newPlayground(t)
	_, byIndex, _ := p.encode("application/json", []byte(`{"index":123456}`))
	body, _ := json.Marshal(map[string]any{"classes": byIndex.Classes})
	_, byFactors, _ := p.encode("application/json", body)
	if byFactors.Index != 123456 || fmt.Sprint(byFactors.Codes) != fmt.Sprint(byIndex.Codes) || len(byIndex.Codes) != p.m || byIndex.PSNR <= 0 {
		t.Errorf("%+v and %+v", byIndex, byFactors)
	}
	if status, _, raw := p.encode("application/json", []byte(`{"random":true}`)); status != 200 {
		t.Errorf("at random: %d %s", status, raw)
	}
	_, original := p.get(byIndex.Original)
	status, uploaded, raw := p.encode("image/png", original)
	if status != 200 || fmt.Sprint(uploaded.Codes) != fmt.Sprint(byIndex.Codes) || uploaded.Index != -1 || uploaded.Said != "" {
		t.Errorf("the original sent back: %d %s", status, raw)
	}
	kind, form := formWith(t, "image", original)
	if status, same, raw := p.encode(kind, form); status != 200 || fmt.Sprint(same.Codes) != fmt.Sprint(byIndex.Codes) {
		t.Errorf("as a form: %d %s", status, raw)
	}
	wide := image.NewGray(image.Rect(0, 0, 200, 100))
	var buf bytes.Buffer
	if err := png.Encode(&buf, wide); err != nil {
		t.Fatal(err)
	}
	if _, got, _ := p.encode("image/png", buf.Bytes()); !strings.Contains(got.Said, "centre square") || !strings.HasPrefix(got.Original, "data:image/png;base64,") {
		t.Errorf("%+v", got)
	}
}

func formWith(t *testing.T, name string, file []byte) (kind string, body []byte) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	part, err := w.CreateFormFile(name, "picture.png")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), buf.Bytes()
}

func TestEncodeRefusesWithASentence(t *testing.T) {
	p := newPlayground(t)
	var tenThousand bytes.Buffer
	if err := png.Encode(&tenThousand, image.NewGray(image.Rect(0, 0, 10_000, 8))); err != nil {
		t.Fatal(err)
	}
	var many bytes.Buffer
	if err := png.Encode(&many, image.NewGray(image.Rect(0, 0, 8192, 5000))); err != nil {
		t.Fatal(err)
	}
	noFileKind, noFile := formWith(t, "picture", []byte("x"))
	wholeKind, whole := formWith(t, "image", bytes.Repeat([]byte("x"), 100))
	for name, c := range map[string]struct {
		kind   string
		body   []byte
		status int
		want   string
	}{
		"not an image":    {"image/png", []byte("this is text"), 422, "nsupported format"},
		"10,000 wide":     {"image/png", tenThousand.Bytes(), 422, "10000 × 8 pixels"},
		"empty":           {"image/png", nil, 422, "empty"},
		"too large":       {"image/png", make([]byte, play.MaxUpload+1<<17), 413, "larger than"},
		"form without":    {noFileKind, noFile, 422, `no file named \"image\"`},
		"damaged form":    {"multipart/form-data", []byte("x"), 422, "form"},
		"form cut off":    {wholeKind, whole[:len(whole)-20], 422, "the upload is incomplete"},
		"no form at all":  {"multipart/form-data; boundary=x", []byte("zz"), 422, "the upload is incomplete"},
		"too many pixels": {"image/png", many.Bytes(), 422, "8192 × 5000 pixels; choose one of at most 8192 on each side and 40 million"},
		"two ways":        {"application/json", []byte(`{"index":3,"random":true}`), 422, "one of index, classes and random"},
		"beyond the end":  {"application/json", []byte(`{"index":480000}`), 422, "choose 0–479999"},
		"negative":        {"application/json", []byte(`{"index":-1}`), 422, "choose 0–479999"},
		"factor too high": {"application/json", []byte(`{"classes":[0,0,0,0,4,0]}`), 422, "class 4 of shape"},
		"factor missing":  {"application/json", []byte(`{"classes":[0,0]}`), 422, "one class per factor"},
		"nothing named":   {"application/json", []byte(`{}`), 422, "give one of index, classes"},
		"not JSON":        {"application/json", []byte(`{"index":`), 422, "JSON"},
		"unknown key":     {"application/json", []byte(`{"indx":3}`), 422, "indx"},
	} {
		if status, _, raw := p.encode(c.kind, c.body); status != c.status || !strings.Contains(raw, c.want) {
			t.Errorf("%s: %d %.200s, want %d with %q", name, status, raw, c.status, c.want)
		}
	}
}

func TestUploadByFormWithoutScripts(t *testing.T) {
	p := newPlayground(t)
	_, original := p.get("/api/play/" + p.key + "/original.png?index=777")
	kind, body := formWith(t, "image", original)
	reply, _ := p.ask("POST", "/play/"+p.key+"/upload?side=b&a=5&b=6&codes=1.2.3.4.5", http.Header{"Content-Type": {kind}}, bytes.NewReader(body))
	where, err := url.Parse(reply.Header.Get("Location"))
	if err != nil || reply.StatusCode != http.StatusSeeOther || where.Query().Get("b") != "" || where.Query().Get("bcodes") == "" || where.Query().Get("codes") != "1.2.3.4.5" {
		t.Fatalf("%s to %v, %v", reply.Status, where, err)
	}
	if got := p.page(where.String()).Find(testID("play-slot-b-0")).AttrOr("data-code", ""); !strings.HasPrefix(where.Query().Get("bcodes"), got+".") {
		t.Errorf("row B starts with %s", got)
	}
}

func TestPaletteSwapsCheckAndUsage(t *testing.T) {
	p := newPlayground(t)
	api := "/api/play/" + p.key
	var usage struct {
		State string
		Usage play.Usage
	}
	for usage.State != "ready" {
		reply, raw := p.get(api + "/usage")
		if reply.StatusCode != 200 && reply.StatusCode != 202 {
			t.Fatalf("%s %s", reply.Status, raw)
		}
		if err := json.Unmarshal(raw, &usage); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	var palette struct {
		Images, Total int
		Entries       []struct {
			Code, Count int
			Unseen      bool
			Distance    float64
			Image       string
		}
	}
	p.getJSON(api+"/palette?codes=1.2.3.4.5&slot=2&limit=5", &palette)
	if len(palette.Entries) != 5 || palette.Total != 12 || palette.Images != play.UsageImages {
		t.Fatalf("%+v", palette)
	}
	for i, e := range palette.Entries {
		if i > 0 && e.Count > palette.Entries[i-1].Count {
			t.Errorf("entry %d is used more than the previous one", i)
		}
		if want := fmt.Sprintf("/img/%s/1.2.%d.4.5.png", p.key, e.Code); e.Image != want || e.Count != usage.Usage.Counts[2][e.Code] || e.Unseen != (e.Count == 0) {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
	p.getJSON(api+"/palette?codes=1.2.3.4.5&slot=2&sort=distance", &palette)
	if palette.Entries[0].Code != 3 || palette.Entries[0].Distance != 0 {
		t.Errorf("nearest to code 3 is %+v", palette.Entries[0])
	}
	p.getJSON(api+"/palette?codes=1.2.3.4.5&slot=2&sort=id&filter=unseen", &palette)
	for _, e := range palette.Entries {
		if !e.Unseen {
			t.Errorf("%+v is not unseen", e)
		}
	}
	var swaps struct {
		Swaps, Strip []struct {
			Slot    int
			Codes   []int
			Changed float64
		}
	}
	p.getJSON(api+"/swaps?codes=1.2.3.4.5&bcodes=1.7.3.4.6&order=4.3.2.1.0", &swaps)
	if len(swaps.Swaps) != 5 || len(swaps.Strip) != 6 || swaps.Swaps[0].Changed != 0 || fmt.Sprint(swaps.Strip[5].Codes) != "[1 7 3 4 6]" || swaps.Strip[1].Slot != 4 {
		t.Errorf("%+v", swaps)
	}
	if reply, raw := p.get(api + "/truth?a=0&b=1&slots=x"); reply.StatusCode != 422 || !strings.Contains(string(raw), "slots=7.8") {
		t.Errorf("the truth of slots x: %s %s", reply.Status, raw)
	}
	if reply, raw := p.get(api + "/truth?a=0&b=1&slots=99"); reply.StatusCode != 422 || !strings.Contains(string(raw), "slot 99 does not exist") {
		t.Errorf("the truth of slot 99: %s %s", reply.Status, raw)
	}
	var check struct {
		Again []int
		Kept  int
	}
	p.getJSON(api+"/check?codes=1.2.3.4.5", &check)
	if len(check.Again) != p.m || check.Kept < 0 || check.Kept > p.m {
		t.Errorf("%+v", check)
	}
	var list struct{ Checkpoints []play.Source }
	p.getJSON("/api/play", &list)
	if n := len(list.Checkpoints); n == 0 || list.Checkpoints[n-1].Key != p.key || list.Checkpoints[n-1].Title != "First light" {
		t.Errorf("%+v", list)
	}
}

// A model with real-valued slots works like the others: its codes represent numbers, which the page, the palette and the download show.
func TestRealNumbersPlay(t *testing.T) {
	p := playgroundOf(t, "betavae")
	api := "/api/play/" + p.key
	var about struct {
		K        int
		Discrete bool
	}
	p.getJSON(api, &about)
	if about.Discrete || about.K != 2049 {
		t.Errorf("%+v", about)
	}
	reply, raw := p.get("/play/" + p.key + "?a=3&b=7&codes=1024.1040.928.1024.0")
	for _, want := range []string{"β-VAE", `"+0.25: A, slot 1"`, `"-1.50: A, slot 2"`, `data-code="928"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s: the page lacks %q", reply.Status, want)
		}
	}
	var palette struct {
		Total   int
		Entries []struct {
			Code, Count int
			Text, Image string
		}
	}
	p.getJSON(api+"/palette?codes=1024.1040.928.1024.0&slot=1&sort=id&limit=64", &palette)
	if palette.Total < 1 || len(palette.Entries) != palette.Total {
		t.Fatalf("%+v", palette)
	}
	for i, e := range palette.Entries {
		value := (float64(e.Code) - 1024) / 64
		if shown, err := strconv.ParseFloat(e.Text, 64); err != nil || shown != value || value != math.Round(4*value)/4 {
			t.Errorf("code %d is shown as %q and represents %v", e.Code, e.Text, value)
		}
		if i > 0 && e.Code != palette.Entries[i-1].Code+16 {
			t.Errorf("code %d follows %d", e.Code, palette.Entries[i-1].Code)
		}
	}
	if reply, _ := p.get(palette.Entries[0].Image); reply.StatusCode != 200 {
		t.Errorf("%s: %s", palette.Entries[0].Image, reply.Status)
	}
	var state struct{ Values, BValues []float64 }
	p.getJSON(api+"/codes.json?codes=1024.1040.928.1024.0&b=7", &state)
	if fmt.Sprint(state.Values) != "[0 0.25 -1.5 0 -16]" || len(state.BValues) != p.m {
		t.Errorf("%+v", state)
	}
	var check struct {
		Again, Moved []int
		Kept         int
	}
	p.getJSON(api+"/check?codes=1024.1024.1024.1024.2048", &check)
	if len(check.Again) != p.m || check.Kept+len(check.Moved) != p.m || len(check.Moved) == 0 || check.Moved[len(check.Moved)-1] != 4 {
		t.Errorf("an untrained encoder preserves +16: %+v", check)
	}
	if reply, raw := p.get("/img/" + p.key + "/1024.1040.928.1024.2049.png"); reply.StatusCode != 422 || !strings.Contains(string(raw), "codes 0–2048") {
		t.Errorf("%s %s", reply.Status, raw)
	}
}

func TestDecodeAnswersPNG(t *testing.T) {
	p := newPlayground(t)
	ask := func(body string) (int, string) {
		reply, raw := p.ask("POST", "/api/play/"+p.key+"/decode", http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body))
		return reply.StatusCode, string(raw)
	}
	if status, raw := ask(`{"codes":[[1,2,3,4,5],[1,2,3,4,6]]}`); status != 200 || strings.Count(raw, "data:image/png;base64,") != 2 {
		t.Errorf("%d %.100s", status, raw)
	}
	for body, want := range map[string]string{`{"codes":[]}`: "1–64", `{"codes":[[1,2,3,4,12]]}`: "code 12", `{"codes":[` + strings.Repeat(`[1,2,3,4,5],`, 64) + `[1,2,3,4,5]]}`: "65 code tuples"} {
		if status, raw := ask(body); status != 422 || !strings.Contains(raw, want) {
			t.Errorf("%.40s: %d %s", body, status, raw)
		}
	}
}

func TestDownloads(t *testing.T) {
	p := newPlayground(t)
	api, q := "/api/play/"+p.key, "?a=5&b=6&codes=1.2.3.4.5&order=4.3.2.1.0"
	reply, raw := p.get(api + "/sheet.png" + q)
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil || reply.StatusCode != 200 {
		t.Errorf("sheet: %s, %v", reply.Status, err)
	}
	_, raw = p.get(api + "/strip.gif" + q)
	film, err := gif.DecodeAll(bytes.NewReader(raw))
	if err != nil || len(film.Image) != p.m+1 {
		t.Errorf("film: %v", err)
	}
	var codes struct {
		Checkpoint, Address string
		A, B                int
		Codes, BCodes       []int
		Order               []int
	}
	p.getJSON(api+"/codes.json"+q, &codes)
	if codes.Checkpoint != p.key || codes.A != 5 || fmt.Sprint(codes.Codes, codes.Order) != "[1 2 3 4 5] [4 3 2 1 0]" {
		t.Errorf("%+v", codes)
	}
	if reply, _ := p.get(codes.Address); reply.StatusCode != 200 {
		t.Errorf("%s: %s", codes.Address, reply.Status)
	}
}

func (p playground) dial() *websocket.Conn {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	conn, reply, err := websocket.DefaultDialer.DialContext(ctx, "ws"+strings.TrimPrefix(p.url, "http")+"/ws/play/"+p.key, nil)
	if err != nil {
		p.t.Fatalf("%v: %+v", err, reply)
	}
	p.t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func TestSocketSendsPixelsWithTheirNumber(t *testing.T) {
	p := newPlayground(t)
	conn := p.dial()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"seq":77,"codes":[[1,2,3,4,5],[0,0,0,0,0]]}`)); err != nil {
		t.Fatal(err)
	}
	kind, body, err := conn.ReadMessage()
	if err != nil || kind != websocket.BinaryMessage || len(body) != 12+2*64*64*3 {
		t.Fatalf("kind %d, %d bytes, %v", kind, len(body), err)
	}
	if seq, count, h, w, c := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint16(body[4:]), binary.LittleEndian.Uint16(body[6:]), binary.LittleEndian.Uint16(body[8:]), binary.LittleEndian.Uint16(body[10:]); seq != 77 || count != 2 || h != 64 || w != 64 || c != 3 {
		t.Errorf("header %d %d %d %d %d", seq, count, h, w, c)
	}
	_, raw := p.get("/img/" + p.key + "/1.2.3.4.5.png")
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for at := range 64 * 64 {
		r, g, b, _ := img.At(at%64, at/64).RGBA()
		if got := body[12+3*at : 15+3*at]; uint32(got[0]) != r>>8 || uint32(got[1]) != g>>8 || uint32(got[2]) != b>>8 {
			t.Fatalf("pixel %d is %v over the socket, %d %d %d by URL", at, got, r>>8, g>>8, b>>8)
		}
	}
}

func TestSocketAnswersNonsenseWithASentenceAndGoesOn(t *testing.T) {
	p := newPlayground(t)
	conn := p.dial()
	for _, c := range []struct{ message, seq, want string }{
		{"hello", "0", "not valid JSON"},
		{`{"seq":1,"codes":`, "0", "not valid JSON"},
		{`{"seq":2,"codes":[]}`, "2", "got 0 code tuples"},
		{`{"seq":3,"codes":[[1,2,3]]}`, "3", "got 3 codes; this checkpoint has 5 slots"},
		{`{"seq":4,"codes":[[1,2,3,4,12]]}`, "4", "slot 4: code 12"},
		{`{"seq":5,"codes":[[1,2,3,4,5]],"lane":"fast"}`, "5", "lane"},
		{`{"seq":6,"codes":[[` + strings.Repeat("1,", 1<<20) + `1]]}`, "0", "too large (limit 65536 bytes)"},
		{strings.Repeat("[", 60_000), "0", "not valid JSON"},
	} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(c.message)); err != nil {
			t.Fatal(err)
		}
		kind, body, err := conn.ReadMessage()
		if err != nil || kind != websocket.TextMessage || !strings.Contains(string(body), c.want) || !strings.Contains(string(body), `"seq":`+c.seq) {
			t.Fatalf("%.80s: kind %d %s %v", c.message, kind, body, err)
		}
	}
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"seq":9,"codes":[[1,2,3,4,5]]}`)); err != nil {
		t.Fatal(err)
	}
	if kind, _, err := conn.ReadMessage(); err != nil || kind != websocket.BinaryMessage {
		t.Errorf("after invalid messages: kind %d, %v", kind, err)
	}
}

func TestSocketLatestWinsInItsLane(t *testing.T) {
	p := newPlayground(t)
	conn := p.dial()
	const last = 200
	send := func(seq int, lane string) {
		codes := make([]string, 30)
		for i := range codes {
			codes[i] = fmt.Sprintf("[%d,%d,%d,%d,1]", seq%12, seq/12%12, i%12, i/12)
		}
		message := fmt.Sprintf(`{"seq":%d,"lane":%q,"codes":[%s]}`, seq, lane, strings.Join(codes, ","))
		if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	send(1000, "strip")
	for seq := 1; seq <= last; seq++ {
		send(seq, "held")
	}
	answered, before := map[uint32]bool{}, uint32(0)
	for !answered[last] || !answered[1000] {
		_, body, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("%v after %d replies", err, len(answered))
		}
		seq := binary.LittleEndian.Uint32(body)
		if seq != 1000 && seq <= before {
			t.Errorf("reply %d came after %d", seq, before)
		}
		if seq != 1000 {
			before = seq
		}
		answered[seq] = true
	}
	if len(answered) > last/2 {
		t.Errorf("%d of %d requests got a reply, although each replaced the previous one", len(answered), last)
	}
}

func TestSocketRefusesOtherSitesAndUnknownCheckpoints(t *testing.T) {
	p := newPlayground(t)
	ws := "ws" + strings.TrimPrefix(p.url, "http") + "/ws/play/"
	for path, c := range map[string]struct {
		origin string
		status int
	}{p.key: {"http://elsewhere.example", 403}, "ffffffffffffffff": {p.url, 404}} {
		_, reply, err := websocket.DefaultDialer.Dial(ws+path, http.Header{"Origin": {c.origin}})
		if err == nil || reply == nil || reply.StatusCode != c.status {
			t.Errorf("%s from %s: %v, %+v", path, c.origin, err, reply)
		}
	}
}
