package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"slotscope/model"
)

// Catalogue is the set of datasets of one data folder: those drawn by the program, those added, and the published ones that it can
// read. Its methods are safe for concurrent use, and several processes may share one folder.
type Catalogue struct {
	Dir    string
	Limits Limits // of what is added
}

// List describes the datasets that are ready to open.
func (c Catalogue) List(ctx context.Context) []Info {
	var infos []Info
	for _, e := range c.Entries(ctx) {
		if e.State == Ready {
			infos = append(infos, e.Info)
		}
	}
	return infos
}

// Open opens a dataset by name, or a part of one by a name with a selection in brackets. Opening is quick; slow work is done when
// images are first read, or by a Warmer.
func (c Catalogue) Open(ctx context.Context, name string) (Set, error) {
	return openPart(ctx, name, func(base string) (Set, error) { return c.openWhole(ctx, base, 0) })
}

// aliasDepth limits how deeply registered parts may be nested.
const aliasDepth = 8

func (c Catalogue) openWhole(ctx context.Context, name string, depth int) (Set, error) {
	for _, d := range drawn {
		if d.info.Name == name {
			return d.open(), nil
		}
	}
	if !validName(name) {
		return nil, c.unknown(ctx, name)
	}
	r, err := c.record(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, c.unknown(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening dataset %s: %w", name, err)
	}
	if r.Part == "" {
		return c.openAdded(ctx, r)
	}
	if depth == aliasDepth {
		return nil, specError("%s is a part of a part, nested more than %d deep; name a part of the whole dataset instead", name, aliasDepth)
	}
	set, err := openPart(ctx, r.Part, func(base string) (Set, error) { return c.openWhole(ctx, base, depth+1) })
	if err != nil {
		return nil, err
	}
	return renamed{set, r.Info}, nil
}

// unknown returns an error that says why a name cannot be opened, and which names can.
func (c Catalogue) unknown(ctx context.Context, name string) error {
	var ready []string
	for _, e := range c.Entries(ctx) {
		if e.Info.Name == name {
			return specError("%s", e.Why())
		}
		if e.State == Ready {
			ready = append(ready, e.Info.Name)
		}
	}
	return specError("unknown dataset %q; available: %s", name, strings.Join(ready, ", "))
}

// List is Catalogue.List of a data folder.
func List(ctx context.Context, dataDir string) []Info { return Catalogue{Dir: dataDir}.List(ctx) }

// Open is Catalogue.Open of a data folder.
func Open(ctx context.Context, name, dataDir string) (Set, error) {
	return Catalogue{Dir: dataDir}.Open(ctx, name)
}

// drawnSet is a dataset drawn by the program.
type drawnSet struct {
	info *Info
	open func() Set
}

var drawn = []drawnSet{{&shapes3dInfo, openShapes3D}, {&dspritesDrawnInfo, openDSpritesDrawn}}

// IsDrawn reports whether a name, with or without a selection, is that of a dataset drawn by the program, whose images never change.
// Any other dataset can be removed and another one added under its name.
func IsDrawn(name string) bool {
	base, _, err := splitSpec(name)
	return err == nil && slices.ContainsFunc(drawn, func(d drawnSet) bool { return d.info.Name == base })
}

// renamed is a Set under another name and title.
type renamed struct {
	Set
	info Info
}

func (r renamed) Info() Info {
	info := r.Set.Info()
	info.Name, info.Title = r.info.Name, r.info.Title
	return info
}

func (r renamed) Warm(ctx context.Context) error {
	if w, ok := r.Set.(Warmer); ok {
		return w.Warm(ctx)
	}
	return nil
}

func (r renamed) identity() string {
	if id, ok := r.Set.(identified); ok {
		return id.identity()
	}
	return r.info.Name
}

// notFound returns the error for a dataset that is not in the data folder.
func notFound(name string) error {
	return fmt.Errorf("there is no dataset %q in the data folder: %w", name, model.ErrNotFound)
}
