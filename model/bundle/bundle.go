// Package bundle exports a model as a folder for other programs (safetensors, ONNX, PyTorch, a Hugging Face model card), and reads such a folder
// back to compare it with a new measurement.
package bundle

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
	"slotscope/model/format/npz"
	"slotscope/model/whole"
)

// Names of the files of a bundle.
const (
	WeightsFile = "model.safetensors"
	ConfigFile  = "config.json"
	LoaderFile  = "slotscope_model.py"
	AdapterFile = "slotscope_adapter.py"
	CardFile    = "README.md"
	ScoresFile  = "scores.json"
	ProbeFile   = "probe.safetensors"
	AboutScores = "SCORES.md"
	PageFile    = "playground.html"
	CheckFile   = "check.npz"
	SumsFile    = "SHA256SUMS"
)

//go:embed slotscope_model.py
var loader []byte

//go:embed slotscope_adapter.py
var adapter []byte

// Bundle is a model with its scores and examples.
type Bundle struct {
	Name     string // of the run
	Run      string // its ID; empty for a checkpoint without a run
	File     checkpoint.File
	Scores   *model.Scores    // nil if the run is not evaluated
	Probe    *checkpoint.File // the probe used for Scores; nil if none, or if it is not available
	Examples *Examples        // nil if the dataset is not available
	License  string           // a Hugging Face license identifier, such as "apache-2.0"
	Revision string           // of the program
	// Page writes the frozen playground. It is left out if Page is nil or returns a model.Invalid.
	Page func(w io.Writer) error
}

// Manifest is config.json.
type Manifest struct {
	Format   int               `json:"format"`       // 1
	Library  string            `json:"library_name"` // "slotscope"
	Type     string            `json:"model_type"`   // "slotscope"
	Name     string            `json:"name"`
	Run      string            `json:"run,omitempty"`
	Step     int               `json:"step"`
	Revision string            `json:"revision,omitempty"`
	Image    ImageShape        `json:"image"`
	Config   model.Config      `json:"config"`
	Tensors  map[string]string `json:"tensors"`         // SHA-256 of each tensor's little-endian float32 values, by name
	Probe    map[string]string `json:"probe,omitempty"` // the same for the probe
}

