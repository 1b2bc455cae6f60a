package bundle_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/bundle"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

const dataset = "shapes3d-synthetic"

// variants returns every model, and every configuration that changes which tensors a model has or how they are used.
func variants() map[string]model.Config {
	all := map[string]model.Config{}
	for _, name := range model.ModelNames() {
		all[name] = tiny(name)
	}
	for name, change := range map[string]func(*model.Config){
		"exact inverse":                  func(c *model.Config) { c.Inverse = "exact" },
		"unit symbols":                   func(c *model.Config) { c.SymbolInit = "unit" },
		"learned symbols, exact inverse": func(c *model.Config) { c.LearnSymbols, c.Inverse = true, "exact" },
		"no denoiser":                    func(c *model.Config) { c.NoDenoiser = true },
		"free codebook":                  func(c *model.Config) { c.FreeCodebook = true },
		"tied":                           func(c *model.Config) { c.LambdaTie = 0.1 },
		"random binding":                 func(c *model.Config) { c.Binding = "random" },
		"permutation binding":            func(c *model.Config) { c.Binding = "permutation" },
		"concat binding":                 func(c *model.Config) { c.Binding = "concat" },
	} {
		c := tiny("hrr")
		change(&c)
		all["hrr, "+name] = c
	}
	return all
}

func tiny(name string) model.Config {
	c, err := model.Default(name, "tiny", dataset)
	if err != nil {
		panic(err)
	}
	return c
}

// untrained returns a model with random weights, whose encoder maps different images to different slots.
func untrained(t testing.TB, c model.Config) checkpoint.File {
	t.Helper()
	built, err := ae.New(c, ae.Image{H: 64, W: 64, C: 3})
	if err != nil {
		t.Fatal(err)
	}
	scope := context.New()
	if err := built.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	tensors, err := built.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tensors["fc2.weight"].Data {
		tensors["fc2.weight"].Data[i] *= 50
	}
	return checkpoint.File{Config: c, Step: 7, Tensors: tensors}
}

