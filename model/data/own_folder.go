package data

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Formats of pictures: a folder or a zip archive, with metadata.csv or metadata.jsonl whose file_name column names the pictures and
// whose other columns are factors; or a folder for each class; or pictures alone, without factors.
var (
	folderFormat = Format{
		Name:  "folders of PNG or JPEG images (with metadata.csv, metadata.jsonl, a folder for each class, or none of these)",
		Match: func(path string, head []byte) bool { return head == nil && holdsPictures(os.DirFS(path)) },
		Open: func(_ context.Context, path string, _ Reading) (Source, error) {
			t, err := openFolder(path)
			if err != nil {
				return nil, err
			}
			return openPictures(t)
		},
	}
	zipFormat = Format{
		Name: "zip archives of such folders",
		Match: func(path string, head []byte) bool {
			return bytes.HasPrefix(head, []byte("PK\x03\x04")) && strings.EqualFold(filepath.Ext(path), ".zip")
		},
		Open: func(_ context.Context, path string, _ Reading) (Source, error) {
			t, err := openZip(path, "")
			if err != nil {
				return nil, err
			}
			t.enter()
			return openPictures(t)
		},
	}
)

// holdsPictures looks for a picture or for metadata in a folder and in the folders in it.
func holdsPictures(dir fs.FS) bool {
	for _, pattern := range []string{"metadata.csv", "metadata.jsonl", "*", "*/*"} {
		names, err := fs.Glob(dir, pattern)
		if err == nil && slices.ContainsFunc(names, func(name string) bool { return pattern == name || isPicture(name) }) {
			return true
		}
	}
	return false
}

// isPicture says whether a name is a picture's; names with a dot before them are made by file managers.
func isPicture(name string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg"}, strings.ToLower(path.Ext(name))) && !strings.HasPrefix(path.Base(name), ".")
}

// openPictures opens the pictures of a tree, and closes it where that fails.
func openPictures(t tree) (Source, error) {
	s, err := ownPictures(t)
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	return s, nil
}

func ownPictures(t tree) (Source, error) {
	names, columns, err := listPictures(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no PNG or JPEG picture in it", t)
	}
	img, err := firstPicture(len(names), func(i int) (image.Image, error) { return decode(t, names[i]) })
	if err != nil {
		return nil, err
	}
	info := Info{
		H: side, W: side, C: 3, Len: len(names), About: fmt.Sprintf("The pictures of %s.", path.Base(filepath.ToSlash(t.String()))),
		Note: fit(img.Bounds().Dy(), img.Bounds().Dx()),
	}
	if grey(img) {
		info.C = 1
	}
	s := &pictureSource{files: t, name: func(i int) string { return names[i] }, others: otherSizes{named: img.Bounds().Size()}}
	if info.Factors, s.labels, info.Complete, err = classify(columns, len(names)); err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	s.info = info
	return s, nil
}

// firstPicture is the first of n that is not damaged, of the first hundred; the error is the first one's.
func firstPicture(n int, decode func(index int) (image.Image, error)) (img image.Image, err error) {
	for i := range min(n, 100) {
		img, other := decode(i)
		if other == nil {
			return img, nil
		}
		err = cmp.Or(err, other)
	}
	return nil, err
}

func grey(img image.Image) bool {
	switch img.(type) {
	case *image.Gray, *image.Gray16:
		return true
	}
	return false
}

// listPictures finds the pictures and what is known of each.
func listPictures(t tree) ([]string, []column, error) {
	for _, m := range []struct {
		name  string
		parse func([]byte) ([]string, []column, error)
	}{{"metadata.csv", parseCSV}, {"metadata.jsonl", parseJSONL}} {
		b, err := t.read(m.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.name, err)
		}
		if !utf8.Valid(b) {
			return nil, nil, fmt.Errorf("%s: it is not written in UTF-8, which is not read", m.name)
		}
		names, columns, err := m.parse(bytes.TrimPrefix(b, []byte("\ufeff")))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.name, err)
		}
		return names, columns, nil
	}
	files, err := t.list()
	if err != nil {
		return nil, nil, err
	}
	var here, below []string
	for _, name := range files {
		switch {
		case !isPicture(name):
		case strings.Contains(name, "/"):
			below = append(below, name)
		default:
			here = append(here, name)
		}
	}
	switch {
	case len(here) > 0 && len(below) > 0:
		return nil, nil, fmt.Errorf("%s lies beside folders with pictures, such as %s: put pictures either into one folder or into a folder for each class",
			here[0], below[0])
	case len(here) > 0:
		return here, nil, nil
	}
	class := column{name: "class"}
	for _, name := range below {
		folder, _, _ := strings.Cut(name, "/")
		class.values = append(class.values, folder)
	}
	if len(below) > 0 && class.values[0] == class.values[len(below)-1] {
		return below, nil, nil // names are in order: all are in one folder, which is no class
	}
	return below, []column{class}, nil
}

