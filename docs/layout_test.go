package docs_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMain lets every test see the tree from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// modulePath is what our own import paths begin with.
const modulePath = "slotscope"

// importMap is the map of the tree: the only packages of ours that each package imports, beside model, which everyone may.
// "all" is any package, "model/…" any below model. Tests are free, for they compare things. When a better map appears,
// change this table.
var importMap = map[string]string{
	".":                          "all",
	"web":                        "handlers static views web/peer",
	"web/peer":                   "",
	"handlers":                   "views model/…",
	"handlers/home":              "handlers views views/home model/…",
	"handlers/play":              "handlers views views/play model/…",
	"handlers/run":               "handlers views views/run model/…",
	"handlers/measure":           "handlers views views/measure model/…",
	"handlers/compare":           "handlers views views/compare views/run model/…",
	"handlers/sweep":             "handlers handlers/compare views views/sweep views/compare model/…",
	"handlers/dataset":           "handlers views views/dataset model/…",
	"handlers/docs":              "handlers views views/docs model/…",
	"handlers/theory":            "handlers views views/theory model/…",
	"handlers/system":            "handlers views views/system model/…",
	"handlers/workbench":         "handlers views views/workbench model/…",
	"handlers/handlertest":       "handlers web model/…",
	"views":                      "model/measure/figure",
	"views/home":                 "views",
	"views/play":                 "views model/measure/figure",
	"views/run":                  "views model/verdict",
	"views/measure":              "views model/measure/figure model/measure/metric model/measure/report",
	"views/compare":              "views model/measure/figure",
	"views/sweep":                "views views/compare model/measure/figure model/measure/report model/sweep",
	"views/dataset":              "views",
	"views/docs":                 "views",
	"views/theory":               "views model/measure/figure model/paper/theory",
	"views/system":               "views",
	"views/workbench":            "views",
	"static":                     "",
	"jobs":                       "model/host model/data model/folder model/measure/report model/public model/sweep model/verdict",
	"jobs/slurm":                 "model/folder model/host",
	"jobs/command":               "jobs jobs/slurm model/host model/adopt model/bench model/bundle model/exchange model/format/checkpoint model/compute model/compute/gpu model/data model/learn/evaluate model/folder model/measure/metric model/measure/metric/input model/play model/measure/report model/query model/shipped model/sweep model/learn/train model/whole",
	"db":                         "",
	"model":                      "",
	"model/adopt":                "model/host model/data model/folder model/format/checkpoint model/format/npz model/whole",
	"model/bundle":               "model/compute model/data model/folder model/format/checkpoint model/format/npz model/format/onnx model/learn/evaluate model/measure/report model/paper/ae model/paper/hrr model/play model/shipped model/whole",
	"model/format/onnx":          "",
	"model/format/tensorboard":   "model/format/protobuf",
	"model/format/protobuf":      "",
	"model/exchange":             "model/folder model/format/parquet model/format/tensorboard model/format/wandb model/whole",
	"model/format/wandb":         "model/format/protobuf",
	"model/data":                 "model/host model/format/exif model/data/fetch model/public model/format/hdf5 model/format/mat model/format/norb model/data/pack model/format/parquet model/data/dsprites model/data/shapes3d model/format/zipfile model/folder model/format/npz model/format/regular",
	"model/data/fetch":           "model/public",
	"model/public":               "",
	"model/format/exif":          "",
	"model/format/hdf5":          "model/format/regular",
	"model/format/mat":           "model/format/regular",
	"model/format/norb":          "model/format/regular",
	"model/format/parquet":       "model/format/regular",
	"model/data/pack":            "",
	"model/data/dsprites":        "",
	"model/data/shapes3d":        "",
	"model/format/zipfile":       "",
	"model/expect":               "",
	"model/format/regular":       "",
	"model/paper/hrr":            "model/paper/layer",
	"model/paper/hrr/hrrtest":    "model/paper/hrr",
	"model/paper/layer":          "model/compute/cpu/move",
	"model/paper/net":            "model/paper/layer",
	"model/paper/latent":         "model/paper/hrr model/paper/layer",
	"model/paper/loss":           "model/paper/layer",
	"model/paper/ae":             "model/paper/net model/paper/latent model/paper/layer model/paper/loss model/paper/hrr model/format/checkpoint",
	"model/format/checkpoint":    "model/whole",
	"model/format/weights":       "model/format/checkpoint model/paper/hrr",
	"model/compute":              "model/compute/cpu model/compute/gpu model/compute/nohome",
	"model/compute/nohome":       "",
	"model/compute/gpu":          "model/data/fetch",
	"model/host":                 "",
	"model/compute/cpu":          "model/compute/cpu/kernel model/compute/cpu/move",
	"model/compute/cpu/move":     "",
	"model/compute/cpu/kernel":   "",
	"model/compute/lower":        "",
	"model/verdict":              "",
	"model/whole":                "model/host",
	"model/folder":               "model/host model/whole",
	"model/learn/train":          "model/host model/paper/ae model/paper/layer model/data model/compute model/compute/gpu model/format/checkpoint model/folder model/measure/metric model/learn/evaluate model/verdict",
	"model/bench":                "model/host model/paper/ae model/data model/compute model/compute/cpu model/play model/learn/train",
	"model/play":                 "model/folder model/adopt model/format/exif model/learn/evaluate model/paper/ae model/data model/compute model/format/checkpoint model/format/weights model/measure/metric model/shipped model/whole",
	"model/shipped":              "model/folder model/whole",
	"model/shipped/pick":         "all",
	"model/measure/metric":       "",
	"model/measure/importance":   "",
	"model/measure/metric/input": "model/measure/metric model/format/hdf5 model/format/mat model/format/npz model/format/parquet",
	"model/format/npz":           "model/format/regular",
	"model/learn/evaluate":       "model/adopt model/paper/ae model/format/checkpoint model/compute model/data model/folder model/paper/layer model/measure/metric model/format/npz",
	"model/paper/theory":         "model/paper/hrr",
	"model/measure/figure":       "",
	"model/measure/report":       "model/measure/figure model/measure/importance model/measure/metric model/sweep",
	"model/view":                 "model/whole",
	"model/query":                "model/measure/report",
	"model/sweep":                "model/whole",
}