func engine(t testing.TB) *compute.Engine {
	t.Helper()
	e, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func openSet(t testing.TB) data.Set {
	t.Helper()
	set, err := data.Open(t.Context(), dataset, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// represented returns a bundle with n images of the dataset as examples.
func represented(t testing.TB, file checkpoint.File, n int) bundle.Bundle {
	t.Helper()
	set := openSet(t)
	info := set.Info()
	index, err := data.Draw(3, n, info.Len)
	if err != nil {
		t.Fatal(err)
	}
	pixels := make([]byte, n*info.H*info.W*info.C)
	if err := set.Images(pixels, index); err != nil {
		t.Fatal(err)
	}
	var all bundle.Examples
	for chunk := range slices.Chunk(pixels, 50*info.H*info.W*info.C) {
		e, err := bundle.Represent(engine(t), file, chunk)
		if err != nil {
			t.Fatal(err)
		}
		all.Images, all.Codes = append(all.Images, e.Images...), append(all.Codes, e.Codes...)
		all.Numbers, all.Decoded = append(all.Numbers, e.Numbers...), append(all.Decoded, e.Decoded...)
	}
	return bundle.Bundle{Name: "a run", File: file, Examples: &all, Revision: "test"}
}

// demo returns a small trained model.
func demo(t testing.TB) checkpoint.File {
	t.Helper()
	file, err := checkpoint.Read("../play/testdata/tiny.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The loader gives a trained model's codes exactly and its images within 1e-4, on 1,000 images, or 100 unless all tests are requested. With random
// weights, up to one slot in 200 may differ, because rounding decides near ties.
func TestLoaderAgrees(t *testing.T) {
	python := pythonWith(t, "torch")
	names, dirs := []string{"a trained model"}, []string{filepath.Join(t.TempDir(), "demo")}
	images := 1000
	if !expect.All() {
		images = 100
	}
	if _, err := represented(t, demo(t), images).WriteDir(dirs[0]); err != nil {
		t.Fatal(err)
	}
	for name, c := range variants() {
		dir := filepath.Join(t.TempDir(), "bundle")
		if _, err := represented(t, untrained(t, c), 32).WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		names, dirs = append(names, name), append(dirs, dir)
	}
	said, err := exec.Command(python, append([]string{filepath.Join(dirs[0], bundle.LoaderFile)}, dirs...)...).Output()
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(lines) != len(dirs) {
		var exit *exec.ExitError
		errors.As(err, &exit)
		t.Fatalf("%v\n%s\n%s", err, said, exit.Stderr)
	}
	for i, line := range lines {
		var got comparison
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		allowed := got.Slots / 200
		if i == 0 {
			allowed = 0
		}
		if got.Slots < 32*9 || got.OtherSlots > allowed || !(got.LargestDifference <= 1e-4) {
			t.Errorf("%s: %s", names[i], line)
		}
	}
}

type comparison struct {
	Images            int     `json:"images"`
	Slots             int     `json:"slots"`
	OtherSlots        int     `json:"other_slots"`
	LargestDifference float64 `json:"largest_difference"`
}

// pythonWith returns a Python interpreter that has a module, or skips the test.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	find := "import sys; from importlib.util import find_spec; sys.exit(not all(map(find_spec, ['numpy', '" + module + "'])))"
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", find).Run() == nil {
			t.Setenv("OMP_NUM_THREADS", "1") // with more threads it takes twice as long on a busy machine
			return python
		}
	}
	t.Skipf("no python3 with numpy and %s (Debian: apt-get install python3-%s)", module, module)
	return ""
}

// A bundle survives a round trip without problems, as a folder and as an archive.
func TestRoundTrip(t *testing.T) {
	for name, c := range map[string]model.Config{"hrr": tiny("hrr"), "betavae": tiny("betavae")} {
		b := represented(t, untrained(t, c), 2)
		b.Scores = &model.Scores{Version: model.ScoresVersion, Step: 7, Images: 10, PSNR: 12.5}
		b.Page = func(w io.Writer) error { _, err := io.WriteString(w, "<!DOCTYPE html>"); return err }
		dir, archive := written(t, b)
		for _, path := range []string{dir, archive} {
			o, closer, err := bundle.Open(path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := o.CheckExamples(engine(t)); err != nil || len(o.Problems) > 0 {
				t.Errorf("%s: %v, %v", name, err, o.Problems)
			}
			if o.Scores.PSNR != 12.5 || o.File.Step != 7 || o.File.Config != c {
				t.Errorf("%s: %+v", name, o.Manifest)
			}
			for tensor, want := range b.File.Tensors {
				if !slices.Equal(o.File.Tensors[tensor].Data, want.Data) {
					t.Errorf("%s: tensor %s changed", name, tensor)
				}
			}
			closer.Close()
		}
	}
}

// written writes a bundle as a folder and as an archive.
func written(t testing.TB, b bundle.Bundle) (dir, archive string) {
	t.Helper()
	dir, archive = filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "b.zip")
	if _, err := b.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if _, err := b.WriteZip(&raw, "b"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive, raw.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, archive
}

func TestOutMustBeNew(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b := bundle.Bundle{Name: "x", File: untrained(t, tiny("qlae"))}
	if _, err := b.WriteDir(dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a folder with files: %v", err)
	}
}

// TestKilledExport: the next export to a folder removes what a killed one left there, but nothing of one that is still writing.
func TestKilledExport(t *testing.T) {
	b := bundle.Bundle{Name: "x", File: untrained(t, tiny("qlae"))}
	if dir := os.Getenv("BUNDLE_CHILD"); dir != "" {
		b.Page = func(io.Writer) error {
			os.Stdout.WriteString("writing\n")
			time.Sleep(time.Minute)
			return nil
		}
		b.WriteDir(filepath.Join(dir, "slow"))
		return
	}
	dir := t.TempDir()
	line, kill := expect.Child(t, "BUNDLE_CHILD="+dir)
	if line != "writing" {
		t.Fatal(line)
	}
	for _, step := range []struct {
		when, export string
		want         int // entries in the folder
		kill         bool
	}{
		{"while the other export writes", "first", 2, false},
		{"after the other export was killed", "second", 2, true},
	} {
		if step.kill {
			kill()
		}
		if _, err := b.WriteDir(filepath.Join(dir, step.export)); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != step.want {
			t.Errorf("%s: %v, %v; want %d entries", step.when, entries, err, step.want)
		}
	}
}

// Every changed weight, score, setting or file is reported by name.
func TestChangesAreNamed(t *testing.T) {
	b := represented(t, untrained(t, tiny("hrr")), 2)
	b.Probe = &checkpoint.File{Tensors: map[string]checkpoint.Tensor{"conv0.weight": {Shape: []int{2, 3}, Data: []float32{1, 2, 3, 4, 5, 6}}}}
	b.Scores = &model.Scores{Version: model.ScoresVersion, Step: 7, Images: 10, PSNR: 12.5, Probe: checkpoint.Sum(b.Probe.Tensors)}
	weight := func(name, tensor string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			file, err := checkpoint.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			file.Tensors[tensor].Data[5] = math.Nextafter32(file.Tensors[tensor].Data[5], 9)
			if err := checkpoint.Write(path, file); err != nil {
				t.Fatal(err)
			}
		}
	}
	unlisted := func(t *testing.T, dir string) { // removes the probe and its line in SHA256SUMS
		path := filepath.Join(dir, bundle.SumsFile)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.DeleteFunc(strings.SplitAfter(string(raw), "\n"), func(line string) bool { return strings.Contains(line, bundle.ProbeFile) })
		if err := errors.Join(os.Remove(filepath.Join(dir, bundle.ProbeFile)), os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(name, from, to string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			raw, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(raw, []byte(from)) {
				t.Fatalf("%s has no %s: %v", name, from, err)
			}
			if err := os.WriteFile(path, bytes.Replace(raw, []byte(from), []byte(to), 1), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, c := range map[string]struct {
		change func(*testing.T, string)
		want   []string
	}{
		"nothing":               {func(*testing.T, string) {}, nil},
		"a weight":              {weight(bundle.WeightsFile, "fc1.weight"), []string{bundle.WeightsFile + ": its SHA-256", `tensor "fc1.weight": its SHA-256`}},
		"a score":               {replace(bundle.ScoresFile, "12.5", "12.6"), []string{bundle.ScoresFile + ": its SHA-256", "score psnr: recorded 12.6, measured 12.5"}},
		"the loader":            {replace(bundle.LoaderFile, "0.2", "0.3"), []string{bundle.LoaderFile + ": its SHA-256"}},
		"a setting":             {replace(bundle.ConfigFile, `"m": 9`, `"m": 8`), []string{"m is 8, but 9 in model.safetensors"}},
		"a weight of the probe": {weight(bundle.ProbeFile, "conv0.weight"), []string{bundle.ProbeFile + ": its SHA-256", `tensor of the probe "conv0.weight": its SHA-256`, "not the probe used for scores.json"}},
		"a lost probe":          {unlisted, []string{"probe.safetensors: listed in config.json, but missing"}},
		"a lost file":           {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, bundle.LoaderFile)) }, []string{bundle.LoaderFile + ": listed in SHA256SUMS, but missing"}},
		"a lost entry":          {replace(bundle.SumsFile, "  "+bundle.WeightsFile, "  "+bundle.LoaderFile), []string{bundle.WeightsFile + ": not listed"}},
	} {
		t.Run(what, func(t *testing.T) {
			dir, _ := written(t, b)
			c.change(t, dir)
			o, closer, err := bundle.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close()
			if err := o.CompareScores(*b.Scores, 1e-6); err != nil {
				t.Fatal(err)
			}
			said := fmt.Sprint(o.Problems)
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in %s", want, said)
				}
			}
			if len(c.want) == 0 && len(o.Problems) > 0 {
				t.Error(said)
			}
		})
	}
}

// Without the probe used for its scores, as in bundles of earlier versions, scores read by a probe are compared within the tolerance between
// probes, and a note says so.
func TestWithoutProbe(t *testing.T) {
	b := represented(t, untrained(t, tiny("hrr")), 2)
	share := func(v model.Score) model.Interval { return model.Interval{Value: v, Low: v - 0.05, High: v + 0.05} }
	scores := func(exact, leak model.Score, most, edits int) model.Scores {
		return model.Scores{Version: model.ScoresVersion, PSNR: 12.5, Probe: fmt.Sprint("read ", exact),
			Swap:      &model.Swap{Edits: edits, Exact: share(exact), None: share(0.2), Others: share(0.1)},
			SwapTruth: &model.SwapTruth{Slots: []model.TruthShare{{Leak: []model.Score{leak}, LeaksMost: most}}}}
	}
	recorded := scores(0.7, 0.05, 0, 40)
	b.Scores = &recorded
	dir, _ := written(t, b)
	for what, c := range map[string]struct {
		measured model.Scores
		want     string
	}{
		"a small difference": {scores(0.72, 0.04, -1, 40), "[]"},
		"far away":           {scores(0.1, 0.05, 0, 40), "score swap.exact.value: recorded 0.7, measured 0.1"},
		"other edits":        {scores(0.7, 0.05, 0, 41), "score swap.edits: recorded 40, measured 41"},
	} {
		o, closer, err := bundle.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		if err := o.CompareScores(c.measured, 1e-6); err != nil {
			t.Fatal(err)
		}
		if said := fmt.Sprint(o.Problems); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", what, said)
		}
		if len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "does not include the probe") {
			t.Errorf("%s: notes %q", what, o.Notes)
		}
	}
}