// ImageShape is the shape of a model's images.
type ImageShape struct {
	Height   int `json:"height"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
}

const (
	format  = 1
	library = "slotscope"
)

// part is one file of a bundle.
type part struct {
	name  string
	write func(w io.Writer) error
}

// parts returns the files in order of name, without SHA256SUMS.
func (b Bundle) parts() ([]part, error) {
	manifest, err := b.manifest()
	if err != nil {
		return nil, err
	}
	about, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	files := []part{
		{WeightsFile, func(w io.Writer) error { return checkpoint.Encode(w, b.File) }},
		text(ConfigFile, append(about, '\n')),
		text(LoaderFile, loader),
		text(AdapterFile, adapter),
		text(AboutScores, []byte(definitions())),
	}
	if b.Scores != nil {
		scores, err := json.MarshalIndent(b.Scores, "", "  ")
		if err != nil {
			return nil, err
		}
		files = append(files, text(ScoresFile, append(scores, '\n')))
	}
	if b.Probe != nil {
		files = append(files, part{ProbeFile, func(w io.Writer) error { return checkpoint.Encode(w, *b.Probe) }})
	}
	if b.Examples != nil {
		files = append(files, part{CheckFile, b.writeExamples})
	}
	networks, err := b.onnxParts()
	if err != nil {
		return nil, err
	}
	files = append(files, networks...)
	page, err := b.page()
	if err != nil {
		return nil, err
	}
	if page != nil {
		files = append(files, text(PageFile, page))
	}
	files = append(files, text(CardFile, []byte(b.card(page != nil))))
	slices.SortFunc(files, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

func text(name string, content []byte) part {
	return part{name, func(w io.Writer) error { _, err := w.Write(content); return err }}
}

// page returns the frozen playground, or nil if the model has none, for example because it is too large.
func (b Bundle) page() ([]byte, error) {
	if b.Page == nil {
		return nil, nil
	}
	var page bytes.Buffer
	var invalid model.Invalid
	switch err := b.Page(&page); {
	case errors.As(err, &invalid):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("freezing the playground: %w", err)
	}
	return page.Bytes(), nil
}

func (b Bundle) manifest() (Manifest, error) {
	image, err := ImageOf(b.File)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Format: format, Library: library, Type: library, Name: b.Name, Run: b.Run, Step: b.File.Step, Revision: b.Revision,
		Image: ImageShape{image.H, image.W, image.C}, Config: b.File.Config, Tensors: sums(b.File)}
	if b.Probe != nil {
		m.Probe = sums(*b.Probe)
	}
	return m, nil
}

// sums returns the SHA-256 of each of a file's tensors, by name.
func sums(file checkpoint.File) map[string]string {
	all := map[string]string{}
	for name, t := range file.Tensors {
		all[name] = t.Sum()
	}
	return all
}

func (b Bundle) writeExamples(w io.Writer) error {
	image, err := ImageOf(b.File)
	if err != nil {
		return err
	}
	e, n := *b.Examples, len(b.Examples.Images)/(image.H*image.W*image.C)
	shape := []int{n, image.H, image.W, image.C}
	slots := npz.Data{Name: "slots", Shape: []int{n, b.File.Config.M}, Values: e.Codes}
	if e.Codes == nil {
		slots.Values = e.Numbers
	}
	return npz.Write(w, npz.Data{Name: "images", Shape: shape, Values: e.Images}, slots, npz.Data{Name: "decoded", Shape: shape, Values: e.Decoded})
}

// WriteDir writes the bundle as a new folder, atomically, and returns the names of its files. It first removes what killed exports left
// beside the folder.
func (b Bundle) WriteDir(dir string) (names []string, err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, model.Invalid{"out": fmt.Sprintf("%s is not empty; choose a new folder", dir)}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	temp, remove, err := whole.TempIn(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer remove()
	draft := filepath.Join(temp, "bundle")
	names, err = b.each(func(name string, write func(io.Writer) error) error {
		path := filepath.Join(draft, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return whole.Write(path, func(f *os.File) error {
			buffered := bufio.NewWriter(f)
			return errors.Join(write(buffered), buffered.Flush())
		})
	})
	if err != nil {
		return nil, fmt.Errorf("writing bundle %s: %w", dir, err)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return names, os.Rename(draft, dir)
}

// WriteZip writes the bundle as a zip archive with one folder, and returns the names of its files. The output is deterministic.
func (b Bundle) WriteZip(w io.Writer, folder string) (names []string, err error) {
	archive := zip.NewWriter(w)
	names, err = b.each(func(name string, write func(io.Writer) error) error {
		method := zip.Deflate
		if name == WeightsFile || strings.HasSuffix(name, ".onnx") {
			method = zip.Store // floats hardly compress
		}
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: folder + "/" + name, Method: method})
		if err != nil {
			return err
		}
		return write(entry)
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("writing the bundle: %w", err)
	}
	return names, nil
}

// each calls put for every file, SHA256SUMS last.
func (b Bundle) each(put func(name string, write func(io.Writer) error) error) (names []string, err error) {
	files, err := b.parts()
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, f := range files {
		h := sha256.New()
		if err := put(f.name, func(w io.Writer) error { return f.write(io.MultiWriter(w, h)) }); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		names, sums[f.name] = append(names, f.name), fmt.Sprintf("%x", h.Sum(nil))
	}
	return append(names, SumsFile), put(SumsFile, func(w io.Writer) error {
		for _, name := range slices.Sorted(maps.Keys(sums)) {
			if _, err := fmt.Fprintf(w, "%s  %s\n", sums[name], name); err != nil {
				return err
			}
		}
		return nil
	})
}
