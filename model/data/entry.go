package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slotscope/model/folder"
)

// State is the progress of adding a dataset to the data folder.
type State string

const (
	Ready       State = "ready"       // can be opened
	Found       State = "found"       // the published files are on this machine but not added
	Queued      State = "queued"      // waiting for another dataset to be added
	Working     State = "working"     // being downloaded, checked or packed
	Interrupted State = "interrupted" // adding stopped early and can be resumed
	Failed      State = "failed"      // adding failed, or the files have changed since
	Absent      State = "absent"      // published, but not on this machine
)

// Moving reports whether the state changes by itself.
func (s State) Moving() bool { return s == Queued || s == Working }

// Entry describes one dataset of the catalogue.
type Entry struct {
	Info      Info
	State     State
	Kind      Kind
	Paths     []string   // files that it is or would be read from
	Part      string     // for a named part: the dataset with its selection
	Disk      int64      // bytes used in the data folder
	Work      Work       // latest progress of adding it; zero if not started
	Reason    string     // why State is Failed, as a sentence
	Holder    string     // the process that is adding it, if State is Working
	Published *Published // nil for a user's own dataset
	Request   Request    // to add it, if State is Working, Interrupted or Failed; zero if none is known
}

// Kind is where the images of a dataset come from.
type Kind string

const (
	Drawn  Kind = "drawn"    // drawn by the program
	Packed Kind = "packed"   // packed in the data folder
	Placed Kind = "in place" // read from the original files
	Part   Kind = "part"     // part of another dataset
)

