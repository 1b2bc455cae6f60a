package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"slotscope/handlers/measure"
)

// posted sends files and fields as a browser's form does.
func posted(t *testing.T, address string, fields map[string]string, files ...string) (code int, body string) {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for name, value := range fields {
		w.WriteField(name, value)
	}
	for _, path := range files {
		part, err := w.CreateFormFile("file", filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		part.Write(content)
	}
	w.Close()
	router := chi.NewRouter()
	measure.Tables{}.Routes(router)
	r, answer := httptest.NewRequest("POST", address, &form), httptest.NewRecorder()
	r.Header.Set("Content-Type", w.FormDataContentType())
	router.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}

// csvTable writes a table with two slots that encode two factors, with some errors, and one unrelated slot.
func csvTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("mu_0,mu_1,mu_2,hue,shape\n")
	for i := range 240 {
		hue, shape := i%3, i/3%4
		fmt.Fprintf(&b, "%d,%d,%d,%s,%d\n", hue, (shape+i/200)%4, i%7, []string{"red", "green", "blue"}[hue], shape)
	}
	path := filepath.Join(t.TempDir(), "mine.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMetricsAreTheSameEverywhere checks that the command line, the API and the page give the same scores for a file.
func TestMetricsAreTheSameEverywhere(t *testing.T) {
	path := csvTable(t)
	code, out, stderr := called(t, "metrics", path, "--latents", "mu", "--factors", "hue,shape", "--trees", "3", "--json")
	if code != done {
		t.Fatal(stderr)
	}
	fields := map[string]string{"latents": "mu", "factors": "hue,shape", "trees": "3"}
	status, body := posted(t, "/api/metrics", fields, path)
	var line, api map[string]any
	if err := json.Unmarshal([]byte(out), &line); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body), &api); err != nil || status != 200 {
		t.Fatal(status, body)
	}
	if d := cmp.Diff(line, api); d != "" {
		t.Error(d)
	}
	status, page := posted(t, "/measure", fields, path)
	scores := line["field"].(map[string]any)["scores"].(map[string]any)
	for _, v := range []any{line["infom"], line["infoe"], line["infoc"], line["infoe_heldout"], scores["mig"], scores["sap"], scores["infom_adj"]} {
		if text := fmt.Sprintf("%.3f", v); status != 200 || !strings.Contains(page, ">"+text+"<") {
			t.Errorf("%d: the page lacks %s", status, text)
		}
	}
	if !strings.Contains(page, "Scores of mine.csv") || !strings.Contains(page, "240 rows, 3 latents, 2 factors") {
		t.Error("the page does not name the file and its size")
	}
}

func TestMetricsRefusesForms(t *testing.T) {
	good, bad := csvTable(t), filepath.Join(t.TempDir(), "model.pkl")
	if err := os.WriteFile(bad, []byte("pickle"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		fields map[string]string
		files  []string
	}{
		"choose one file, or two":                               {nil, nil},
		`model.pkl: unsupported format; supported: .json, .npz`: {nil, []string{bad}},
		"more than two files":                                   {nil, []string{good, good, good}},
		`no array "q"; available: ["mu_0"`:                      {map[string]string{"latents": "q"}, []string{good}},
		`got "0"; enter a whole number from 1 to 1000`:          {map[string]string{"trees": "0"}, []string{good}},
		`got "letters"; choose found, codes or numbers`:         {map[string]string{"as": "letters"}, []string{good}},
		`got "x"; enter a whole number`:                         {map[string]string{"seed": "x"}, []string{good}},
	} {
		status, body := posted(t, "/api/metrics", c.fields, c.files...)
		var said struct{ Error string }
		if err := json.Unmarshal([]byte(body), &said); err != nil || status != 422 || !strings.Contains(strings.ToLower(said.Error), strings.ToLower(want)) || strings.Contains(said.Error, os.TempDir()) {
			t.Errorf("%d %s, want %q", status, body, want)
		}
		if status, page := posted(t, "/measure", c.fields, c.files...); status != 422 || !strings.Contains(page, `data-testid="table-problem"`) {
			t.Errorf("the page responds with %d without an error message", status)
		}
	}
	router, answer := chi.NewRouter(), httptest.NewRecorder()
	measure.Tables{}.Routes(router)
	router.ServeHTTP(answer, httptest.NewRequest("POST", "/api/metrics", strings.NewReader("{}")))
	if answer.Code != 422 || !strings.Contains(answer.Body.String(), "multipart/form-data") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
