package data

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slotscope/model"
)

// source knows some datasets. The built-in ones need no files; a source of imported ones looks into the data folder.
type source interface {
	// list describes what it can open now.
	list(ctx context.Context, dataDir string) []Info
	// open opens one of the names that it lists.
	open(ctx context.Context, dataDir, name string) (Set, error)
}

// sources in the order in which their sets are listed; of two sets with one name the first is meant.
var sources = []source{builtin{}}

// List describes the datasets that Open can open with this data folder.
func List(ctx context.Context, dataDir string) []Info {
	var all []Info
	for _, s := range sources {
		all = append(all, s.list(ctx, dataDir)...)
	}
	return all
}

// Open opens a dataset by name. Opening is quick: what takes long is done when images are asked for, or by a Warmer.
func Open(ctx context.Context, name, dataDir string) (Set, error) {
	for _, s := range sources {
		if !slices.ContainsFunc(s.list(ctx, dataDir), func(i Info) bool { return i.Name == name }) {
			continue
		}
		set, err := s.open(ctx, dataDir, name)
		if err != nil {
			return nil, fmt.Errorf("opening dataset %s: %w", name, err)
		}
		return set, nil
	}
	return nil, unknown(name, List(ctx, dataDir))
}

func unknown(name string, have []Info) error {
	names := make([]string, len(have))
	for i := range have {
		names[i] = have[i].Name
	}
	return model.Invalid{"dataset": fmt.Sprintf("there is no dataset %q; there is %s", name, strings.Join(names, ", "))}
}

// Catalogue is the datasets of one data folder.
type Catalogue struct{ Dir string }

// List is data.List in the catalogue's folder.
func (c Catalogue) List(ctx context.Context) []Info { return List(ctx, c.Dir) }

// Open is data.Open in the catalogue's folder.
func (c Catalogue) Open(ctx context.Context, name string) (Set, error) { return Open(ctx, name, c.Dir) }

// builtin is the source of sets that the program draws itself.
type builtin struct{}

var drawn = []struct {
	info *Info
	open func() Set
}{
	{&shapes3dInfo, openShapes3D},
}

func (builtin) list(context.Context, string) []Info {
	infos := make([]Info, len(drawn))
	for i := range drawn {
		infos[i] = drawn[i].info.clone()
	}
	return infos
}

func (builtin) open(_ context.Context, _, name string) (Set, error) {
	for _, d := range drawn {
		if d.info.Name == name {
			return d.open(), nil
		}
	}
	return nil, fmt.Errorf("dataset %q: %w", name, model.ErrNotFound)
}
