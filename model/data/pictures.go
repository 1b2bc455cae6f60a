package data

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // pictures may be JPEG
	_ "image/png"  // or PNG
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// pictureSource is a dataset of picture files, in a folder or a zip archive.
type pictureSource struct {
	info   Info
	labels []uint16
	files  tree
	name   func(index int) string // path of a picture in files
}

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

func (s *pictureSource) Stream(ctx context.Context, first int, yield func(first int, images []byte) error) error {
	each := side * side * s.info.C
	canvases := make([]canvas, runtime.GOMAXPROCS(0))
	return ahead(ctx, first, s.info.Len, picturesAtOnce, each, func(dst []byte, first int) error {
		return onAllCores(len(dst)/each, func(worker, i int) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			img, err := decode(s.files, s.name(first+i))
			if err != nil {
				return err
			}
			if s.info.C == 1 && !grey(img) {
				return fmt.Errorf("%s: picture %s is in colour, and the first one is grey", s.files, s.name(first+i))
			}
			canvases[worker].picture(dst[i*each:(i+1)*each], img, s.info.C)
			return nil
		})
	}, yield)
}

// Bounds of a picture file.
const (
	maxFile   = 256 << 20 // bytes
	maxPixels = 1 << 26   // 8192 × 8192
)

// decode reads a picture. Its size is held against its file's before room is made for it.
func decode(t tree, name string) (image.Image, error) {
	b, err := t.read(name)
	if err != nil {
		return nil, fmt.Errorf("%s: picture %s: %w", t, name, err)
	}
	img, err := decodeBytes(b)
	if err != nil {
		return nil, fmt.Errorf("%s: picture %s: %w", t, name, err)
	}
	return img, nil
}

func decodeBytes(b []byte) (image.Image, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is no PNG or JPEG, or it is damaged: %w", err)
	case c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height || c.Width*c.Height/8 > len(b)*1040:
		return nil, fmt.Errorf("%d × %d pixels in %d bytes are too many", c.Width, c.Height, len(b))
	}
	img, _, err := image.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("it is damaged or incomplete: %w", err)
	}
	return img, nil
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
		return nil, errors.New("it is a link or no regular file, which is not read")
	}
	if stat.Size() > maxFile {
		return nil, fmt.Errorf("it has %d bytes; more than %d are not read", stat.Size(), maxFile)
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
	file  *os.File
	files map[string]*zip.File // by path below the folder
}

// openZip opens an archive; below says which of its folders is meant, by a file that is in it. Only files below that folder are
// kept in mind.
func openZip(file string, below string) (*zipTree, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	t := &zipTree{file: f, files: map[string]*zip.File{}}
	if err := t.index(below); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

func (t *zipTree) index(below string) error {
	stat, err := t.file.Stat()
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(t.file, stat.Size())
	if err != nil {
		return fmt.Errorf("it is no zip archive, or it is incomplete: %w", err)
	}
	prefix, found := "", below == ""
	for _, member := range archive.File {
		if rest, ok := strings.CutSuffix(member.Name, below); !found && ok && (rest == "" || strings.HasSuffix(rest, "/")) {
			prefix, found = rest, true
		}
	}
	if !found {
		return fmt.Errorf("there is no %s in it", below)
	}
	for _, member := range archive.File {
		if name, ok := strings.CutPrefix(member.Name, prefix); ok && member.Mode().IsRegular() && fs.ValidPath(name) && !strings.HasPrefix(name, "__MACOSX/") {
			t.files[name] = member
		}
	}
	return nil
}

func (t *zipTree) String() string { return t.file.Name() }
func (t *zipTree) Close() error   { return t.file.Close() }

func (t *zipTree) list() ([]string, error) { return slices.Sorted(maps.Keys(t.files)), nil }

// enter makes the folder that holds everything, where there is one, the root.
func (t *zipTree) enter() {
	top := ""
	for name := range t.files {
		folder, _, nested := strings.Cut(name, "/")
		if !nested || top != "" && folder != top {
			return
		}
		top = folder
	}
	inside := make(map[string]*zip.File, len(t.files))
	for name, member := range t.files {
		inside[strings.TrimPrefix(name, top+"/")] = member
	}
	t.files = inside
}

func (t *zipTree) read(name string) ([]byte, error) {
	member := t.files[name]
	if member == nil {
		return nil, fs.ErrNotExist
	}
	size := member.UncompressedSize64
	if size > maxFile || size > (member.CompressedSize64+1)*1040 {
		return nil, fmt.Errorf("it claims to unpack from %d to %d bytes, which is not read", member.CompressedSize64, size)
	}
	r, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("it is damaged or incomplete: %w", err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF { // the checksum is verified here
		return nil, fmt.Errorf("it is damaged: %w", errors.Join(err, zip.ErrFormat))
	}
	return b, nil
}
