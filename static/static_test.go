package static

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"testing"
	"testing/fstest"
)

func TestHashFollowsContent(t *testing.T) {
	a, err := open(fstest.MapFS{"js/a.js": {Data: []byte("one")}, "css/a.css": {Data: []byte("one")}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(fstest.MapFS{"js/a.js": {Data: []byte("two")}})
	if err != nil {
		t.Fatal(err)
	}
	if got := a.URL("js/a.js"); got != "/static/js/a.7692c3ad3540.js" { // sha256("one") begins 7692c3ad3540
		t.Errorf("the address is %s", got)
	}
	if a.URL("js/a.js") == b.URL("js/a.js") {
		t.Error("other content, same address")
	}
	if got := a.URL("js/none.js"); got != "/static/js/none.js" {
		t.Errorf("a missing file's address is %s", got)
	}
	if got := a.ImportMap(); got != `{"imports":{"/static/js/a.js":"/static/js/a.7692c3ad3540.js"}}` {
		t.Errorf("the import map is %s", got)
	}
}

// What is vendored is what the manifest says, byte for byte.
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
		t.Fatalf("the manifest: %v", err)
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
				t.Errorf("%s is not the file of the manifest", name)
			}
		}
	}
}

// The modules without a page are tested where Node is installed.
func TestModules(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed; it runs static/test")
	}
	if out, err := exec.CommandContext(t.Context(), node, "--test", "test").CombinedOutput(); err != nil {
		t.Errorf("node --test: %v\n%s", err, out)
	}
}
