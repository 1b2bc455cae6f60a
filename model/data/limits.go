package data

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"slotscope/model"
	"slotscope/model/data/fetch"
	"slotscope/model/public"
)

// Limits restricts what users may add. The zero value, for the operator, restricts nothing.
type Limits struct {
	Roots  []string // absolute folders that paths must lie in; nil for anywhere
	Public bool     // whether downloads are limited to servers on the public internet
}

// checkWritten returns an error for a path outside the roots as written. It runs before any check that reveals whether the path exists.
func (l Limits) checkWritten(path string) error {
	if l.Roots == nil {
		return nil
	}
	for _, root := range l.Roots {
		if within(root, path) {
			return nil
		}
	}
	return l.outside(path)
}

// checkReal returns an error for paths that lead out of the roots through links.
func (l Limits) checkReal(paths ...string) error {
	if l.Roots == nil {
		return nil
	}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !l.holds(real) {
			return l.outside(path)
		}
	}
	return nil
}

// holds reports whether a path without links lies in a root. Links in the paths of roots are followed.
func (l Limits) holds(real string) bool {
	for _, root := range l.Roots {
		if at, err := filepath.EvalSymlinks(root); err == nil && within(at, real) {
			return true
		}
	}
	return false
}

func (l Limits) outside(path string) error {
	return model.Invalid{"from": fmt.Sprintf("%s is outside the folders that datasets can be added from: %s. The operator can allow more folders with --data-root", path, strings.Join(l.Roots, ", "))}
}

// within reports whether a path is the folder or lies below it. Both must be clean.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkURL returns an error for URLs whose host is clearly not public. Resolved addresses are checked on connecting.
func (l Limits) checkURL(address *url.URL) error {
	if !l.Public {
		return nil
	}
	if err := public.Check(address, fetch.AllowPrivate); err != nil {
		return model.Invalid{"from": err.Error()}
	}
	return nil
}

// fetcher returns a Fetcher that respects the limits.
func (l Limits) fetcher() fetch.Fetcher {
	if l.Public {
		return fetch.Public()
	}
	return fetch.New()
}

// Root returns the absolute path of a folder that datasets may be added from. The folder must exist.
func Root(folder string) (string, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if !isDir(path) {
		return "", model.Invalid{"data-root": fmt.Sprintf("%s is not a folder; name an existing one", path)}
	}
	return path, nil
}