// parseCSV reads metadata.csv: a line of names, then a line for each picture.
func parseCSV(b []byte) ([]string, []column, error) {
	r := csv.NewReader(bytes.NewReader(b))
	head, err := r.Read()
	if err == io.EOF {
		return nil, nil, errors.New("it is empty")
	}
	if err == nil && !slices.Contains(head, "file_name") {
		err = fmt.Errorf("file_name is missing among its columns %q, which commas part", head)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("line 1: %w", err)
	}
	var m metadata
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return m.done()
		}
		if err != nil {
			return nil, nil, err
		}
		line, _ := r.FieldPos(0)
		if err := m.add(head, fields); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// parseJSONL reads metadata.jsonl: an object on each line, all with the same keys in the same order.
func parseJSONL(b []byte) ([]string, []column, error) {
	var m metadata
	line := 0
	for text := range bytes.Lines(b) {
		line++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		keys, values, err := object(text)
		if err == nil {
			err = m.add(keys, values)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
	return m.done()
}

// object reads a flat JSON object in order.
func object(text []byte) (keys, values []string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("it is no JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, unfinished(err)
		}
		value, err := d.Token()
		if err != nil {
			return nil, nil, unfinished(err)
		}
		if _, nested := value.(json.Delim); nested || value == nil {
			return nil, nil, fmt.Errorf("%v is a list, an object or null; text, numbers and booleans are read", key)
		}
		keys, values = append(keys, fmt.Sprint(key)), append(values, fmt.Sprint(value))
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, unfinished(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil, errors.New("there is more on it than one object")
	}
	return keys, values, nil
}

// unfinished is what an error of the JSON decoder means on a line.
func unfinished(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends in the middle of its object")
	}
	return fmt.Errorf("it is no JSON: %w", err)
}

// metadata gathers lines about pictures.
type metadata struct {
	keys  []string // of the first line, without file_name
	names []string
	cells [][]string // by column
	seen  map[string]bool
}

func (m *metadata) add(keys, values []string) error {
	at := slices.Index(keys, "file_name")
	if at < 0 || len(values) != len(keys) {
		return errors.New("file_name is missing")
	}
	name := path.Clean(filepath.ToSlash(values[at]))
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("the file_name %q leads out of the folder", values[at])
	}
	keys, values = without(keys, at), without(values, at)
	if m.seen == nil {
		m.keys, m.seen, m.cells = keys, map[string]bool{}, make([][]string, len(keys))
	}
	if !slices.Equal(keys, m.keys) {
		return fmt.Errorf("its columns are %q, where the first line has %q", keys, m.keys)
	}
	if m.seen[name] {
		return fmt.Errorf("%s is named twice", name)
	}
	m.seen[name] = true
	for k, v := range values {
		if v == "" {
			return fmt.Errorf("%s is empty for %s", m.keys[k], name)
		}
		m.cells[k] = append(m.cells[k], v)
	}
	m.names = append(m.names, name)
	return nil
}

func without(s []string, i int) []string { return slices.Delete(slices.Clone(s), i, i+1) }

func (m *metadata) done() ([]string, []column, error) {
	if len(m.names) == 0 {
		return nil, nil, errors.New("it names no picture")
	}
	columns := make([]column, len(m.keys))
	for k, name := range m.keys {
		columns[k] = column{name, m.cells[k]}
	}
	return m.names, columns, nil
}
