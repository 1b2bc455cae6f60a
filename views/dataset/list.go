package dataset

import (
	"net/url"
	"strings"

	"slotscope/views"
)

// DatasetsView is the page that lists and adds datasets.
type DatasetsView struct {
	Ready    []DatasetEntry
	Underway []DatasetEntry // being added, interrupted or failed
	Known    []DatasetEntry // published, or found on this machine, but not added

	Add     AddForm
	Preview *PreviewView // nil unless one was requested
}

// AddForm is the form for a path or a URL, as typed, with its errors by field.
type AddForm struct {
	From, Name                         string
	Images, Labels, Scale, Orientation string // how to read a file of arrays
	Errors                             map[string]string
}

// reading reports whether the options are in use, so that they are shown.
func (f AddForm) reading() bool {
	for _, name := range []string{"images", "labels", "scale", "orientation"} {
		if f.Errors[name] != "" {
			return true
		}
	}
	return f.Images+f.Labels+f.Scale+f.Orientation != ""
}

// addField is one field of the form.
type addField struct{ id, name, label, value, example, help, error string }

// options are the fields on how to read a file of arrays.
func (f AddForm) options() []addField {
	return []addField{
		{"images", "images", "Images", f.Images, "train/images", "The array of images, if there are several candidates.", f.Errors["images"]},
		{"labels", "labels", "Labels", f.Labels, "hue,size", "The arrays of labels, separated by commas; “none” for no labels.", f.Errors["labels"]},
		{"scale", "scale", "Scale", f.Scale, "-1..1", "The values of black and white.", f.Errors["scale"]},
		{"orientation", "orientation", "Orientation", f.Orientation, "nwhc", "The order of the axes: n images, h rows, w columns, c channels.", f.Errors["orientation"]},
	}
}

// PreviewURL returns the URL of the page that previews a path with the given options.
func PreviewURL(from, name, images, labels, scale, orientation string) string {
	q := url.Values{}
	for field, value := range map[string]string{"from": from, "name": name, "images": images, "labels": labels, "scale": scale, "orientation": orientation} {
		if value != "" {
			q.Set(field, value)
		}
	}
	return "/datasets?" + q.Encode() + "#add"
}

// PreviewView is what adding a file or folder would give.
type PreviewView struct {
	DatasetCard
	Format         string
	Axes           string // order of the axes of the images; empty for image files
	Scaling        string // how brightness and sizes change; empty if they do not
	Remarks        []string
	Used, Unused   []string
	Sheet          string // data URL of the first images, Columns to a row
	Columns, Shown int
	Unpacked       string // size of all images, with unit
}

// shown describes the images in Sheet.
func (p PreviewView) shown() string {
	if p.Shown == p.Len {
		return "All images"
	}
	return "The first " + counted(p.Shown, "image") + " of " + views.Count(p.Len)
}

// rows returns the number of rows of Sheet.
func (p PreviewView) rows() int { return (p.Shown + p.Columns - 1) / p.Columns }

// orientation describes which way the images are read.
func (p PreviewView) orientation() string {
	if p.Axes == "" {
		return "as stored; JPEG files are rotated according to their EXIF data"
	}
	words := map[rune]string{'n': "images", 'h': "rows", 'w': "columns", 'c': "channels"}
	var parts []string
	for _, axis := range p.Axes {
		parts = append(parts, words[axis])
	}
	return p.Axes + ": " + strings.Join(parts, " × ")
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
	Again        string // URL of the form with the request that failed; empty if there is none
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
