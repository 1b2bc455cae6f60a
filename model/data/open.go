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

// Catalogue is the datasets of one data folder: those that the program draws, those that were added, and those of others that it
// knows how to read. Its methods may be called from several goroutines, and several processes may use one folder.
type Catalogue struct {
	Dir    string
	Limits Limits // of what is added
}

// List describes the datasets that Open can open now.
func (c Catalogue) List(ctx context.Context) []Info {
	var infos []Info
	for _, e := range c.Entries(ctx) {
		if e.State == Ready {
			infos = append(infos, e.Info)
		}
	}
	return infos
}

// Open opens a dataset by name, or a part of one by a name with a selection in brackets. Opening is quick: what takes long is done
// when images are asked for, or by a Warmer.
func (c Catalogue) Open(ctx context.Context, name string) (Set, error) {
	return openPart(ctx, name, func(base string) (Set, error) { return c.openWhole(ctx, base, 0) })
}

// aliasDepth bounds how often a registered part may be a part of another.
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
		return nil, specError("%s is a part of a part of a part …", name)
	}
	set, err := openPart(ctx, r.Part, func(base string) (Set, error) { return c.openWhole(ctx, base, depth+1) })
	if err != nil {
		return nil, err
	}
	return renamed{set, r.Info}, nil
}

// unknown says why a name cannot be opened, and what can.
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

// drawnSet is one that the program draws itself.
type drawnSet struct {
	info *Info
	open func() Set
}

var drawn = []drawnSet{{&shapes3dInfo, openShapes3D}, {&dspritesDrawnInfo, openDSpritesDrawn}}

// IsDrawn says whether a name, with or without a selection, means images of the program's own, which are the same for good. What was
// added can be removed, and another set take its name.
func IsDrawn(name string) bool {
	base, _, err := splitSpec(name)
	return err == nil && slices.ContainsFunc(drawn, func(d drawnSet) bool { return d.info.Name == base })
}

// renamed is a set under another name and title.
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

// notFound is a dataset that is not in the folder.
func notFound(name string) error {
	return fmt.Errorf("there is no dataset %q in the data folder: %w", name, model.ErrNotFound)
}
