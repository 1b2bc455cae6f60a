package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"slotscope/model/format/parquet"
)

// parquetFormat reads image datasets in the layout of Hugging Face: a Parquet file, or a folder of them in order of name.
var parquetFormat = Format{
	Name: "Parquet files with a column of images, as those of Hugging Face",
	Match: func(path string, head []byte) bool {
		return bytes.HasPrefix(head, []byte("PAR1")) || head == nil && len(shards(path)) > 0
	},
	Open: func(_ context.Context, path string, _ Reading) (Source, error) {
		paths := shards(path)
		if len(paths) == 0 {
			paths = []string{path}
		}
		s := &parquetSource{cache: map[int][][]byte{}}
		if err := s.open(path, paths); err != nil {
			_ = s.Close()
			return nil, err
		}
		return s, nil
	},
}

// shards returns the Parquet files of a folder, or of its subfolder data.
func shards(dir string) []string {
	for _, pattern := range []string{"*.parquet", "data/*.parquet"} {
		if names, err := fs.Glob(os.DirFS(dir), pattern); err == nil && len(names) > 0 {
			for i := range names {
				names[i] = filepath.Join(dir, filepath.FromSlash(names[i]))
			}
			return names
		}
	}
	return nil
}

// parquetSource is a dataset whose images are encoded image files in a column.
type parquetSource struct {
	info   Info
	labels []uint16
	files  []*parquet.File
	groups []pictureGroup

	told   func(index int, d damaged) error
	others otherSizes
	holds  Contents

	mu    sync.Mutex
	cache map[int][][]byte // encoded images of the groups being read
}

// pictureGroup is a row group with images.
type pictureGroup struct {
	file   *parquet.File
	path   string
	group  int
	column int
	first  int // index of its first image
}

func (s *parquetSource) Info() Info         { return s.info.clone() }
func (s *parquetSource) contents() Contents { return s.holds }

func (s *parquetSource) Labels() []uint16 { return s.labels }

func (s *parquetSource) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func (s *parquetSource) open(path string, paths []string) error {
	var columns []column
	var left []string
	for i, shard := range paths {
		f, err := parquet.Open(shard)
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
		images, err := s.add(f, shard)
		if err != nil {
			return err
		}
		names, lists := factorColumns(f, images)
		if i == 0 {
			left = lists
			s.holds = Contents{Used: []string{"images: column " + f.Columns[images].Path}, Unused: lists}
			for _, name := range names {
				columns = append(columns, column{name: name})
			}
		}
		for k := range columns {
			if err := columns[k].read(f, shard, names); err != nil {
				return err
			}
		}
	}
	if s.info.Len == 0 {
		return fmt.Errorf("%s has no rows", path)
	}
	return s.describe(path, columns, left)
}

// add appends the row groups of a file and returns its column of images.
func (s *parquetSource) add(f *parquet.File, path string) (images int, err error) {
	images = slices.IndexFunc(f.Columns, isImage)
	if images < 0 {
		return 0, fmt.Errorf("%s has no column of images; name it image, img or images, or give it the fields bytes and path", path)
	}
	stat, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if int64(f.Len()) > stat.Size() {
		return 0, fmt.Errorf("%s is damaged: it claims %d rows in %d bytes", path, f.Len(), stat.Size())
	}
	for g := range f.Groups {
		s.groups = append(s.groups, pictureGroup{f, path, g, images, s.info.Len})
		s.info.Len += f.Groups[g].Rows
	}
	return images, nil
}

func isImage(c parquet.Column) bool {
	return c.Type == parquet.ByteArray && !c.Repeated &&
		(strings.HasSuffix(c.Path, ".bytes") || slices.Contains([]string{"image", "img", "images"}, c.Path))
}

// factorColumns returns the names of all columns except the image's: scalar columns, and lists, which are not read.
func factorColumns(f *parquet.File, images int) (names, lists []string) {
	image := strings.TrimSuffix(f.Columns[images].Path, ".bytes")
	for i, c := range f.Columns {
		switch {
		case i == images || c.Path == image+".path":
		case c.Repeated:
			lists = append(lists, c.Path)
		default:
			names = append(names, c.Path)
		}
	}
	return names, lists
}

