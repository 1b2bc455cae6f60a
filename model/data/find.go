package data

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slotscope/model"
)

// LayoutVariable is the environment variable for a folder of published files in the layout of disentanglement_lib.
const LayoutVariable = "DISENTANGLEMENT_LIB_DATA"

// find looks for the files of a published dataset in the usual places: its downloads, the data folder, and disentanglement_lib's folder.
func (c Catalogue) find(p *Published) (form int, paths []string, ok bool) {
	folders := []string{filepath.Join(c.setDir(p.Info.Name), filesDir), c.Dir}
	if dir := os.Getenv(LayoutVariable); dir != "" {
		folders = append(folders, dir)
	}
	for i := range p.Forms {
		if paths, ok := p.Forms[i].in(folders...); ok {
			return i, paths, true
		}
	}
	return 0, nil, false
}

// in looks for all files of a form in some folders; they may be in different ones.
func (f Form) in(folders ...string) (paths []string, ok bool) {
	for _, file := range f.Files {
		path, found := file.in(folders)
		if !found {
			return nil, false
		}
		paths = append(paths, path)
	}
	return paths, len(paths) > 0
}

func (f File) in(folders []string) (path string, found bool) {
	for _, dir := range folders {
		for _, name := range []string{f.Layout, f.Name} {
			if name == "" {
				continue
			}
			path := filepath.Join(dir, filepath.FromSlash(name))
			if stat, err := os.Stat(path); err == nil && stat.IsDir() == f.Folder {
				return path, true
			}
		}
	}
	return "", false
}

// match finds the published form that a path belongs to: the path is one of its files, or a folder that holds them.
func match(path string, isDir bool) (p *Published, form int, paths []string, ok bool) {
	for i := range published {
		for k, f := range published[i].Forms {
			if paths, ok := f.at(path, isDir); ok {
				return &published[i], k, paths, true
			}
		}
	}
	return nil, 0, nil, false
}

// at looks for a form at a path.
func (f Form) at(path string, isDir bool) (paths []string, ok bool) {
	if isDir {
		if paths, ok := f.in(path); ok {
			return paths, true
		}
	}
	belongs := slices.ContainsFunc(f.Files, func(f File) bool { return f.Folder == isDir && f.Name == filepath.Base(path) })
	if !belongs {
		return nil, false
	}
	return f.in(filepath.Dir(path))
}

// matchURL finds the published form that a URL or file name belongs to.
func matchURL(url, name string) (p *Published, form int, ok bool) {
	for _, same := range []func(f File) bool{
		func(f File) bool { return f.URL == url },
		func(f File) bool { return f.Name == name },
	} {
		for i := range published {
			for k, f := range published[i].Forms {
				if slices.ContainsFunc(f.Files, same) && (len(f.Files) == 1 || f.downloadable()) {
					return &published[i], k, true
				}
			}
		}
	}
	return nil, 0, false
}

// recognise finds the format of a user's own file or folder.
func recognise(path string, isDir bool) (Format, error) {
	head, err := headOf(path, isDir)
	if err != nil {
		return Format{}, err
	}
	var names []string
	for _, f := range formats {
		if f.Match(path, head) {
			return f, nil
		}
		names = append(names, f.Name)
	}
	readable := "not a supported format"
	if len(names) > 0 {
		readable = strings.Join(names, ", ")
	}
	return Format{}, model.Invalid{"from": fmt.Sprintf("%s is neither a published dataset nor in a supported format; these are read: %s", path, readable)}
}

// headOf returns the first bytes of a file, at most 512; nil for a folder.
func headOf(path string, isDir bool) ([]byte, error) {
	if isDir {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := f.Read(head)
	if n == 0 && errors.Is(err, io.EOF) {
		return nil, model.Invalid{"from": path + " is empty"}
	}
	if n == 0 {
		return nil, model.Invalid{"from": fmt.Sprintf("%s cannot be read: %v", path, reason(err))}
	}
	return head[:n], nil
}
