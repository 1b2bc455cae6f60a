//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"slotscope/model/expect"
)

// document is the part of an OpenAPI document that the test reads.
type document struct {
	OpenAPI string
	Missing string `json:"x-missing"`
	Paths   map[string]map[string]struct {
		Tags      []string
		Example   string `json:"x-example"`
		Responses map[string]struct {
			Content map[string]struct{ Schema any }
		}
	}
}

// TestOpenAPI checks that every route of the API is documented, that every documented route exists, and that responses of a new server
// match their schemas.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := started(t, command(t, "serve", "--addr", "127.0.0.1:0", "--data", dir), dir) // with the shipped runs
	var doc document
	raw := s.want(200, "GET", "/openapi.json", nil, &doc)
	if doc.OpenAPI != "3.1.0" || doc.Missing != "" {
		t.Errorf("OpenAPI %s; %q is documented but not a route", doc.OpenAPI, doc.Missing)
	}
	schemas := compiler(t, raw)
	tried := 0
	for path, operations := range doc.Paths {
		for method, o := range operations {
			if len(o.Tags) != 1 || o.Tags[0] == "Pages" && (strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/img/")) {
				t.Errorf("%s %s is not documented in handlers/docs/operations.go", method, path)
			}
			if o.Example == "" || !expect.All() {
				continue
			}
			tried++
			for media, content := range o.Responses["200"].Content {
				s.validates(t, schemas, path, method, o.Example, media, content.Schema != nil)
			}
		}
	}
	if expect.All() && tried < 45 {
		t.Errorf("only %d responses were checked", tried)
	}
	wrong := schemas("/components/schemas/Error")
	for _, path := range []string{"/api/runs/none", "/api/datasets/none", "/api/play/none", "/api/runs?q=((", "/api/report/none.txt?runs=x"} {
		status, answer := s.call("GET", path, nil, nil)
		if err := wrong.Validate(parsed(t, answer)); err != nil || status < 400 {
			t.Errorf("%s: %d, %v", path, status, err)
		}
	}
	if schemas("/components/schemas/Run").Validate(parsed(t, `{"id": 7}`)) == nil {
		t.Error("the schema accepts anything")
	}
}

// validates requests an example and checks the response against its schema.
func (s *site) validates(t *testing.T, schemas func(string) *jsonschema.Schema, path, method, example, media string, typed bool) {
	t.Helper()
	var resp *http.Response
	var answer []byte
	await(t, example+" returns 200", func() bool {
		var err error
		if resp, err = http.Get(s.url + example); err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if answer, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode != 202 // 202: still being computed
	})
	if resp.StatusCode != 200 {
		t.Errorf("%s: %d %.200s", example, resp.StatusCode, answer)
		return
	}
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); kind != media && media != "application/octet-stream" {
		t.Errorf("%s is %s, documented as %s", example, kind, media)
	}
	if !typed {
		return
	}
	at := "/paths/" + strings.ReplaceAll(strings.ReplaceAll(path, "~", "~0"), "/", "~1") + "/" + method + "/responses/200/content/application~1json/schema"
	if err := schemas(at).Validate(parsed(t, string(answer))); err != nil {
		t.Errorf("%s: %v\n%.600s", example, err, answer)
	}
}

// compiler returns a function that compiles a schema in the document by JSON pointer.
func compiler(t *testing.T, raw string) func(pointer string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("https://slotscope/openapi.json", parsed(t, raw)); err != nil {
		t.Fatal(err)
	}
	return func(pointer string) *jsonschema.Schema {
		t.Helper()
		schema, err := c.Compile("https://slotscope/openapi.json#" + pointer)
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil || !json.Valid([]byte(text)) {
		t.Fatalf("%v in %.200s", err, text)
	}
	return v
}
