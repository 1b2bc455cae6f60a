// Package shipped embeds the trained runs that ship with the program, as run folders with their checkpoint in float16. A server, or a command
// given one of their IDs, copies them to its data folder, where they are ordinary runs. The playground can also use them without a data folder.
//
// model/shipped/pick creates the folders from finished runs.
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

// Probes returns the probes used for the scores of the shipped runs.
func Probes() fs.FS {
	files, err := fs.Sub(embedded, "probes")
	if err != nil {
		panic(err) // the name is a valid path
	}
	return files
}

// OrderFile lists the run IDs in the order in which they are shown.
const OrderFile = "order.json"

// UsageFile has the code counts of each slot, from when the run was picked. It is not copied to data folders.
const UsageFile = "usage.json"

// Run is an embedded run folder.
type Run struct {
	ID    string
	Files fs.FS
}

// Runs returns the shipped runs in the order in which they are shown; none if the program was built without them.
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

// Checkpoint returns the path of a run's checkpoint in Files.
func (r Run) Checkpoint() (string, error) {
	found, err := fs.Glob(r.Files, "checkpoints/step-*.safetensors")
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("shipped run %s has %d checkpoints, want 1", r.ID, len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// placedFile is the file in a data folder that lists the shipped runs copied to it, so that deleted ones are not copied again.
const placedFile = "shipped.json"

// Place copies the shipped runs to a data folder, each only once ever. The next call retries those that failed, for example on a full disk.
func Place(d *folder.Data) error { return place(d, Runs()) }

// PlaceNamed is Place for the shipped runs in ids.
func PlaceNamed(d *folder.Data, ids []string) error { return place(d, named(ids)) }

// Has reports whether ids contains a shipped run.
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
		if err != nil && !errors.Is(err, model.ErrConflict) { // on a conflict, the existing run is the user's
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
		return nil, fmt.Errorf("cannot read %s, the list of shipped runs already copied, so none were added; delete it to copy them again: %w", at, err)
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
