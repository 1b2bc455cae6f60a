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
	"image/color"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Formats of image files: a folder, a zip or a tar archive with metadata.csv or metadata.jsonl, whose file_name column names the image
// files and whose other columns are factors; or with a folder for each class; or with image files only, without factors.
var (
	folderFormat = Format{
		Name:   "folders of PNG, JPEG, WebP, BMP, TIFF or GIF images (with metadata.csv, metadata.jsonl, a folder for each class, or none of these)",
		Former: []string{"folders of PNG or JPEG images (with metadata.csv, metadata.jsonl, a folder for each class, or none of these)"},
		Match:  func(path string, head []byte) bool { return head == nil && holdsPictures(os.DirFS(path)) },
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
	tarFormat = Format{
		Name: "tar archives of such folders, plain or compressed by gzip",
		Match: func(path string, head []byte) bool {
			return len(head) > 262 && string(head[257:262]) == "ustar" || isTarGz(path) && bytes.HasPrefix(head, []byte("\x1f\x8b"))
		},
		Open: func(ctx context.Context, path string, _ Reading) (Source, error) {
			t, err := openTar(ctx, path)
			if err != nil {
				return nil, err
			}
			return openPictures(t)
		},
	}
)

// holdsPictures reports whether a folder has an image file or metadata, at most 5 folders deep and among its first 10,000 entries.
func holdsPictures(dir fs.FS) bool {
	const deep, many = 5, 10_000
	found, seen := false, 0
	_ = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error { // unreadable folders are skipped
		seen++
		switch {
		case err != nil, d.IsDir() && strings.Count(name, "/") >= deep:
			return fs.SkipDir
		case !d.IsDir() && (isPicture(name) || slices.Contains(metadataNames, path.Base(name))):
			found = true
			return fs.SkipAll
		case seen > many:
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// isPicture reports whether a name is that of an image file. File managers write hidden files, whose names start with a dot.
func isPicture(name string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif"}, strings.ToLower(path.Ext(name))) && !strings.HasPrefix(path.Base(name), ".")
}

// openPictures opens the image files of a tree, and closes the tree on failure.
func openPictures(t tree) (Source, error) {
	s, err := ownPictures(t)
	if err != nil {
		_ = t.Close()
		return nil, err
	}
	return s, nil
}

func ownPictures(t tree) (Source, error) {
	found, err := listPictures(t)
	names := found.names
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no image files; PNG, JPEG, WebP, BMP, TIFF and GIF are read", t)
	}
	img, err := firstPicture(len(names), func(i int) (image.Image, error) { return decode(t, names[i]) })
	if err != nil {
		return nil, err
	}
	found.holds.Scaling, found.holds.Remarks = fit(img.Bounds().Dy(), img.Bounds().Dx()), found.remarks
	info := Info{
		H: side, W: side, C: 3, Len: len(names), About: fmt.Sprintf("The images of %s.", path.Base(filepath.ToSlash(t.String()))),
		Note: sentences(append([]string{found.holds.Scaling}, found.remarks...)...),
	}
	step := max(1, len(names)/headersRead)
	if grey(img) && !anyColour(len(names)/step, func(i int) ([]byte, error) { return t.read(names[i*step]) }) {
		info.C = 1
	}
	s := &pictureSource{files: t, name: func(i int) string { return names[i] }, others: otherSizes{named: img.Bounds().Size()}, holds: found.holds}
	if info.Factors, s.labels, info.Complete, err = classify(found.columns, len(names)); err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	s.info = info
	return s, nil
}

// firstPicture returns the first undamaged one of n images. It tries the first hundred and returns the error of the first.
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

// headersRead is the number of images whose headers show whether any image of a dataset has colour.
const headersRead = 1000

// anyColour reports whether an image has colour, by the headers of n files. Unreadable files are left to the decoder.
func anyColour(n int, file func(i int) ([]byte, error)) bool {
	for i := range n {
		b, err := file(i)
		if err != nil {
			continue
		}
		if c, _, err := image.DecodeConfig(bytes.NewReader(b)); err == nil && c.ColorModel != color.GrayModel && c.ColorModel != color.Gray16Model {
			return true
		}
	}
	return false
}

func grey(img image.Image) bool {
	switch img.(type) {
	case *image.Gray, *image.Gray16:
		return true
	}
	return false
}

// listed are the image files of a tree and their factors.
type listed struct {
	names   []string
	columns []column
	remarks []string // sentences for users
	holds   Contents
}

// listPictures finds the image files and their factors.
func listPictures(t tree) (listed, error) {
	files, unlisted := t.list()
	for _, table := range metadataNames { // at the top, before those in folders
		names, columns, err := readMetadata(t, table)
		if !errors.Is(err, fs.ErrNotExist) {
			return ofTable(table, names, columns, files, unlisted), err
		}
	}
	if unlisted != nil {
		return listed{}, unlisted
	}
	table, err := metadataFile(files)
	if err != nil {
		return listed{}, err
	}
	if table != "" {
		names, columns, err := readMetadata(t, table)
		return ofTable(table, names, columns, files, nil), err
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
	var found listed
	switch {
	case len(here) > 0 && len(below) > 0:
		return found, fmt.Errorf("%s is next to folders with images, such as %s; put all images either into one folder or into one folder per class",
			here[0], below[0])
	case len(here) > 0:
		found.names = here
	default:
		found.names = below
		columns, remark := classFolders(below)
		found.columns = columns
		found.remark(remark)
		if len(columns) > 0 {
			found.holds.Used = []string{"factors: names of folders"}
		}
	}
	found.without(tables(files))
	return found, nil
}

// ofTable returns the image files and factors that a metadata file lists. files are all files of the tree, unless they could not be
// listed.
func ofTable(table string, names []string, columns []column, files []string, unlisted error) listed {
	found := listed{names: names, holds: Contents{Used: []string{"factors: " + table}}}
	var remark string
	found.columns, remark = withoutIndex(columns)
	found.remark(remark)
	if unlisted != nil {
		found.remark(fmt.Sprintf("Other images in the folder were not looked for: %v.", unlisted))
		return found
	}
	rows := make(map[string]bool, len(names))
	for _, name := range names {
		rows[name] = true
	}
	all := 0
	var left []string
	for _, name := range files {
		if isPicture(name) {
			all++
			if !rows[name] {
				left = append(left, name)
			}
		}
	}
	if len(left) > 0 {
		verb, end := "have", "are left out"
		if len(left) == 1 {
			verb, end = "has", "is left out"
		}
		found.remark(fmt.Sprintf("%d of %s %s no row in %s and %s: %s.", len(left), countOf(all, "image", "images"), verb, table, end, listSome(left, 5)))
		found.holds.Unused = []string{countOf(len(left), "image", "images") + " without a row in " + table}
	}
	found.without(slices.DeleteFunc(tables(files), func(name string) bool { return name == table }))
	return found
}

func (l *listed) remark(text string) {
	if text != "" {
		l.remarks = append(l.remarks, text)
	}
}

// without notes the tables that are not used.
func (l *listed) without(tables []string) {
	if len(tables) > 0 {
		l.remark(fmt.Sprintf("Tables not used: %s. Factors come from one metadata.csv or metadata.jsonl with a column file_name.", listSome(tables, 5)))
		l.holds.Unused = append(l.holds.Unused, tables[:min(len(tables), 20)]...)
		if more := len(tables) - 20; more > 0 {
			l.holds.Unused = append(l.holds.Unused, fmt.Sprintf("%d more tables", more))
		}
	}
}

// tables returns the files that may hold labels, except hidden ones and those that describe the dataset in words.
func tables(files []string) (found []string) {
	for _, name := range files {
		base := strings.ToLower(path.Base(name))
		words := slices.ContainsFunc([]string{".", "readme", "licen", "copying", "citation", "requirements"}, func(start string) bool { return strings.HasPrefix(base, start) })
		if !words && slices.Contains([]string{".csv", ".tsv", ".txt", ".json", ".jsonl", ".xlsx", ".parquet", ".npy", ".npz", ".mat", ".h5", ".hdf5"}, path.Ext(base)) {
			found = append(found, name)
		}
	}
	return found
}

// metadataNames are the names of files that list image files and their factors.
var metadataNames = []string{"metadata.csv", "metadata.jsonl"}

// metadataFile returns the only such file of a folder; empty if there is none.
func metadataFile(files []string) (string, error) {
	var found []string
	for _, name := range files {
		if slices.Contains(metadataNames, path.Base(name)) {
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("there are %d metadata files (%s); add their folders one at a time", len(found), listSome(found, 4))
	}
	return strings.Join(found, ""), nil
}

// readMetadata reads a metadata file, whose paths are relative to its own folder.
func readMetadata(t tree, file string) ([]string, []column, error) {
	b, err := t.read(file)
	if err == nil && !utf8.Valid(b) {
		err = errors.New("not UTF-8; save it as UTF-8")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	parse := parseCSV
	if path.Ext(file) == ".jsonl" {
		parse = parseJSONL
	}
	names, columns, err := parse(bytes.TrimPrefix(b, []byte("\ufeff")))
	for i := range names {
		names[i] = path.Join(path.Dir(file), names[i])
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return names, columns, err
}

// withoutIndex drops the column of row numbers that pandas writes.
func withoutIndex(columns []column) (kept []column, remark string) {
	for _, c := range columns {
		if !slices.Contains([]string{"", "Unnamed: 0", "index", "__index_level_0__"}, c.name) || !counts(c.values) {
			kept = append(kept, c)
			continue
		}
		remark = fmt.Sprintf("Column %q only numbers the rows and is ignored.", c.name)
	}
	return kept, remark
}

// counts reports whether values are 0, 1, 2 … or 1, 2, 3 ….
func counts(values []string) bool {
	for start := range 2 {
		i := slices.IndexFunc(values, func(string) bool { return true })
		for i >= 0 && i < len(values) && values[i] == strconv.Itoa(start+i) {
			i++
		}
		if i == len(values) {
			return true
		}
	}
	return false
}

// splits are the names of folders that split a dataset for training and testing.
var splits = []string{"train", "training", "test", "testing", "val", "valid", "validation", "dev"}

// classFolders derives classes from the folders of image files, whose names must be sorted: from the first level at which folders differ,
// and from the level below if the first is a split.
func classFolders(names []string) ([]column, string) {
	if len(names) == 0 {
		return nil, ""
	}
	first, last := strings.Split(path.Dir(names[0]), "/"), strings.Split(path.Dir(names[len(names)-1]), "/")
	level := 0 // names are sorted: all share the folders that the first and the last share
	for level < min(len(first), len(last)) && first[level] == last[level] {
		level++
	}
	if level == len(first) && level == len(last) {
		return nil, "" // a single folder is not a class
	}
	var upper, lower []string
	split, deep := true, true
	for _, name := range names {
		folders := strings.Split(path.Dir(name), "/")[level:]
		if len(folders) == 0 {
			folders = []string{"."} // next to the folders of other files
		}
		split, deep = split && slices.Contains(splits, strings.ToLower(folders[0])), deep && len(folders) > 1
		upper, lower = append(upper, folders[0]), append(lower, folders[min(1, len(folders)-1)])
	}
	switch {
	case split && deep:
		return []column{{"split", upper}, {"class", lower}}, "The folders " + strings.Join(distinct(upper), ", ") + " are the values of the factor split; to use only one of them, add that folder."
	case split:
		return []column{{"split", upper}}, "The folders " + strings.Join(distinct(upper), ", ") + " look like a split, not like classes; to use only one of them, add that folder."
	}
	return []column{{"class", upper}}, ""
}

func distinct(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

// parseCSV parses metadata.csv: a line of column names, then a line for each image file. Cells are separated by commas, semicolons or
// tabs, whichever is most frequent in the first line.
func parseCSV(b []byte) ([]string, []column, error) {
	r := csv.NewReader(bytes.NewReader(b))
	names, _, _ := bytes.Cut(b, []byte("\n"))
	for _, comma := range ";\t" {
		if bytes.Count(names, []byte(string(comma))) > bytes.Count(names, []byte(string(r.Comma))) {
			r.Comma = comma
		}
	}
	head, err := r.Read()
	if err == io.EOF {
		return nil, nil, errors.New("the file is empty")
	}
	if err == nil && !slices.Contains(head, "file_name") {
		err = fmt.Errorf("no column file_name; found the columns %q", head)
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

// parseJSONL parses metadata.jsonl: one object per line, all with the same keys in the same order.
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

// object parses a flat JSON object, keeping the order of its keys.
func object(text []byte) (keys, values []string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("not a JSON object")
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
			return nil, nil, fmt.Errorf("%v is a list, an object or null; use text, a number or a boolean", key)
		}
		keys, values = append(keys, fmt.Sprint(key)), append(values, fmt.Sprint(value))
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, unfinished(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, nil, errors.New("more than one JSON object on the line")
	}
	return keys, values, nil
}

// unfinished explains an error of the JSON decoder on a line.
func unfinished(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON object is truncated")
	}
	return fmt.Errorf("not JSON: %w", err)
}

// metadata collects the lines of a metadata file.
type metadata struct {
	keys  []string // of the first line, without file_name
	names []string
	cells [][]string // by column
	seen  map[string]bool
}

func (m *metadata) add(keys, values []string) error {
	at := slices.Index(keys, "file_name")
	if at < 0 || len(values) != len(keys) {
		return errors.New("no file_name")
	}
	name := path.Clean(filepath.ToSlash(values[at]))
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("file_name %q leads out of the folder; use a path within it", values[at])
	}
	keys, values = without(keys, at), without(values, at)
	if m.seen == nil {
		m.keys, m.seen, m.cells = keys, map[string]bool{}, make([][]string, len(keys))
	}
	if !slices.Equal(keys, m.keys) {
		return fmt.Errorf("columns %q differ from those of the first line, %q", keys, m.keys)
	}
	if m.seen[name] {
		return fmt.Errorf("%s is listed twice", name)
	}
	m.seen[name] = true
	for k, v := range values {
		if v == "" {
			return fmt.Errorf("%s is empty for %s; every image needs a value", m.keys[k], name)
		}
		m.cells[k] = append(m.cells[k], v)
	}
	m.names = append(m.names, name)
	return nil
}

func without[T any](s []T, i int) []T { return slices.Delete(slices.Clone(s), i, i+1) }

func (m *metadata) done() ([]string, []column, error) {
	if len(m.names) == 0 {
		return nil, nil, errors.New("no images are listed")
	}
	columns := make([]column, len(m.keys))
	for k, name := range m.keys {
		columns[k] = column{name, m.cells[k]}
	}
	return m.names, columns, nil
}
