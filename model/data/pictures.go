package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // registers image formats
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

// pictureSource is a dataset of image files in a folder or an archive.
type pictureSource struct {
	info   Info
	labels []uint16
	files  tree
	name   func(index int) string // path of an image in files
	told   func(index int, d damaged) error
	others otherSizes
	holds  Contents
}

// otherSizes records the first image whose size differs from the one in the description of the dataset.
type otherSizes struct {
	named image.Point // zero if the format fixes the size
	mu    sync.Mutex
	index int
	size  image.Point // zero if none was seen
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

// note returns a sentence on the recorded image; empty if all images have the same size.
func (o *otherSizes) note() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size == (image.Point{}) {
		return ""
	}
	text := fmt.Sprintf("Images differ in size: image %d is %d × %d and was also scaled to %d × %d", o.index, o.size.X, o.size.Y, side, side)
	if o.size.X != o.size.Y {
		text += ", which changes its proportions"
	}
	return text + "."
}

func (s *pictureSource) remark() string { return s.others.note() }

// tree is a folder or an archive. Paths use slashes and stay within it.
type tree interface {
	io.Closer
	// read returns the content of a file; the error wraps fs.ErrNotExist if there is none.
	read(name string) ([]byte, error)
	// list returns the names of all files, in order.
	list() ([]string, error)
	// String returns the path, for messages.
	String() string
}

func (s *pictureSource) contents() Contents { return s.holds }

func (s *pictureSource) Info() Info       { return s.info.clone() }
func (s *pictureSource) Labels() []uint16 { return s.labels }
func (s *pictureSource) Close() error     { return s.files.Close() }

// picturesAtOnce is the number of images decoded together.
const picturesAtOnce = 128

func (s *pictureSource) forgive(tell func(int, damaged) error) { s.told = tell }

func (s *pictureSource) Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	p := pictures{s.info, s.told, s.where, &s.others, func(i int) (image.Image, error) { return decode(s.files, s.name(i)) }}
	return p.stream(ctx, first, yield)
}

func (s *pictureSource) where(index int) string {
	return fmt.Sprintf("%s: image %s", s.files, s.name(index))
}

// pictures streams the images that decode returns.
type pictures struct {
	info   Info
	told   func(index int, d damaged) error // receives damaged images, which stay black; nil to stop at the first
	where  func(index int) string           // names an image, for messages
	others *otherSizes                      // may be nil
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

// paint decodes one image and scales it.
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
		return fmt.Errorf("%s has colour, but the images seen first are grey; make all images colour or all grey", p.where(index))
	}
	p.others.see(index, img.Bounds().Size())
	c.picture(dst, img, p.info.C)
	return nil
}

// Limits of an image file.
const (
	maxFile   = 256 << 20 // bytes
	maxPixels = 1 << 26   // 8192 × 8192
)

// decode reads an image. It checks the number of pixels against the size of the file before allocating memory.
func decode(t tree, name string) (image.Image, error) {
	b, err := t.read(name)
	if errors.Is(err, zipfile.ErrUnsupported) {
		return nil, fmt.Errorf("%s: image %s: %w", t, name, err) // not damaged: the whole archive is unreadable
	}
	var img image.Image
	if err == nil {
		img, err = decodeBytes(b)
	}
	if err != nil {
		return nil, damaged{name, fmt.Errorf("%s: image %s: %w", t, name, err)}
	}
	return img, nil
}

func decodeBytes(b []byte) (image.Image, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	switch {
	case err != nil:
		return nil, fmt.Errorf("damaged, or not a PNG, JPEG, WebP, BMP, TIFF or GIF: %w", err)
	case c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height || c.Width*c.Height/8 > len(b)*1040:
		return nil, fmt.Errorf("%d × %d pixels are too many for a file of %s, or above the limit of %d pixels", c.Width, c.Height, Bytes(int64(len(b))), maxPixels)
	}
	img, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("damaged or incomplete: %w", err)
	}
	return exif.Upright(img, b), nil
}

// folderTree is a folder. Links that lead out of it are not followed.
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
		return nil, errors.New("links and special files are not read; replace it with a regular file")
	}
	if stat.Size() > maxFile {
		return nil, fmt.Errorf("the file is too large: %s (limit %s)", Bytes(stat.Size()), Bytes(maxFile))
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
			err = fmt.Errorf("%s is a link; links are not followed, so replace it with the file or remove it", name)
		}
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// reason returns an error without the path, which the message already has.
func reason(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// zipTree is one folder of a zip archive.
type zipTree struct {
	file    *os.File
	archive *zipfile.Archive
	files   []member // in order of name
}

// member is a file of an archive: its path below the folder and its entry.
type member struct {
	name  string
	entry zipfile.Entry
}

// openZip opens the folder of an archive that contains the file below, or the whole archive if below is empty.
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
	slices.Reverse(t.files) // the last of several files of the same name counts
	slices.SortStableFunc(t.files, byName)
	t.files = slices.CompactFunc(t.files, func(a, b member) bool { return a.name == b.name })
	return err
}

// inside returns the cleaned path of a file in an archive, or an error if it leads out of it.
func inside(name string) (string, error) {
	if fs.ValidPath(name) {
		return name, nil
	}
	if !utf8.ValidString(name) {
		return "", fmt.Errorf("the archive has the file name %q, which is not UTF-8; rename the file", name)
	}
	if name := path.Clean(name); fs.ValidPath(name) && name != "." {
		return name, nil
	}
	return "", fmt.Errorf("the archive has the file %q, whose path leads out of it; pack it again without such paths", name)
}

func byName(a, b member) int { return strings.Compare(a.name, b.name) }

// above returns the folder of a file, with a slash at its end.
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
		err = fmt.Errorf("the archive has no file %s", file)
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

// enter makes the folder that holds everything, if there is one, the root.
func (t *zipTree) enter() {
	if len(t.files) == 0 {
		return
	}
	top, _, nested := strings.Cut(t.files[0].name, "/")
	if top += "/"; !nested || !strings.HasPrefix(t.files[len(t.files)-1].name, top) {
		return // names are sorted: all share the prefix of the first and the last
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
