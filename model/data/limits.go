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

// Limits bound what may be added on behalf of a visitor. The zero Limits are those of the operator: none.
type Limits struct {
	Roots  []string // absolute folders that paths must lie in; nil for anywhere
	Public bool     // download from servers of the public internet alone
}

// checkWritten refuses a path that is written as one outside of the roots, before anything tells whether it exists.
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

// checkReal refuses paths that links lead out of the roots.
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

// holds says whether a path without links lies in a root, links in whose own name are followed.
func (l Limits) holds(real string) bool {
	for _, root := range l.Roots {
		if at, err := filepath.EvalSymlinks(root); err == nil && within(at, real) {
			return true
		}
	}
	return false
}

func (l Limits) outside(path string) error {
	return model.Invalid{"from": fmt.Sprintf("%s is outside of the folders that datasets may be added from: %s. The operator names more with --data-root", path, strings.Join(l.Roots, ", "))}
}

// within says whether a path is a folder or lies below it; both are clean.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// checkURL refuses addresses whose host is plainly not public; what names resolve to is checked when they are connected to.
func (l Limits) checkURL(address *url.URL) error {
	if !l.Public {
		return nil
	}
	if err := public.Check(address, fetch.AllowPrivate); err != nil {
		return model.Invalid{"from": err.Error()}
	}
	return nil
}

// fetcher downloads within the limits.
func (l Limits) fetcher() fetch.Fetcher {
	if l.Public {
		return fetch.Public()
	}
	return fetch.New()
}

// Root makes the path of a folder that datasets may be added from absolute; it must be there.
func Root(folder string) (string, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if !isDir(path) {
		return "", model.Invalid{"data-root": fmt.Sprintf("%s is not a folder", path)}
	}
	return path, nil
}
