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

// State is where a dataset stands on its way into the data folder.
type State string

const (
	Ready       State = "ready"       // can be opened
	Found       State = "found"       // the published files are on this machine; they have not been added
	Queued      State = "queued"      // waits for another one to be added first
	Working     State = "working"     // is being downloaded, checked or packed
	Interrupted State = "interrupted" // that ended before it was done, and can go on
	Failed      State = "failed"      // that failed, or the files have changed since
	Absent      State = "absent"      // is published elsewhere
)

// Moving says whether the state changes by itself.
func (s State) Moving() bool { return s == Queued || s == Working }

// Entry is what the catalogue knows of one dataset.
type Entry struct {
	Info      Info
	State     State
	Kind      Kind
	Paths     []string   // files that it is read from, or would be
	Part      string     // for a named part: the set with its selection
	Disk      int64      // bytes that it takes in the data folder
	Work      Work       // how far the work is, or was; zero where none was begun
	Reason    string     // a sentence where State is Failed
	Holder    string     // what works on it, where State is Working
	Published *Published // nil for a visitor's own
}

// Kind is where the images of a dataset are.
type Kind string

const (
	Drawn  Kind = "drawn"    // by the program
	Packed Kind = "packed"   // in the data folder
	Placed Kind = "in place" // in the files of its authors
	Part   Kind = "part"     // in another dataset
)

// Entries lists every dataset that the catalogue knows: drawn ones, published ones, then a visitor's own by name.
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

// rank keeps the order of the lists in the program, and puts what they do not know last.
func rank(e Entry) int {
	if e.Kind == Drawn {
		return 0
	}
	if i := slices.IndexFunc(published, func(p Published) bool { return p.Info.Name == e.Info.Name }); i >= 0 {
		return 1 + i
	}
	return 1 + len(published)
}

// Entry is what the catalogue knows of the dataset of that name.
func (c Catalogue) Entry(ctx context.Context, name string) (Entry, error) {
	for _, e := range c.Entries(ctx) {
		if e.Info.Name == name {
			return e, nil
		}
	}
	return Entry{}, notFound(name)
}

// names are the folders of datasets, in order of name.
func (c Catalogue) names() []string {
	entries, _ := os.ReadDir(filepath.Join(c.Dir, setsDir)) // none where there is no such folder
	var names []string
	for _, e := range entries {
		if e.IsDir() && validName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// outside is a published set that was not added.
func (c Catalogue) outside(p *Published) Entry {
	e := Entry{Info: p.Info.clone(), State: Absent, Published: p}
	if _, paths, ok := c.find(p); ok {
		e.State, e.Paths = Found, paths
	}
	return e
}

// inside is a set that has a folder.
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
	request, _ := readRecord[Request](dir, requestFile)
	e.Paths = slices.DeleteFunc([]string{request.From}, func(s string) bool { return s == "" })
	holder, held := folder.HolderOf(filepath.Join(dir.Name(), lockFile))
	switch {
	case held:
		e.State, e.Holder = Working, holder.String()
	case e.Work.Error != "":
		e.State, e.Reason = Failed, e.Work.Error
	default:
		e.State = Interrupted
		e.Work.Rate, e.Work.Left = 0, 0 // of a time that is over
	}
	return e
}

// registered completes the entry of a set that was added.
func (c Catalogue) registered(e Entry, r record) Entry {
	name := e.Info.Name
	e.Info, e.Paths, e.Part, e.State = r.Info, r.Paths, r.Part, Ready
	e.Info.Name = name
	switch {
	case r.Part != "":
		e.Kind = Part
		if base, _, _ := splitSpec(r.Part); !c.stands(base, 0) {
			e.State, e.Reason = Failed, fmt.Sprintf("%s, of which it is a part, is no longer available", base)
		}
	case r.Packed:
		e.Kind = Packed
		if _, err := os.Stat(filepath.Join(c.setDir(name), packFile)); err != nil {
			e.State, e.Reason = Failed, "its packed images are missing; remove it, then add it again"
		}
	default:
		e.Kind = Placed
		if err := r.unchanged(); err != nil {
			e.State, e.Reason = Failed, err.Error()
		}
	}
	return e
}

// stands says whether a dataset of which others are parts is still there.
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

// size is how many bytes the files of a folder take.
func size(dir *os.Root) int64 {
	var bytes int64
	fs.WalkDir(dir.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read is not counted
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

// Why says why an entry cannot be opened, and what helps.
func (e Entry) Why() string {
	name := e.Info.Name
	switch e.State {
	case Found:
		return fmt.Sprintf("dataset %s is on this machine (%s), but was not added: slotscope data add %s, or the Datasets page, does that", name, strings.Join(e.Paths, ", "), name)
	case Queued:
		return "dataset " + name + " is queued behind another dataset"
	case Working:
		return fmt.Sprintf("dataset %s is being added (%s)", name, e.Work)
	case Interrupted:
		return fmt.Sprintf("adding %s was interrupted: slotscope data add %s, or the Datasets page, goes on with it", name, name)
	case Failed:
		return fmt.Sprintf("dataset %s cannot be used: %s", name, e.Reason)
	case Absent:
		return fmt.Sprintf("dataset %s is not on this machine. %s", name, e.Published.Obtain())
	}
	return "dataset " + name + " is ready"
}

// Obtain says what to get, from where, how large it is and under which licence.
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
	parts := []string{"Get " + strings.Join(files, ", ")}
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

// downloadable says whether every file of the form has an address of its own.
func (f Form) downloadable() bool {
	return len(f.Files) > 0 && !slices.ContainsFunc(f.Files, func(f File) bool { return f.URL == "" })
}

// Downloadable says whether the program can get the set itself.
func (p Published) Downloadable() bool { return slices.ContainsFunc(p.Forms, Form.downloadable) }

// Bytes writes a number of bytes with its unit: 267.6 MB, 5.9 GB.
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
