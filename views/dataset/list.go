package dataset

import (
	"net/url"
	"strings"
)

// DatasetsView is the page that lists the datasets, and adds them.
type DatasetsView struct {
	Ready    []DatasetEntry
	Underway []DatasetEntry // being added, or stopped on the way
	Known    []DatasetEntry // published elsewhere, or on this machine but not added

	From, As           string // as typed
	FromError, AsError string
}

// DatasetEntry is a dataset and where it stands.
type DatasetEntry struct {
	DatasetCard
	State  string   // ready, found, queued, working, interrupted, failed or absent
	Kind   string   // drawn, packed, in place, part; empty until it is ready
	Paths  []string // from where it is read, or would be
	Part   string   // of what, where it is a named part
	Disk   string   // what it takes in the data folder, with its unit
	Reason string   // why it failed
	Holder string   // what works on it

	Line    string  // how far the work is, in words
	Stage   string  // of the work; empty before it begins
	Share   float64 // of the stage, from 0 to 1
	Counted bool    // whether the end of the stage is known
	Damaged bool    // whether it failed for a picture without which it can go on

	Forms        [][]DatasetFile // in which it is published
	Page, Fetch  string          // where, and what is to be said about getting it
	Downloadable bool
	Unpacked     string // the size of its images, with its unit
}

// DatasetFile is a published file.
type DatasetFile struct {
	Name, URL, Size string
	Folder, Checked bool // a folder; compared with a published checksum
}

// DatasetAnchor is the place of a dataset in the list.
func DatasetAnchor(name string) string { return "/datasets#" + url.PathEscape(name) }

// do is the address of an action on a dataset.
func (e DatasetEntry) do(action string) string { return e.href() + "/" + action }

// moving says whether the entry changes by itself.
func (e DatasetEntry) moving() bool { return e.State == "working" || e.State == "queued" }

// chip is the state as the style sheet names it.
func (e DatasetEntry) chip() string {
	if e.State == "working" {
		return "running"
	}
	return e.State
}

// word is the state in words.
func (e DatasetEntry) word() string {
	switch e.State {
	case "working":
		if e.Stage == "" {
			return "starting"
		}
		return e.Stage
	case "queued":
		return "waiting"
	case "found":
		return "found here"
	case "absent":
		return "not here"
	}
	return e.State
}

// live says whether anything on the page changes by itself.
func (v DatasetsView) live() bool {
	for _, e := range v.Underway {
		if e.moving() {
			return true
		}
	}
	return false
}

// from says in a line where the images of a ready set are.
func (e DatasetEntry) from() string {
	switch e.Kind {
	case "part":
		return "part of " + e.Part
	case "in place":
		return "read in place from " + strings.Join(e.Paths, ", ")
	case "packed":
		return e.Disk + " in the data folder"
	}
	return ""
}
