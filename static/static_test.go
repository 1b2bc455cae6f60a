package static

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/fstest"
)

func TestHashFollowsContent(t *testing.T) {
	a, err := open(fstest.MapFS{"run/a.js": {Data: []byte("one")}, "shared/a.css": {Data: []byte("one")}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(fstest.MapFS{"run/a.js": {Data: []byte("two")}, "run/b.js": {Data: []byte("import './a.js'")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.URL("run/a.js"); got != "/static/run/a.7692c3ad3540.js" { // sha256("one") starts with 7692c3ad3540
		t.Errorf("URL %s", got)
	}
	if a.URL("run/a.js") == b.URL("run/a.js") {
		t.Error("different content has the same URL")
	}
	if got := a.URL("run/none.js"); got != "/static/run/none.js" {
		t.Errorf("URL of a missing file: %s", got)
	}
	if got := a.ImportMap(); got != `{"imports":{}}` {
		t.Errorf("import map without imports: %s", got)
	}
	if got, want := b.ImportMap(), `{"imports":{"/static/run/a.js":"`+b.URL("run/a.js")+`"}}`; got != want {
		t.Errorf("import map %s, want %s", got, want)
	}
}

// TestVendoredFiles checks that the vendored files match the manifest byte for byte.
func TestVendoredFiles(t *testing.T) {
	raw, err := files.ReadFile("vendor/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var libraries []struct {
		Name, Version, Licence, From string
		SHA256                       map[string]string
	}
	if err := json.Unmarshal(raw, &libraries); err != nil || len(libraries) == 0 {
		t.Fatalf("manifest: %v", err)
	}
	for _, l := range libraries {
		if l.Version == "" || l.Licence == "" || l.From == "" {
			t.Errorf("%s lacks a version, licence or source", l.Name)
		}
		for name, want := range l.SHA256 {
			content, err := files.ReadFile("vendor/" + name)
			if err != nil {
				t.Error(err)
				continue
			}
			if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
				t.Errorf("%s does not match the manifest", name)
			}
		}
	}
}

// TestModules runs the unit tests of the JavaScript modules if Node is installed.
func TestModules(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	tests, err := filepath.Glob("*/*.test.js")
	if err != nil || len(tests) < 9 {
		t.Fatalf("only %d test files found: %v", len(tests), err)
	}
	if out, err := exec.CommandContext(t.Context(), node, append([]string{"--test"}, tests...)...).CombinedOutput(); err != nil {
		t.Errorf("node --test: %v\n%s", err, out)
	}
}
