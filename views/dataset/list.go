package dataset

import (
	"net/url"
	"strings"
)

// DatasetsView is the page that lists and adds datasets.
type DatasetsView struct {
	Ready    []DatasetEntry
	Underway []DatasetEntry // being added, interrupted or failed
	Known    []DatasetEntry // published, or found on this machine, but not added

	From, As           string // as typed
	FromError, AsError string
}

// DatasetEntry is a dataset and its state.
type DatasetEntry struct {
	DatasetCard
	State  string   // ready, found, queued, working, interrupted, failed or absent
	Kind   string   // drawn, packed, in place, part; empty until ready
	Paths  []string // source files, used or found
	Part   string   // name of the whole dataset, if this is a named part
	Disk   string   // size in the data folder, with unit
	Reason string   // why it failed
	Holder string   // process that is adding it

	Line    string  // progress in words
	Stage   string  // of the work; empty before it starts
	Share   float64 // of the stage, from 0 to 1
	Counted bool    // whether Share is known
	Damaged bool    // whether it failed because of a damaged image that can be skipped

	Forms        [][]DatasetFile // alternative sets of files in which it is published
	Page, Fetch  string          // URL of the publisher, and how to get it
	Downloadable bool
	Unpacked     string // unpacked size of its images, with unit
}

// DatasetFile is a published file.
type DatasetFile struct {
	Name, URL, Size string
	Folder, Checked bool // Name is a folder; a checksum is published
}

// DatasetAnchor returns the URL of a dataset in the list.
func DatasetAnchor(name string) string { return "/datasets#" + url.PathEscape(name) }

// do returns the URL of an action on a dataset.
func (e DatasetEntry) do(action string) string { return e.href() + "/" + action }

// moving reports whether the entry changes by itself.
func (e DatasetEntry) moving() bool { return e.State == "working" || e.State == "queued" }

// chip returns the state's name in the style sheet.
func (e DatasetEntry) chip() string {
	if e.State == "working" {
		return "running"
	}
	return e.State
}

// word returns the state in words.
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
		return "found"
	case "absent":
		return "not added"
	}
	return e.State
}

// live reports whether anything on the page changes by itself.
func (v DatasetsView) live() bool {
	for _, e := range v.Underway {
		if e.moving() {
			return true
		}
	}
	return false
}

// from describes where the images of a ready dataset are.
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
