// Package static embeds the style sheets, ES modules and vendored libraries of the pages and serves them under URLs with a hash of the
// content, so that browsers may cache them forever.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
)

//go:embed icon.svg compare dataset docs home measure play run shared sweep theory vendor workbench
var files embed.FS

// Prefix is the path under which Assets are served.
const Prefix = "/static/"

// Assets maps every embedded file to its hashed URL and serves it.
type Assets struct {
	fsys    fs.FS
	hashed  map[string]string // name → name with hash
	names   map[string]string // inverse of hashed
	scripts []string          // source of every module
}

// Files returns the embedded files by name, as in "play/play.js".
func Files() fs.FS { return files }

// New returns the Assets of the embedded files.
func New() (*Assets, error) { return open(files) }

func open(fsys fs.FS) (*Assets, error) {
	a := &Assets{fsys: fsys, hashed: map[string]string{}, names: map[string]string{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".test.js") {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".js" {
			a.scripts = append(a.scripts, string(content))
		}
		h := withHash(name, content)
		a.hashed[name], a.names[h] = h, name
		return nil
	})
	return a, err
}

// withHash inserts the first 12 hex digits of the content's SHA-256 before the extension: shared/base.css → shared/base.0123456789ab.css.
func withHash(name string, content []byte) string {
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
}

// URL returns the URL of a file, e.g. "shared/base.css". A name that is not embedded keeps its plain URL, which is not found.
func (a *Assets) URL(name string) string {
	if h, ok := a.hashed[name]; ok {
		return Prefix + h
	}
	return Prefix + name
}

// ImportMap returns the JSON import map from plain to hashed URLs of all imported modules, including WebAssembly, so that modules
// can import each other by plain relative names.
func (a *Assets) ImportMap() string {
	imports := map[string]string{}
	for name, h := range a.hashed {
		if ext := path.Ext(name); (ext == ".js" || ext == ".wasm") && a.imported(path.Base(name)) {
			imports[Prefix+name] = Prefix + h
		}
	}
	b, _ := json.Marshal(map[string]any{"imports": imports}) // strings only: cannot fail; keys are sorted
	return string(b)
}

// imported reports whether any module refers to a file of that base name.
func (a *Assets) imported(base string) bool {
	return slices.ContainsFunc(a.scripts, func(text string) bool {
		return strings.Contains(text, "/"+base+"'") || strings.Contains(text, "/"+base+`"`)
	})
}

// ServeHTTP serves hashed URLs as immutable and plain URLs with revalidation.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := strings.TrimPrefix(r.URL.Path, Prefix)
	name, immutable := a.names[asked]
	if !immutable {
		name = asked
	}
	if _, ok := a.hashed[name]; !ok {
		http.NotFound(w, r)
		return
	}
	cache := "no-cache"
	if immutable {
		cache = "public, max-age=31536000, immutable"
	}
	w.Header().Set("Cache-Control", cache)
	http.ServeFileFS(w, r, a.fsys, name)
}
