package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/go-chi/chi/v5"

	"slotscope/jobs"
	"slotscope/model/data"
)

// ownFile writes a user's dataset as a NumPy archive: images of gappy's tuples, image i with brightness 40·i.
func ownFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	var images, labels bytes.Buffer
	for i, tuple := range gappyTuples {
		images.Write(bytes.Repeat([]byte{byte(40 * i)}, 64*64*3))
		for _, c := range tuple {
			binary.Write(&labels, binary.LittleEndian, int64(c))
		}
	}
	member := func(name, descr, shape string, b []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
		header += strings.Repeat(" ", 118-len(header)-1) + "\n"
		w.Write([]byte("\x93NUMPY\x01\x00"))
		binary.Write(w, binary.LittleEndian, uint16(len(header)))
		w.Write([]byte(header))
		w.Write(b)
	}
	member("images.npy", "|u1", "(5, 64, 64, 3)", images.Bytes())
	member("labels.npy", "<i8", "(5, 2)", labels.Bytes())
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// sendTo returns the response to a request with a body to the dataset routes; outside /api/ the body is a form.
func sendTo(t *testing.T, catalogue DatasetCatalogue, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := chi.NewRouter()
	Datasets{Catalogue: catalogue}.Routes(r)
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	if !strings.HasPrefix(path, "/api/") {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, request)
	return w
}

// settled waits until a dataset's state is final.
func settled(t *testing.T, sets DatasetCatalogue, name string) data.Entry {
	t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		if e, err := sets.Entry(context.Background(), name); err == nil && !e.State.Moving() {
			return e
		}
	}
	t.Fatalf("%s is still being added", name)
	return data.Entry{}
}

