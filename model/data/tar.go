package data

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"slotscope/model/format/regular"
)

// tarTree is a tar archive. A compressed archive is unpacked to an unlinked temporary file, since images are read in any order.
type tarTree struct {
	path  string
	file  *os.File
	files []tarMember // in order of name
}

type tarMember struct {
	name     string
	at, size int64
}

func isTarGz(path string) bool {
	name := strings.ToLower(path)
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

func openTar(ctx context.Context, path string) (*tarTree, error) {
	return regular.Open(path, func(file *os.File, _ int64) (*tarTree, error) {
		t := &tarTree{path: path, file: file}
		if isTarGz(path) {
			plain, err := gunzipped(ctx, file)
			if err != nil {
				return nil, err
			}
			_ = file.Close()
			t.file = plain
		}
		if err := t.index(ctx); err != nil {
			_ = t.file.Close()
			return nil, err
		}
		return t, nil
	})
}

// gunzipped unpacks a file to an unlinked temporary file.
func gunzipped(ctx context.Context, file *os.File) (*os.File, error) {
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("not a gzip file: %w", err)
	}
	out, err := os.CreateTemp("", "slotscope-*.tar")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(out.Name())
	_, err = io.Copy(out, untilDone{ctx, z})
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("unpacking to a temporary file in %s: %w", os.TempDir(), err)
	}
	return out, nil
}

// untilDone is a Reader that fails once its context ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// index records the position of every regular file.
func (t *tarTree) index(ctx context.Context) error {
	r := tar.NewReader(t.file)
	for {
		head, err := r.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged or incomplete after %d files: %w", len(t.files), err)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		name, err := inside(path.Clean(head.Name))
		if err != nil {
			return err
		}
		at, err := t.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		t.files = append(t.files, tarMember{name, at, head.Size})
	}
	slices.Reverse(t.files) // the last of several files of the same name counts
	slices.SortStableFunc(t.files, func(a, b tarMember) int { return strings.Compare(a.name, b.name) })
	t.files = slices.CompactFunc(t.files, func(a, b tarMember) bool { return a.name == b.name })
	return nil
}

func (t *tarTree) String() string { return t.path }
func (t *tarTree) Close() error   { return t.file.Close() }

func (t *tarTree) list() ([]string, error) {
	names := make([]string, len(t.files))
	for i, f := range t.files {
		names[i] = f.name
	}
	return names, nil
}

func (t *tarTree) read(name string) ([]byte, error) {
	i, found := slices.BinarySearchFunc(t.files, name, func(f tarMember, name string) int { return strings.Compare(f.name, name) })
	if !found {
		return nil, fs.ErrNotExist
	}
	f := t.files[i]
	if f.size > maxFile {
		return nil, fmt.Errorf("the file is too large: %s (limit %s)", Bytes(f.size), Bytes(maxFile))
	}
	stat, err := t.file.Stat()
	if err != nil {
		return nil, err
	}
	if f.size > stat.Size()-f.at {
		return nil, errors.New("the archive is truncated before the end of the file")
	}
	b := make([]byte, f.size)
	_, err = t.file.ReadAt(b, f.at)
	return b, err
}
