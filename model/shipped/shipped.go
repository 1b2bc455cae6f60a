// Package shipped holds the trained runs that are part of the program, as run folders with their checkpoint in float16. A server,
// or a command that names one, puts them into its data folder, where they are runs like any other; the playground can use them
// without a data folder too.
//
// model/shipped/pick makes the folders from finished runs.
package shipped

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/whole"
)

//go:embed all:runs all:probes
var embedded embed.FS

// Probes are the probes that read images for the scores of the shipped runs.
func Probes() fs.FS {
	files, err := fs.Sub(embedded, "probes")
	if err != nil {
		panic(err) // the name is a valid path
	}
	return files
}

// OrderFile lists the runs, the one shown first first.
const OrderFile = "order.json"

// UsageFile holds how often each slot takes each code, counted when the run was picked; it stays in the program.
const UsageFile = "usage.json"

// Run is a run folder inside the program.
type Run struct {
	ID    string
	Files fs.FS
}

// Runs are the shipped runs, the one shown first first; none where the program was built without them.
func Runs() []Run { return all() }

var all = sync.OnceValue(func() []Run {
	runs, err := read(embedded)
	if err != nil {
		panic(err) // TestRuns reads the same files
	}
	return runs
})

func read(files fs.FS) ([]Run, error) {
	raw, err := fs.ReadFile(files, "runs/"+OrderFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	if err == nil {
		err = json.Unmarshal(raw, &ids)
	}
	if err != nil {
		return nil, fmt.Errorf("shipped runs: %w", err)
	}
	var out []Run
	for _, id := range ids {
		sub, err := fs.Sub(files, path.Join("runs", id))
		if err != nil {
			return nil, fmt.Errorf("shipped run %s: %w", id, err)
		}
		out = append(out, Run{id, sub})
	}
	return out, nil
}

// Checkpoint is the path of a run's checkpoint below Files.
func (r Run) Checkpoint() (string, error) {
	found, err := fs.Glob(r.Files, "checkpoints/step-*.safetensors")
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("shipped run %s has %d checkpoints, not one", r.ID, len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// placedFile, in a data folder, lists the shipped runs that were put into it, so that one that its owner deleted does not return.
const placedFile = "shipped.json"

// Place puts the shipped runs into a data folder, each once in the folder's life. What fails, on a full disk say, is tried again by
// the next call.
func Place(d *folder.Data) error { return place(d, Runs()) }

// PlaceNamed is Place for those of the shipped runs that are among ids.
func PlaceNamed(d *folder.Data, ids []string) error { return place(d, named(ids)) }

// Has tells whether a shipped run is among ids.
func Has(ids []string) bool { return len(named(ids)) > 0 }

func named(ids []string) (runs []Run) {
	for _, r := range Runs() {
		if slices.Contains(ids, r.ID) {
			runs = append(runs, r)
		}
	}
	return runs
}

func place(d *folder.Data, runs []Run) error {
	at := filepath.Join(d.Dir(), placedFile)
	placed, err := readPlaced(at)
	if err != nil {
		return err
	}
	before := len(placed)
	var errs []error
	for _, r := range runs {
		if slices.Contains(placed, r.ID) {
			continue
		}
		err := d.Adopt(r.ID, r.Files, func(name string) bool { return name != UsageFile })
		if err != nil && !errors.Is(err, model.ErrConflict) { // a run of that name is there: it is the owner's
			errs = append(errs, err)
			continue
		}
		placed = append(placed, r.ID)
	}
	if len(placed) > before {
		errs = append(errs, writePlaced(at, placed))
	}
	return errors.Join(errs...)
}

func readPlaced(at string) ([]string, error) {
	raw, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	if err == nil {
		err = json.Unmarshal(raw, &ids)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, the list of shipped runs that were put here, cannot be read, so none is added; delete it to have them again: %w", at, err)
	}
	return ids, nil
}

func writePlaced(at string, ids []string) error {
	raw, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return whole.Write(at, func(w *os.File) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
}
