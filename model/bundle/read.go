package bundle

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"slotscope/model"
	"slotscope/model/format/checkpoint"
)

// Limits on input. Memory stays within them and a small multiple of the bundle's size.
const (
	maxText    = 64 << 20 // bytes of config.json, scores.json and SHA256SUMS
	maxFiles   = 10_000   // in an archive
	maxGrowth  = 8        // maximum unpacked size of weights, relative to the archive's size,
	leastRoom  = 64 << 20 // or in bytes, whichever is larger
	maxListed  = 4 << 30  // bytes of any other file
	maxFolders = 1        // depth of the bundle's folder in an archive
)

// Opened is an open bundle.
type Opened struct {
	Manifest Manifest
	File     checkpoint.File
	Scores   *model.Scores    // nil if the bundle has none
	Probe    *checkpoint.File // the probe used for Scores; nil if none, and in bundles of earlier versions
	Problems []Problem        // contradictions, such as sums that do not match
	Notes    []string         // sentences about what could not be compared exactly

	files fs.FS
}

// Problem is a contradiction within a bundle, or between a bundle and a measurement.
type Problem struct {
	Where string `json:"where"` // a file, a tensor or a score
	What  string `json:"what"`  // the contradiction
}

func (p Problem) String() string { return p.Where + ": " + p.What }

// Open reads a bundle, which is a folder or a zip archive, and checks every sum. Contradictions are reported in Problems; the error is only for
// bundles that cannot be read. Close the io.Closer when done.
func Open(name string) (*Opened, io.Closer, error) {
	files, size, closer, err := openFiles(name)
	if err != nil {
		return nil, nil, fmt.Errorf("opening bundle %s: %w", name, err)
	}
	o := &Opened{files: files}
	if err := o.read(size); err != nil {
		closer.Close()
		return nil, nil, fmt.Errorf("reading bundle %s: %w", name, err)
	}
	return o, closer, nil
}

// openFiles opens a folder or an archive; size is the archive's, 0 for a folder.
func openFiles(name string) (files fs.FS, size int64, closer io.Closer, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, 0, nil, err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name) // symlinks cannot escape it
		if err != nil {
			return nil, 0, nil, err
		}
		return root.FS(), 0, root, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, nil, err
	}
	if files, err = openArchive(f, info.Size()); err != nil {
		f.Close()
		return nil, 0, nil, err
	}
	return files, info.Size(), f, nil
}

// openArchive returns the folder of a zip archive that contains config.json.
func openArchive(r io.ReaderAt, size int64) (fs.FS, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a folder or a zip archive: %w", err)
	}
	if len(archive.File) > maxFiles {
		return nil, fmt.Errorf("the archive has %d files; a bundle has at most %d", len(archive.File), maxFiles)
	}
	for _, f := range archive.File {
		name := strings.TrimSuffix(f.Name, "/")
		if !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) {
			return nil, fmt.Errorf("the archive contains %q, a path outside the bundle", f.Name)
		}
	}
	for _, f := range archive.File {
		if dir, base := path.Split(f.Name); base == ConfigFile && strings.Count(dir, "/") <= maxFolders {
			return fs.Sub(archive, path.Clean(dir))
		}
	}
	return nil, fmt.Errorf("the archive has no %s: not a bundle", ConfigFile)
}

func (o *Opened) read(archive int64) error {
	raw, err := o.text(ConfigFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &o.Manifest); err != nil {
		return fmt.Errorf("%s: %w", ConfigFile, err)
	}
	if o.Manifest.Format != format || o.Manifest.Library != library {
		return fmt.Errorf("%s has format %d of %q; this version reads format %d of %q", ConfigFile, o.Manifest.Format, o.Manifest.Library, format, library)
	}
	if o.File, err = o.readTensors(WeightsFile, archive); err != nil {
		return err
	}
	probe, err := o.readTensors(ProbeFile, archive)
	switch {
	case err == nil:
		o.Probe = &probe
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if raw, err = o.text(ScoresFile); err == nil {
		o.Scores = &model.Scores{}
		if err := json.Unmarshal(raw, o.Scores); err != nil {
			return fmt.Errorf("%s: %w", ScoresFile, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := o.checkSums(); err != nil {
		return err
	}
	o.checkTensors()
	return o.checkConfig()
}

// text reads a small file.
func (o *Opened) text(name string) ([]byte, error) { return o.bytes(name, maxText) }

func (o *Opened) bytes(name string, most int64) ([]byte, error) {
	f, err := o.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if n > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return b.Bytes(), nil
}

func (o *Opened) readTensors(name string, archive int64) (file checkpoint.File, err error) {
	f, err := o.files.Open(name)
	if err != nil {
		return file, err
	}
	defer f.Close()
	if at, ok := f.(io.ReaderAt); ok { // in a folder: read in place
		info, err := f.Stat()
		if err != nil {
			return file, err
		}
		if !info.Mode().IsRegular() {
			return file, fmt.Errorf("%s is not a regular file", name)
		}
		file, err = checkpoint.Decode(at, info.Size())
		return file, in(name, err)
	}
	raw, err := o.bytes(name, max(leastRoom, maxGrowth*archive))
	if err != nil {
		return file, err
	}
	file, err = checkpoint.Decode(bytes.NewReader(raw), int64(len(raw)))
	return file, in(name, err)
}

func in(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// checkSums compares every file with SHA256SUMS.
func (o *Opened) checkSums() error {
	raw, err := o.text(SumsFile)
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<16)
	for n := 1; lines.Scan(); n++ {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if _, err := hex.DecodeString(sum); !ok || err != nil || len(sum) != 2*sha256.Size {
			return fmt.Errorf("%s: line %d is not a SHA-256 and a name", SumsFile, n)
		}
		if !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) {
			return fmt.Errorf("%s: line %d names %q, a path outside the bundle", SumsFile, n, name)
		}
		if len(listed) >= maxFiles {
			return fmt.Errorf("%s lists more than %d files", SumsFile, maxFiles)
		}
		listed[name] = true
		have, err := o.sum(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			o.say(name, "listed in "+SumsFile+", but missing")
		case err != nil:
			return err
		case have != sum:
			o.say(name, "its SHA-256 does not match "+SumsFile)
		}
	}
	if err := lines.Err(); err != nil {
		return in(SumsFile, err)
	}
	needed := []string{WeightsFile, ConfigFile}
	if o.Scores != nil {
		needed = append(needed, ScoresFile)
	}
	if o.Probe != nil {
		needed = append(needed, ProbeFile)
	}
	for _, name := range needed {
		if !listed[name] {
			o.say(name, "not listed in "+SumsFile)
		}
	}
	return nil
}

func (o *Opened) sum(name string) (string, error) {
	f, err := o.files.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxListed+1))
	if err != nil {
		return "", in(name, err)
	}
	if n > maxListed {
		return "", fmt.Errorf("%s is larger than %d bytes", name, int64(maxListed))
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

func (o *Opened) say(where, what string) { o.Problems = append(o.Problems, Problem{where, what}) }
