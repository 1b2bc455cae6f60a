package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // pictures may be in any of these formats
	_ "image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"

	"slotscope/model/format/exif"
	"slotscope/model/format/regular"
	"slotscope/model/format/zipfile"
)

// pictureSource is a dataset of picture files, in a folder or a zip archive.
type pictureSource struct {
	info   Info
	labels []uint16
	files  tree
	name   func(index int) string // path of a picture in files
	told   func(index int, d damaged) error
	others otherSizes
}

// otherSizes notes the first picture of another size than that which the description of the set names.
type otherSizes struct {
	named image.Point // zero where the set has one size by its format
	mu    sync.Mutex
	index int
	size  image.Point // zero while none was met
}

func (o *otherSizes) see(index int, size image.Point) {
	if o == nil || o.named == (image.Point{}) || size == o.named {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size == (image.Point{}) || index < o.index {
		o.index, o.size = index, size
	}
}

// note is a sentence on what was met; empty where all pictures are of one size.
func (o *otherSizes) note() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size == (image.Point{}) {
		return ""
	}
	text := fmt.Sprintf("Pictures differ in size: that of image %d is %d × %d, and is brought to %d × %d too", o.index, o.size.X, o.size.Y, side, side)
	if o.size.X != o.size.Y {
		text += ", which changes its proportions"
	}
	return text + "."
}

func (s *pictureSource) remark() string { return s.others.note() }

// tree is a folder or an archive. Paths have slashes; none leads out of it.
type tree interface {
	io.Closer
	// read returns the content of a file; fs.ErrNotExist is in the chain where there is none.
	read(name string) ([]byte, error)
	// list names all files, in order.
	list() ([]string, error)
	// String is what errors call it.
	String() string
}

func (s *pictureSource) Info() Info       { return s.info.clone() }
func (s *pictureSource) Labels() []uint16 { return s.labels }
func (s *pictureSource) Close() error     { return s.files.Close() }

// picturesAtOnce is how many pictures are decoded together.
const picturesAtOnce = 128

func (s *pictureSource) forgive(tell func(int, damaged) error) { s.told = tell }

func (s *pictureSource) Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	p := pictures{s.info, s.told, s.where, &s.others, func(i int) (image.Image, error) { return decode(s.files, s.name(i)) }}
	return p.stream(ctx, first, yield)
}

func (s *pictureSource) where(index int) string {
	return fmt.Sprintf("%s: picture %s", s.files, s.name(index))
}

// pictures streams what decode gives.
type pictures struct {
	info   Info
	told   func(index int, d damaged) error // of damaged pictures, which then stay black; nil where they end the stream
	where  func(index int) string           // for sentences
	others *otherSizes                      // nil where nobody asks
	decode func(index int) (image.Image, error)
}

func (p pictures) stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	each := side * side * p.info.C
	canvases := make([]canvas, runtime.GOMAXPROCS(0))
	return ahead(ctx, first, p.info.Len, picturesAtOnce, each, func(dst []byte, first int) error {
		return onAllCores(len(dst)/each, func(worker, i int) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return p.paint(&canvases[worker], dst[i*each:(i+1)*each], first+i)
		})
	}, yield)
}

// paint decodes one picture and brings it to size.
func (p pictures) paint(c *canvas, dst []byte, index int) error {
	img, err := p.decode(index)
	if d := (damaged{}); errors.As(err, &d) && p.told != nil {
		clear(dst)
		return p.told(index, d)
	}
	if err != nil {
		return err
	}
	if p.info.C == 1 && !grey(img) {
		return fmt.Errorf("%s is in colour, and the first one is grey", p.where(index))
	}
	p.others.see(index, img.Bounds().Size())
	c.picture(dst, img, p.info.C)
	return nil
}

// Bounds of a picture file.
const (
	maxFile   = 256 << 20 // bytes
	maxPixels = 1 << 26   // 8192 × 8192
)

// decode reads a picture. Its size is held against its file's before room is made for it.
func decode(t tree, name string) (image.Image, error) {
	b, err := t.read(name)
	if errors.Is(err, zipfile.ErrUnsupported) {
		return nil, fmt.Errorf("%s: picture %s: %w", t, name, err) // not damaged: none of it can be read
	}
	var img image.Image
	if err == nil {
		img, err = decodeBytes(b)
	}
	if err != nil {
		return nil, damaged{name, fmt.Errorf("%s: picture %s: %w", t, name, err)}
	}
	return img, nil
}

func decodeBytes(b []byte) (image.Image, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a PNG, JPEG, WebP, BMP, TIFF or GIF, or it is damaged: %w", err)
	case c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height || c.Width*c.Height/8 > len(b)*1040:
		return nil, fmt.Errorf("%d × %d pixels in %d bytes are too many", c.Width, c.Height, len(b))
	}
	img, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("it is damaged or incomplete: %w", err)
	}
	return exif.Upright(img, b), nil
}