// If weights are changed together with every sum, CheckExamples still reports different codes or images.
func TestExamplesShowOtherWeights(t *testing.T) {
	b := represented(t, untrained(t, tiny("hrr")), 2)
	other := b
	other.File.Tensors = maps.Clone(b.File.Tensors)
	scaled := slices.Clone(b.File.Tensors["out.weight"].Data)
	scaled[0] += 0.5
	other.File.Tensors["out.weight"] = checkpoint.Tensor{Shape: b.File.Tensors["out.weight"].Shape, Data: scaled}
	dir, _ := written(t, other)
	o, closer, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	if err := o.CheckExamples(engine(t)); err != nil || len(o.Problems) != 1 || o.Problems[0].Where != bundle.CheckFile {
		t.Errorf("%v, %v", err, o.Problems)
	}
}

// Open rejects archives and sums with paths outside the bundle, and anything that is not a bundle.
func TestHostile(t *testing.T) {
	archive := func(names ...string) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, name := range names {
			f, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, "{}")
		}
		w.Close()
		return b.Bytes()
	}
	for want, raw := range map[string][]byte{
		"a path outside the bundle":                     archive("b/config.json", "../evil"),
		`"/etc/passwd", a path outside`:                 archive("/etc/passwd"),
		`"b\\config.json", a path outside`:              archive(`b\config.json`),
		"has no config.json":                            archive("b/readme.md"),
		"not a folder or a zip archive":                 []byte("hello"),
		`has format 0 of ""; this version reads format`: archive("b/config.json"),
	} {
		path := filepath.Join(t.TempDir(), "b.zip")
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := bundle.Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	dir, _ := written(t, bundle.Bundle{Name: "x", File: untrained(t, tiny("qlae"))})
	sums := filepath.Join(dir, bundle.SumsFile)
	raw, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	outside := strings.Replace(string(raw), "  "+bundle.LoaderFile, "  ../../etc/passwd", 1)
	if err := os.WriteFile(sums, []byte(outside), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bundle.Open(dir); err == nil || !strings.Contains(err.Error(), "outside the bundle") {
		t.Errorf("SHA256SUMS with a path outside: %v", err)
	}
	if err := os.WriteFile(sums, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(dir, bundle.WeightsFile)
	if err := errors.Join(os.Remove(weights), os.Symlink("/etc/hostname", weights)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bundle.Open(dir); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("a symlink outside: %v", err)
	}
}

// FuzzOpen verifies that opening an arbitrary archive returns and that its problems can be printed.
func FuzzOpen(f *testing.F) {
	b := bundle.Bundle{Name: "x", File: untrained(f, tiny("qlae")), Scores: &model.Scores{PSNR: 1}}
	var raw bytes.Buffer
	if _, err := b.WriteZip(&raw, "b"); err != nil {
		f.Fatal(err)
	}
	f.Add(raw.Bytes())
	f.Add(raw.Bytes()[:raw.Len()/2])
	f.Add([]byte("PK\x05\x06"))
	path := filepath.Join(f.TempDir(), "b.zip")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		o, closer, err := bundle.Open(path)
		if err != nil {
			return
		}
		defer closer.Close()
		_ = fmt.Sprint(o.Problems)
		if err := o.CompareScores(model.Scores{}, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// The card's front matter is YAML with the entries that Hugging Face expects.
func TestCard(t *testing.T) {
	b := bundle.Bundle{Name: "first: light\n---", File: untrained(t, tiny("hrr")), License: "apache-2.0",
		Scores: &model.Scores{Images: 10, PSNR: 12.5, Metrics: &model.Metrics{Discrete: true, InfoM: 0.5, InfoE: model.Undefined()}}}
	dir, _ := written(t, b)
	raw, err := os.ReadFile(filepath.Join(dir, bundle.CardFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"---\nlicense: \"apache-2.0\"\nlibrary_name: slotscope\n", "tags:\n- disentanglement\n", "metrics:\n- infom\n", "- type: infom\n      name: \"InfoM\"\n      value: 0.5\n", `name: "first: light ---"`, "| PSNR | 12.50 dB |"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q is not in the card:\n%s", want, raw)
		}
	}
	if strings.Contains(string(raw), "type: infoe\n") || strings.Count("\n"+string(raw), "\n---\n") != 2 {
		t.Errorf("an undefined score, or a broken head:\n%s", raw)
	}
}