// TestDamagedPicture skips a damaged image on request, over the page and the API.
func TestDamagedPicture(t *testing.T) {
	var good bytes.Buffer
	if err := png.Encode(&good, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	folder := func(name string) string {
		dir := filepath.Join(t.TempDir(), name)
		err := os.Mkdir(dir, 0o700)
		for i := range 5 {
			content := good.Bytes()
			if i == 3 {
				content = content[:50]
			}
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.png", i)), content, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	sets := builtIn(t)
	sendTo(t, sets, "POST", "/datasets", url.Values{"from": {folder("own")}}.Encode())
	if e := settled(t, sets, "own"); e.State != data.Failed {
		t.Fatalf("state %s", e.State)
	}
	for _, page := range []string{"/datasets", "/datasets/own"} {
		doc := dom(t, ask(t, sets, page))
		form := doc.Find(part("skip-broken")).Closest("form")
		if to := form.AttrOr("action", ""); to != "/datasets/own/add" || form.Find("input[name=skip_broken]").Length() != 1 || !strings.Contains(doc.Find(part("reason")).Text(), "3.png") {
			t.Errorf("%s: the form posts to %q", page, to)
		}
	}
	sendTo(t, sets, "POST", "/datasets/own/add", "")
	if e := settled(t, sets, "own"); e.State != data.Failed {
		t.Fatalf("after a retry: state %s", e.State)
	}
	sendTo(t, sets, "POST", "/datasets/own/add", "skip_broken=1")
	if e := settled(t, sets, "own"); e.State != data.Ready || e.Info.Len != 4 || !strings.Contains(e.Info.Note, "3.png") {
		t.Fatalf("without the image: state %s: %s %+v", e.State, e.Reason, e.Info)
	}
	body := fmt.Sprintf(`{"from": %q, "name": "other", "skip_broken": true}`, folder("own"))
	if w := sendTo(t, sets, "POST", "/api/datasets", body); w.Code != http.StatusAccepted {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	if e := settled(t, sets, "other"); e.State != data.Ready || e.Info.Len != 4 {
		t.Errorf("over the API: state %s: %s", e.State, e.Reason)
	}
}

// TestAddByForm adds a user's file, browses it, selects a part of it, and removes it.
func TestAddByForm(t *testing.T) {
	sets, path := builtIn(t), ownFile(t)
	w := sendTo(t, sets, "POST", "/datasets", url.Values{"from": {path}}.Encode())
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/datasets#own" {
		t.Fatalf("adding: %d to %q\n%s", w.Code, w.Header().Get("Location"), w.Body)
	}
	if e := settled(t, sets, "own"); e.State != data.Ready {
		t.Fatalf("state %s: %s", e.State, e.Reason)
	}
	card := dom(t, ask(t, sets, "/datasets")).Find("#own").Text()
	for _, want := range []string{"5 images · 64 × 64 × 3 · 2 factors", "read in place from " + path, "Remove own"} {
		if !strings.Contains(card, want) {
			t.Errorf("its card lacks %q: %s", want, card)
		}
	}
	if got := pixels(t, ask(t, sets, "/api/datasets/own/images/3.png")); got[0] != 120 {
		t.Errorf("brightness of image 3: %d", got[0])
	}
	w = ask(t, sets, "/datasets/own/part?select="+url.QueryEscape("factor_1=0, 2"))
	if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/datasets/own%5Bfactor_1=0%2C2%5D" {
		t.Fatalf("a part: %d to %q", w.Code, to)
	}
	doc := dom(t, ask(t, sets, w.Header().Get("Location")))
	if text := doc.Find(part("part-of")).Text(); !strings.Contains(text, "factor_1=0,2") || doc.Find(part("rest")).Text() != "own[not(factor_1=0,2)]" {
		t.Errorf("text of the part's page: %q", text)
	}
	doc = dom(t, ask(t, sets, "/datasets/own/part?select=factor_9%3D1"))
	if text := doc.Find(part("select-error")).Text(); !strings.Contains(text, `Own has no factor "factor_9"; it has factor_0, factor_1.`) || doc.Find(part("select")).AttrOr("value", "") != "factor_9=1" {
		t.Errorf("an unknown factor: %q", text)
	}
	if w := sendTo(t, sets, "POST", "/datasets/own/remove", ""); w.Code != http.StatusSeeOther {
		t.Fatalf("removing: %d %s", w.Code, w.Body)
	}
	if w := ask(t, sets, "/datasets/own"); w.Code != http.StatusNotFound {
		t.Errorf("page of the removed dataset: status %d", w.Code)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("removing it deleted the user's file: %v", err)
	}
}

// TestAddFormSaysWhatIsWrong checks that errors appear beside the field and that the form keeps its input.
func TestAddFormSaysWhatIsWrong(t *testing.T) {
	sets := builtIn(t)
	text := filepath.Join(t.TempDir(), "notes.txt")
	os.WriteFile(text, []byte("nothing of the kind"), 0o644)
	for _, c := range []struct{ from, name, field, says string }{
		{"/no/where", "", "from-error", "There is no file or folder /no/where on this machine."},
		{text, "", "from-error", "neither a published dataset"},
		{"", "", "from-error", "give a path or a URL"},
		{text, "../up", "name-error", "cannot name a dataset"},
		{"shapes3d-synthetic[shape=cube]", "", "name-error", "Choose a name"},
		{"shapes3d-synthetic[shape", "x", "from-error", "does not end with a selection"},
		{text, "shapes3d-synthetic", "from-error", "neither a published dataset"},
	} {
		w := sendTo(t, sets, "POST", "/datasets", url.Values{"from": {c.from}, "name": {c.name}}.Encode())
		doc := dom(t, w)
		if got := doc.Find(part(c.field)).Text(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(got, c.says) {
			t.Errorf("%q, %q: %d, %q", c.from, c.name, w.Code, got)
		}
		if got := doc.Find(part("add-from")).AttrOr("value", ""); got != c.from {
			t.Errorf("input %q, form has %q", c.from, got)
		}
	}
}

// npzFile writes an archive of NumPy arrays of bytes.
func npzFile(t *testing.T, arrays map[string]string, content map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.npz")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, shape := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': %s, }\n", shape)
		w.Write(append([]byte{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, byte(len(header)), 0}, header...))
		w.Write(content[name])
	}
	if err := errors.Join(z.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPreview shows what adding a file would give, with the form's options, without adding it.
func TestPreview(t *testing.T) {
	sets := builtIn(t)
	path := npzFile(t, map[string]string{"train": "(3, 32, 64)", "test": "(2, 32, 64)", "size": "(3,)", "note": "(5,)"}, map[string][]byte{
		"train": bytes.Repeat([]byte{200}, 3*32*64), "test": make([]byte, 2*32*64), "size": {1, 2, 9}, "note": make([]byte, 5),
	})
	get := func(fields ...string) (*httptest.ResponseRecorder, *goquery.Document) {
		q := url.Values{"from": {path}}
		for i := 0; i < len(fields); i += 2 {
			q.Set(fields[i], fields[i+1])
		}
		w := ask(t, sets, "/datasets?"+q.Encode())
		return w, dom(t, w)
	}
	w, doc := get()
	if text := doc.Find(part("images-error")).Text(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(text, "2 arrays of ") || !strings.Contains(text, "train, 3 × 32 × 64 of uint8") {
		t.Errorf("%d, %q beside images", w.Code, text)
	}
	if _, open := doc.Find(part("reading")).Attr("open"); !open || doc.Find(part("previewed")).Length() != 0 {
		t.Error("the options are hidden, or there is a preview")
	}
	w, doc = get("images", "train", "orientation", "nwh", "name", "mine")
	page := doc.Find(part("previewed"))
	for name, want := range map[string]string{
		"preview-scaling": "Images are scaled from 32 × 64 to 64 × 64", "preview-orientation": "nwh: images × columns × rows",
		"preview-used": "images: train, 3 × 32 × 64 of uint8", "preview-unused": "test, 2 × 32 × 64 of uint8", "preview-factors": "size: 3 values (1, 2, 9)",
	} {
		if got := strings.Join(strings.Fields(page.Find(part(name)).Text()), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	encoded, found := strings.CutPrefix(page.Find("img").AttrOr("src", ""), "data:image/png;base64,")
	sheet, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !found {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(sheet))
	if err != nil || img.Bounds() != image.Rect(0, 0, 3*64, 64) {
		t.Fatalf("the sheet: %v, %v", img.Bounds(), err)
	}
	if r, g, b, _ := img.At(100, 30).RGBA(); w.Code != http.StatusOK || r>>8 != 200 || g != r || b != r {
		t.Errorf("%d, a pixel of the sheet is %d, %d, %d", w.Code, r>>8, g>>8, b>>8)
	}
	for name, want := range map[string]string{"add-from": path, "add-name": "mine", "add-images": "train", "add-orientation": "nwh"} {
		if got := doc.Find(part(name)).AttrOr("value", ""); got != want {
			t.Errorf("%s keeps %q", name, got)
		}
	}
	if files, _ := os.ReadDir(sets.Dir); len(files) != 0 {
		t.Errorf("the preview wrote %v", files)
	}
	for _, c := range []struct{ field, value, error, says string }{
		{"images", "none", "images-error", `no array "none"`}, {"labels", "none,x", "labels-error", "no array"}, {"scale", "9..1", "scale-error", "not a range"},
		{"orientation", "nhwc", "orientation-error", "does not name the 3 axes"}, {"from", "/no/where", "from-error", "no file or folder /no/where"},
		{"from", "https://example.org/own.npz", "from-error", "on this machine can be previewed"},
	} {
		w, doc := get("images", "train", c.field, c.value)
		if got := doc.Find(part(c.error)).Text(); w.Code != http.StatusUnprocessableEntity || !strings.Contains(got, c.says) {
			t.Errorf("%s=%s: %d, %q", c.field, c.value, w.Code, got)
		}
	}
	// adding with the same fields reads the same
	w = sendTo(t, sets, "POST", "/datasets", url.Values{"from": {path}, "images": {"train"}, "labels": {"size"}, "orientation": {"nwh"}}.Encode())
	if e := settled(t, sets, "own"); w.Code != http.StatusSeeOther || e.State != data.Ready || e.Info.Len != 3 || e.Info.Factors[0].Name != "size" {
		t.Errorf("%d, %+v", w.Code, e)
	}
}

// TestPreviewIsLimited: a preview reveals nothing outside the folders that datasets can be added from.
func TestPreviewIsLimited(t *testing.T) {
	dir := t.TempDir()
	adding := jobs.NewDatasets(data.Catalogue{Dir: dir, Limits: data.Limits{Roots: []string{dir}, Public: true}}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { adding.Close() })
	inside, outside := filepath.Join(dir, "own.npz"), ownFile(t)
	content, err := os.ReadFile(outside)
	if err := errors.Join(err, os.WriteFile(inside, content, 0o600), os.Symlink(outside, filepath.Join(dir, "link.npz"))); err != nil {
		t.Fatal(err)
	}
	for from, says := range map[string]string{
		outside: "outside the folders", "/no/where": "outside the folders", filepath.Join(dir, "link.npz"): "outside the folders", "../own.npz": "leads out of the data folder",
		"http://127.0.0.1/own.npz": "127.0.0.1",
	} {
		doc := dom(t, ask(t, adding, "/datasets?from="+url.QueryEscape(from)))
		if got := doc.Find(part("from-error")).Text(); !strings.Contains(got, says) || doc.Find(part("previewed")).Length() != 0 {
			t.Errorf("%s: %q", from, got)
		}
	}
	if w := ask(t, adding, "/datasets?from=own.npz"); w.Code != http.StatusOK || dom(t, w).Find(part("previewed")).Length() != 1 {
		t.Errorf("a file inside: %d", w.Code)
	}
}

// TestFailedLeadsToOptions: the card of a file that cannot be read leads to the form with its path.
func TestFailedLeadsToOptions(t *testing.T) {
	sets := builtIn(t)
	path := npzFile(t, map[string]string{"a": "(1, 8, 8)", "b": "(1, 8, 8)"}, map[string][]byte{"a": make([]byte, 64), "b": make([]byte, 64)})
	sendTo(t, sets, "POST", "/datasets", url.Values{"from": {path}, "labels": {"none"}}.Encode())
	settled(t, sets, "own")
	to := dom(t, ask(t, sets, "/datasets")).Find("#own "+part("again")).AttrOr("href", "")
	address, err := url.Parse(to)
	if err != nil || address.Query().Get("from") != path || address.Query().Get("labels") != "none" || address.Fragment != "add" {
		t.Fatalf("the link is %q, %v", to, err)
	}
	doc := dom(t, ask(t, sets, to[:strings.Index(to, "#")]))
	if got := doc.Find(part("images-error")).Text(); !strings.Contains(got, "2 arrays of ") {
		t.Errorf("the form says %q", got)
	}
	w := sendTo(t, sets, "POST", "/datasets", url.Values{"from": {path}, "name": {"own"}, "labels": {"none"}, "images": {"b"}}.Encode())
	if e := settled(t, sets, "own"); w.Code != http.StatusSeeOther || e.State != data.Ready {
		t.Errorf("%d, %s: %s", w.Code, e.State, e.Reason)
	}
}

// TestStates checks the pages of a published dataset that is not added, found, and failed, with their actions.
func TestStates(t *testing.T) {
	t.Setenv(data.LayoutVariable, "")
	sets := builtIn(t)
	doc := dom(t, ask(t, sets, "/datasets"))
	entry := doc.Find("#shapes3d")
	text := strings.Join(strings.Fields(entry.Text()), " ")
	for _, want := range []string{"not added", "480,000 images", "3dshapes.h5", "267.6 MB", "Licence: Apache-2.0", "5.9 GB", "Download and add"} {
		if !strings.Contains(text, want) {
			t.Errorf("the entry of Shapes3D lacks %q: %s", want, text)
		}
	}
	if w := ask(t, sets, "/datasets/falcor3d"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "enter its path") {
		t.Errorf("the page of a dataset to download manually: %d", w.Code)
	}
	bad := filepath.Join(sets.Dir, "3dshapes.h5")
	os.WriteFile(bad, []byte("cut off"), 0o644)
	doc = dom(t, ask(t, sets, "/datasets"))
	if got := doc.Find("#shapes3d " + part("state")).Text(); got != "found" {
		t.Errorf("with a file of that name: state %q", got)
	}
	if w := sendTo(t, sets, "POST", "/datasets/shapes3d/add", ""); w.Code != http.StatusSeeOther {
		t.Fatalf("adding it: %d %s", w.Code, w.Body)
	}
	e := settled(t, sets, "shapes3d")
	doc = dom(t, ask(t, sets, "/datasets/shapes3d"))
	if got := doc.Find(part("reason")).Text(); e.State != data.Failed || !strings.Contains(got, "has 7 bytes, but the published file has 267573662") {
		t.Errorf("state %s, reason on its page %q", e.State, got)
	}
	if doc.Find(part("add")).Length() != 1 || doc.Find(part("remove")).Length() != 1 {
		t.Error("the page lacks a retry or a remove button")
	}
	if w := ask(t, sets, "/api/datasets/shapes3d/images/0.png"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "cannot be used") {
		t.Errorf("an image of it: %d %s", w.Code, w.Body)
	}
}

// TestAddByAPI does the same over JSON.
func TestAddByAPI(t *testing.T) {
	sets, path := builtIn(t), ownFile(t)
	body, _ := json.Marshal(map[string]string{"from": path, "name": "mine"})
	w := sendTo(t, sets, "POST", "/api/datasets", string(body))
	if w.Code != http.StatusAccepted || w.Header().Get("Location") != "/api/datasets/mine/state" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	settled(t, sets, "mine")
	var state struct {
		State, Kind string
		Paths       []string
		Work        struct{ Stage string }
	}
	if err := json.Unmarshal(ask(t, sets, "/api/datasets/mine/state").Body.Bytes(), &state); err != nil || state.State != "ready" || state.Kind != "in place" || state.Paths[0] != path {
		t.Errorf("%+v, %v", state, err)
	}
	var near struct {
		Index int
		Near  [][]int
	}
	if err := json.Unmarshal(ask(t, sets, "/api/datasets/mine/images/3.json?near=1").Body.Bytes(), &near); err != nil || fmt.Sprint(near.Near) != "[[0 3] [3 -1 4]]" {
		t.Errorf("around image 3: %+v, %v", near, err)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "/api/datasets", string(body), 409, "Dataset mine already exists"},
		{"POST", "/api/datasets", `{"from":"x","as":"y"}`, 422, "unknown field"},
		{"POST", "/api/datasets", `{"name":"falcor3d"}`, 422, "must be downloaded by hand"},
		{"POST", "/api/datasets/mine/stop", "", 409, "is not being added"},
		{"POST", "/api/datasets/none/stop", "", 404, `no dataset "none"`},
		{"DELETE", "/api/datasets/none", "", 404, `no dataset "none"`},
		{"DELETE", "/api/datasets/shapes3d-synthetic", "", 409, "part of the program"},
		{"DELETE", "/api/datasets/..%2Fruns", "", 422, "cannot name a dataset"},
		{"DELETE", "/api/datasets/mine", "", 204, ""},
		{"GET", "/api/datasets/mine/state", "", 404, "mine"},
	} {
		w := sendTo(t, sets, c.method, c.path, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), strings.ReplaceAll(c.says, `"`, `\"`)) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
}