// read appends a column's values of all rows of a file.
func (c *column) read(f *parquet.File, path string, names []string) error {
	i, err := f.Column(c.name)
	if err != nil || !slices.Contains(names, c.name) {
		return fmt.Errorf("%s has no column %q; all files of a dataset need the columns of the first", path, c.name)
	}
	for g := range f.Groups {
		v, err := f.Read(g, i)
		if err != nil {
			return err
		}
		texts, err := f.Columns[i].Strings(v)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.values = append(c.values, texts...)
	}
	return nil
}

func (s *parquetSource) describe(path string, columns []column, left []string) (err error) {
	s.info.H, s.info.W, s.info.C = side, side, 3
	s.info.About = fmt.Sprintf("The images of %s.", filepath.Base(path))
	img, err := firstPicture(s.info.Len, s.decode)
	if err != nil {
		return err
	}
	if grey(img) && !anyColour(min(s.info.Len, headersRead), s.encoded) {
		s.info.C = 1
	}
	s.holds.Scaling, s.others.named = fit(img.Bounds().Dy(), img.Bounds().Dx()), img.Bounds().Size()
	columns, remark := withoutIndex(columns)
	if len(left) > 0 {
		s.holds.Remarks = append(s.holds.Remarks, "Columns of lists are ignored: "+strings.Join(left, ", ")+".")
	}
	if remark != "" {
		s.holds.Remarks = append(s.holds.Remarks, remark)
	}
	s.info.Note = sentences(append([]string{s.holds.Scaling}, s.holds.Remarks...)...)
	if info, labels, ok := shapes3DOf(columns, s.info.Len); ok && s.info.C == info.C && img.Bounds().Size() == image.Pt(side, side) {
		s.info, s.labels = info, labels
		return nil
	}
	if s.info.Factors, s.labels, s.info.Complete, err = classify(columns, s.info.Len); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (s *parquetSource) Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	return pictures{s.info, s.told, s.where, &s.others, s.decode}.stream(ctx, first, yield)
}

func (s *parquetSource) remark() string { return s.others.note() }

func (s *parquetSource) forgive(tell func(int, damaged) error) { s.told = tell }

// decode reads one image; errors name the file and the row.
func (s *parquetSource) decode(index int) (image.Image, error) {
	file, err := s.encoded(index)
	if err != nil {
		return nil, err
	}
	img, err := decodeBytes(file)
	if err != nil {
		where := s.where(index)
		return nil, damaged{where, fmt.Errorf("%s: %w", where, err)}
	}
	return img, nil
}

// encoded returns the file of one image.
func (s *parquetSource) encoded(index int) ([]byte, error) {
	g, row := s.find(index)
	pictures, err := s.pictures(g)
	if err != nil {
		return nil, err
	}
	return pictures[row], nil
}

// find returns the group of an image and its row in the group.
func (s *parquetSource) find(index int) (group, row int) {
	g, found := slices.BinarySearchFunc(s.groups, index, func(g pictureGroup, i int) int { return g.first - i })
	if !found {
		g--
	}
	for s.groups[g].first+s.groups[g].file.Groups[s.groups[g].group].Rows <= index {
		g++ // skip groups without rows
	}
	return g, index - s.groups[g].first
}

func (s *parquetSource) where(index int) string {
	g, row := s.find(index)
	return fmt.Sprintf("%s: the image in row %d of row group %d", s.groups[g].path, row, s.groups[g].group)
}

// pictures returns the encoded images of a group. It caches the group and the one before it, since a batch may span both.
func (s *parquetSource) pictures(g int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pictures, ok := s.cache[g]; ok {
		return pictures, nil
	}
	maps.DeleteFunc(s.cache, func(kept int, _ [][]byte) bool { return kept != g-1 })
	v, err := s.groups[g].file.Read(s.groups[g].group, s.groups[g].column)
	if err != nil {
		return nil, err
	}
	s.cache[g] = v.Bytes
	return v.Bytes, nil
}