// folderTree is a folder; what links lead out of it is not read.
type folderTree struct {
	*os.Root
	path string
}

func openFolder(path string) (*folderTree, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folderTree{root, path}, nil
}

func (t *folderTree) String() string { return t.path }

func (t *folderTree) read(name string) ([]byte, error) {
	stat, err := t.Lstat(name)
	if err != nil {
		return nil, reason(err)
	}
	if !stat.Mode().IsRegular() {
		return nil, errors.New("it is a link or no regular file (unsupported)")
	}
	if stat.Size() > maxFile {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", stat.Size(), maxFile)
	}
	f, err := t.Open(name)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func (t *folderTree) list() (names []string, err error) {
	err = fs.WalkDir(t.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			err = fmt.Errorf("%s is a link, which is not followed", name)
		}
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// reason is an error without the path that is said already.
func reason(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// zipTree is a zip archive, of which one folder is read.
type zipTree struct {
	file    *os.File
	archive *zipfile.Archive
	files   []member // in order of name
}

// member is a file of an archive: its path below the folder, and where it is.
type member struct {
	name  string
	entry zipfile.Entry
}

// openZip opens an archive; below says which of its folders is meant, by a file that is in it. Only files below that folder are
// kept in mind.
func openZip(path string, below string) (*zipTree, error) {
	return regular.Open(path, func(file *os.File, size int64) (*zipTree, error) {
		archive, err := zipfile.Open(file, size)
		if err != nil {
			return nil, err
		}
		t := &zipTree{file: file, archive: archive}
		return t, t.index(below)
	})
}

func (t *zipTree) index(below string) error {
	prefix, err := t.above(below)
	if err != nil {
		return err
	}
	t.files = make([]member, 0, t.archive.Len())
	err = t.archive.Files(func(file []byte, e zipfile.Entry) error {
		rest, ok := bytes.CutPrefix(file, []byte(prefix))
		if !ok || bytes.HasPrefix(rest, []byte("__MACOSX/")) {
			return nil
		}
		name, err := inside(string(rest))
		t.files = append(t.files, member{name, e})
		return err
	})
	slices.Reverse(t.files) // of several of one name the last is meant
	slices.SortStableFunc(t.files, byName)
	t.files = slices.CompactFunc(t.files, func(a, b member) bool { return a.name == b.name })
	return err
}

// inside is the path of a file in an archive, which may not lead out of it.
func inside(name string) (string, error) {
	if fs.ValidPath(name) {
		return name, nil
	}
	if !utf8.ValidString(name) {
		return "", fmt.Errorf("the name %q in it is not UTF-8", name)
	}
	if name := path.Clean(name); fs.ValidPath(name) && name != "." {
		return name, nil
	}
	return "", fmt.Errorf("the file %q in it leads out of the archive", name)
}

func byName(a, b member) int { return strings.Compare(a.name, b.name) }

// above is the folder, with a slash after it, in which a file is.
func (t *zipTree) above(file string) (folder string, err error) {
	if file == "" {
		return "", nil
	}
	found := false
	err = t.archive.Files(func(name []byte, _ zipfile.Entry) error {
		if rest, ok := bytes.CutSuffix(name, []byte(file)); !found && ok && (len(rest) == 0 || bytes.HasSuffix(rest, []byte("/"))) {
			folder, found = string(rest), true
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("there is no %s in it", file)
	}
	return folder, err
}

func (t *zipTree) String() string { return t.file.Name() }
func (t *zipTree) Close() error   { return t.file.Close() }

func (t *zipTree) list() ([]string, error) {
	names := make([]string, len(t.files))
	for i, f := range t.files {
		names[i] = f.name
	}
	return names, nil
}

// enter makes the folder that holds everything, where there is one, the root.
func (t *zipTree) enter() {
	if len(t.files) == 0 {
		return
	}
	top, _, nested := strings.Cut(t.files[0].name, "/")
	if top += "/"; !nested || !strings.HasPrefix(t.files[len(t.files)-1].name, top) {
		return // names are in order: what the first and the last begin with, all do
	}
	for i := range t.files {
		t.files[i].name = t.files[i].name[len(top):]
	}
}

func (t *zipTree) find(name string) (zipfile.Entry, bool) {
	i, found := slices.BinarySearchFunc(t.files, member{name: name}, byName)
	if !found {
		return zipfile.Entry{}, false
	}
	return t.files[i].entry, true
}

func (t *zipTree) read(name string) ([]byte, error) {
	e, found := t.find(name)
	if !found {
		return nil, fs.ErrNotExist
	}
	return t.archive.Read(e, maxFile)
}