// TestImportDirection holds the map: what is not in it may not be imported, and a new package must be put into it.
func TestImportDirection(t *testing.T) {
	seen := 0
	walkGo(t, func(file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		seen++
		pkg := path.Dir(file)
		allowed, known := importMap[pkg]
		if !known {
			t.Errorf("%s: package %s is not in the map of layout_test.go", file, pkg)
			return
		}
		for _, target := range ownImports(t, file) {
			if !mayImport(allowed, target) {
				t.Errorf("%s imports %s; %s may import only model and: %s", file, target, pkg, allowed)
			}
		}
	})
	if seen < 20 {
		t.Errorf("only %d files were looked at", seen)
	}
}

// TestMayImport makes sure that the rule can say no.
func TestMayImport(t *testing.T) {
	for _, c := range []struct {
		allowed, target string
		want            bool
	}{
		{"", "model", true},
		{"", "model/data", false},
		{"model/data", "model/data", true},
		{"model/data", "model/data/shapes3d", false},
		{"views model/…", "model/data/shapes3d", true},
		{"views model/…", "db", false},
		{"all", "db", true},
	} {
		if got := mayImport(c.allowed, c.target); got != c.want {
			t.Errorf("%q importing %s: %v, want %v", c.allowed, c.target, got, c.want)
		}
	}
}

// mayImport reports whether a row of the map lets a package in.
func mayImport(allowed, target string) bool {
	rules := strings.Fields(allowed)
	return target == "model" || slices.Contains(rules, target) || slices.Contains(rules, "all") ||
		slices.Contains(rules, "model/…") && strings.HasPrefix(target, "model/")
}

// walkGo calls fn with the slash-separated path of every Go file of this module.
func walkGo(t *testing.T, fn func(file string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && outsideModule(file) {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(file, ".go") {
			fn(filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// outsideModule reports whether a folder is outside the module: what the go command ignores, other modules, and the data folder.
func outsideModule(dir string) bool {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || dir == "data" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// ownImports lists the packages of ours that a file imports, relative to the module.
func ownImports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(name, modulePath+"/"); ok {
			own = append(own, rest)
		}
	}
	return own
}

// TestOwnProgram: only model/host locates this program's file, because the file may have been replaced since the start.
func TestOwnProgram(t *testing.T) {
	walkGo(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "model/host/") && strings.Contains(readText(t, file), "os.Executable()") {
			t.Errorf("%s calls os.Executable; use host.Self or host.File", file)
		}
	})
}

// TestNotice keeps NOTICE complete: every module of go.mod and every vendored library stands in it with a licence.
func TestNotice(t *testing.T) {
	licences := map[string]string{}
	for line := range strings.Lines(readText(t, "NOTICE")) {
		if f := strings.Fields(line); len(f) > 1 {
			licences[f[0]] = f[1]
		}
	}
	var used []string
	for line := range strings.Lines(readText(t, "go.mod")) {
		if f := strings.Fields(strings.TrimPrefix(line, "require ")); len(f) > 1 && strings.HasPrefix(f[1], "v") && strings.Contains(f[0], ".") {
			used = append(used, f[0])
		}
	}
	for _, v := range vendored(t) {
		used = append(used, "static/vendor/"+v.Name)
	}
	if len(used) < 20 {
		t.Errorf("only %d libraries were found", len(used))
	}
	for _, name := range used {
		if licences[name] == "" {
			t.Errorf("NOTICE does not name %s with its licence", name)
		}
	}
}

// library is an entry of the manifest of vendored front-end libraries.
type library struct {
	Name   string
	SHA256 map[string]string
}

func vendored(t *testing.T) []library {
	t.Helper()
	var libraries []library
	if err := json.Unmarshal([]byte(readText(t, "static/vendor/manifest.json")), &libraries); err != nil {
		t.Fatal(err)
	}
	return libraries
}

// TestVendored makes sure that vendored files are the ones that the manifest names, and that it names all.
func TestVendored(t *testing.T) {
	known := map[string]string{"manifest.json": ""}
	for _, v := range vendored(t) {
		maps.Copy(known, v.SHA256)
	}
	root := os.DirFS("static/vendor")
	found := 0
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		want, listed := known[file]
		if !listed {
			t.Errorf("static/vendor/%s is not in the manifest", file)
		} else if got := fmt.Sprintf("%x", sha256.Sum256([]byte(readText(t, "static/vendor/"+file)))); want != "" && got != want {
			t.Errorf("static/vendor/%s has sha256 %s, not %s", file, got, want)
		}
		return nil
	})
	if err != nil || found != len(known) {
		t.Errorf("%d files of %d are there: %v", found, len(known), err)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
