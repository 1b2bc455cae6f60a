// Package views holds what the packages of the pages share: the frame around a page, error pages, figures, formats. Each page
// is a package below: templ components beside the view-model structs that they draw, which touch nothing but their arguments
// and the model's vocabulary.
//
// The pages' Content-Security-Policy allows neither inline scripts nor style attributes nor other hosts: behaviour comes from
// modules under static/, data reaches them through templ.JSONScript, widths and colours through classes and data attributes.
package views

// PageInfo is what the frame around a page needs to know.
type PageInfo struct {
	Title   string   // of the document; the heading is the page's own
	Active  string   // the entry of the menu that the page belongs to: "play", "train", "runs", "compare", "sweeps", "datasets", "theory", "system" or ""
	Styles  []string // style sheets beside shared/base.css, as in "run/run.css"
	Scripts []string // classic scripts that modules rely on, as in "vendor/uplot/uPlot.iife.min.js"; run before them
	Modules []string // ES modules to run, as in "run/run.js"
}

// Asset gives the address of a file under static/, as in "shared/base.css". The server sets it to one that carries the
// content's hash, so that browsers keep the file for good.
var Asset = func(name string) string { return "/static/" + name }

// ImportMap is the JSON by which modules find each other under their hashed addresses; the server sets it.
var ImportMap = `{"imports":{}}`

type navEntry struct{ key, label, href string }

var nav = []navEntry{
	{"play", "Play", "/play"},
	{"train", "Train", "/runs/new"},
	{"runs", "Runs", "/runs"},
	{"compare", "Compare", "/compare"},
	{"sweeps", "Sweeps", "/sweeps"},
	{"datasets", "Datasets", "/datasets"},
	{"theory", "Theory", "/theory"},
	{"system", "System", "/system"},
}

func title(info PageInfo) string {
	if info.Title == "" {
		return "Slotscope"
	}
	return info.Title + " · Slotscope"
}
