package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"slotscope/model"
	"slotscope/model/data/fetch"
	"slotscope/model/data/pack"
	"slotscope/model/folder"
)

// Remove deletes a dataset from the data folder, with its packed images and downloads. Files elsewhere are kept. The error wraps
// model.ErrNotFound if there is no such dataset, and model.ErrConflict if a process is adding it.
func (c Catalogue) Remove(name string) error {
	for _, d := range drawn {
		if d.info.Name == name {
			return fmt.Errorf("%s is part of the program and cannot be removed: %w", name, model.ErrConflict)
		}
	}
	dir, err := c.root(name)
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(name)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	lock, err := folder.LockPath(filepath.Join(dir.Name(), lockFile), "dataset "+name)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := removeIfThere(dir, recordFile); err != nil { // first, so that a half-removed dataset does not exist
		return err
	}
	data, err := os.OpenRoot(c.Dir)
	if err != nil {
		return err
	}
	defer data.Close()
	return data.RemoveAll(filepath.Join(setsDir, name))
}

// Check verifies a dataset: packed images against their checksums, published files against the published checksums. tell receives
// progress. The error says what is wrong.
func (c Catalogue) Check(ctx context.Context, name string, tell func(Work)) error {
	base, _, err := splitSpec(name)
	if err != nil {
		return err
	}
	set, err := c.Open(ctx, name)
	if err != nil {
		return err
	}
	defer set.Close()
	r, err := c.record(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // drawn by the program
	}
	if err != nil {
		return err
	}
	if r.Part != "" {
		return c.Check(ctx, r.Part, tell)
	}
	if r.Packed {
		return c.checkPacked(ctx, r, tell)
	}
	return checkFiles(ctx, r, tell)
}

func (c Catalogue) checkPacked(ctx context.Context, r record, tell func(Work)) error {
	f, err := pack.Open(filepath.Join(c.setDir(r.Info.Name), packFile))
	if err != nil {
		return err
	}
	defer f.Close()
	report := reporter{tell: tell}
	report.stage("checking", packFile, "images")
	return f.Check(ctx, func(done int) { report.progress(int64(done), int64(f.Header().Len)) })
}

func checkFiles(ctx context.Context, r record, tell func(Work)) error {
	p := publishedByName(r.Published)
	if p == nil || !p.Forms[r.Form].summed() {
		return checkOwnSums(ctx, r, tell)
	}
	for i, f := range p.Forms[r.Form].Files {
		if f.Folder {
			continue
		}
		report := reporter{tell: tell}
		report.stage("checking", f.Name, "bytes")
		if err := fetch.Verify(ctx, r.Paths[i], fetch.Want{Bytes: f.Bytes, SHA256: f.SHA256, MD5: f.MD5}, report.progress); err != nil {
			return err
		}
	}
	return nil
}

// checkOwnSums verifies files that are used in place against the checksums that they contain, if any.
func checkOwnSums(ctx context.Context, r record, tell func(Work)) error {
	source, err := openSafely(ctx, r)
	if err != nil {
		return err
	}
	defer source.Close()
	s, ok := source.(summed)
	if !ok {
		return nil // opening compared size and time of the files
	}
	report := reporter{tell: tell}
	report.stage("checking", filepath.Base(r.Paths[0]), "bytes")
	return s.verify(ctx, report.progress)
}

// Forget removes a dataset whose adding failed, unless something was kept that another attempt could resume from.
func (c Catalogue) Forget(name string) error {
	dir, err := c.root(name)
	if err != nil {
		return nil // it has no folder
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{requestFile, workFile, lockFile}, e.Name()) {
			return nil
		}
	}
	return c.Remove(name)
}