// Entries lists every dataset of the catalogue: drawn datasets, published ones, then the user's own by name.
func (c Catalogue) Entries(ctx context.Context) []Entry {
	var all []Entry
	for _, d := range drawn {
		all = append(all, Entry{Info: d.info.clone(), State: Ready, Kind: Drawn})
	}
	here := c.names()
	for i := range published {
		p := &published[i]
		if slices.Contains(here, p.Info.Name) {
			continue
		}
		all = append(all, c.outside(p))
	}
	for _, name := range here {
		if ctx.Err() == nil {
			all = append(all, c.inside(name))
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// rank keeps the order of the built-in lists and puts other datasets last.
func rank(e Entry) int {
	if e.Kind == Drawn {
		return 0
	}
	if i := slices.IndexFunc(published, func(p Published) bool { return p.Info.Name == e.Info.Name }); i >= 0 {
		return 1 + i
	}
	return 1 + len(published)
}

// Entry returns the entry of the dataset of that name.
func (c Catalogue) Entry(ctx context.Context, name string) (Entry, error) {
	for _, e := range c.Entries(ctx) {
		if e.Info.Name == name {
			return e, nil
		}
	}
	return Entry{}, notFound(name)
}

// names returns the names of the dataset folders, in order.
func (c Catalogue) names() []string {
	entries, _ := os.ReadDir(filepath.Join(c.Dir, setsDir)) // none if the folder does not exist
	var names []string
	for _, e := range entries {
		if e.IsDir() && validName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// outside returns the entry of a published dataset that was not added.
func (c Catalogue) outside(p *Published) Entry {
	e := Entry{Info: p.Info.clone(), State: Absent, Published: p}
	if _, paths, ok := c.find(p); ok {
		e.State, e.Paths = Found, paths
	}
	return e
}

// inside returns the entry of a dataset that has a folder.
func (c Catalogue) inside(name string) Entry {
	dir, err := c.root(name)
	if err != nil {
		return Entry{Info: Info{Name: name, Title: name}, State: Failed, Reason: err.Error()}
	}
	defer dir.Close()
	e := Entry{Info: Info{Name: name, Title: name}, Disk: size(dir), Published: publishedByName(name)}
	if e.Published != nil {
		e.Info = e.Published.Info.clone()
	}
	switch r, err := readRecord[record](dir, recordFile); {
	case err == nil:
		return c.registered(e, r)
	case !errors.Is(err, fs.ErrNotExist):
		e.State, e.Reason = Failed, err.Error()
		return e
	}
	e.Work, _ = readRecord[Work](dir, workFile)
	e.Request, _ = readRecord[Request](dir, requestFile)
	e.Paths = slices.DeleteFunc([]string{e.Request.From}, func(s string) bool { return s == "" })
	holder, held := folder.HolderOf(filepath.Join(dir.Name(), lockFile))
	switch {
	case held:
		e.State, e.Holder = Working, holder.String()
	case e.Work.Error != "":
		e.State, e.Reason = Failed, e.Work.Error
	default:
		e.State = Interrupted
		e.Work.Rate, e.Work.Left = 0, 0 // no longer current
	}
	return e
}

// registered completes the entry of an added dataset.
func (c Catalogue) registered(e Entry, r record) Entry {
	name := e.Info.Name
	e.Info, e.Paths, e.Part, e.State = r.Info, r.Paths, r.Part, Ready
	e.Info.Name = name
	switch {
	case r.Part != "":
		e.Kind = Part
		if base, _, _ := splitSpec(r.Part); !c.stands(base, 0) {
			e.State, e.Reason = Failed, fmt.Sprintf("it is a part of %s, which is no longer available", base)
		}
	case r.Packed:
		e.Kind = Packed
		if _, err := os.Stat(filepath.Join(c.setDir(name), packFile)); err != nil {
			e.State, e.Reason = Failed, "its packed images are missing; remove the dataset, then add it again"
		}
	default:
		e.Kind = Placed
		if err := r.unchanged(); err != nil {
			e.State, e.Reason = Failed, err.Error()
		}
	}
	return e
}

// stands reports whether a dataset that others are parts of is still available.
func (c Catalogue) stands(name string, depth int) bool {
	if IsDrawn(name) {
		return true
	}
	r, err := c.record(name)
	switch {
	case err != nil || depth == aliasDepth:
		return false
	case r.Part != "":
		base, _, _ := splitSpec(r.Part)
		return c.stands(base, depth+1)
	case r.Packed:
		_, err := os.Stat(filepath.Join(c.setDir(name), packFile))
		return err == nil
	}
	return r.unchanged() == nil
}

// size returns the total size in bytes of the files of a folder.
func size(dir *os.Root) int64 {
	var bytes int64
	fs.WalkDir(dir.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // unreadable files are not counted
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

func publishedByName(name string) *Published {
	for i := range published {
		if published[i].Info.Name == name {
			return &published[i]
		}
	}
	return nil
}

// Why explains why an entry cannot be opened and what to do.
func (e Entry) Why() string {
	name := e.Info.Name
	switch e.State {
	case Found:
		return fmt.Sprintf("dataset %s is on this machine (%s) but not added; add it with slotscope data add %s or on the Datasets page", name, strings.Join(e.Paths, ", "), name)
	case Queued:
		return "dataset " + name + " is queued behind another dataset"
	case Working:
		return fmt.Sprintf("dataset %s is being added (%s)", name, e.Work)
	case Interrupted:
		return fmt.Sprintf("adding %s was interrupted; resume it with slotscope data add %s or on the Datasets page", name, name)
	case Failed:
		return fmt.Sprintf("dataset %s cannot be used: %s", name, e.Reason)
	case Absent:
		return fmt.Sprintf("dataset %s is not on this machine. %s", name, e.Published.Obtain())
	}
	return "dataset " + name + " is ready"
}

// Obtain returns download instructions: the files, their sizes, where to get them, and the licence.
func (p Published) Obtain() string {
	if len(p.Forms) == 0 {
		return "See " + p.Page
	}
	var files []string
	for _, f := range p.Forms[0].Files {
		text := f.Name
		if f.Bytes > 0 {
			text += " (" + Bytes(f.Bytes) + ")"
		}
		if f.URL != "" {
			text += " from " + f.URL
		}
		files = append(files, text)
	}
	parts := []string{"Download " + strings.Join(files, ", ")}
	if !p.Forms[0].downloadable() {
		parts[0] += " from " + p.Page
	}
	if p.Fetch != "" {
		parts = append(parts, strings.TrimSuffix(p.Fetch, "."))
	}
	if p.Info.Licence != "" {
		parts = append(parts, "Licence: "+p.Info.Licence)
	}
	return strings.Join(parts, ". ")
}

// downloadable reports whether every file of the form has a URL.
func (f Form) downloadable() bool {
	return len(f.Files) > 0 && !slices.ContainsFunc(f.Files, func(f File) bool { return f.URL == "" })
}

// Downloadable reports whether the program can download the dataset itself.
func (p Published) Downloadable() bool { return slices.ContainsFunc(p.Forms, Form.downloadable) }

// Bytes formats a number of bytes with its unit: 267.6 MB, 5.9 GB.
func Bytes(n int64) string {
	for _, u := range []struct {
		unit string
		size float64
	}{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}} {
		if v := float64(n) / u.size; v >= 1 {
			return fmt.Sprintf("%.1f %s", v, u.unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
