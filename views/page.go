// Package views has the components that all pages share: page layout, error pages, figures and number formats. Each page is a
// subpackage: templ components and the view models they render, which depend only on their arguments and package model.
//
// The Content-Security-Policy forbids inline scripts, style attributes and other hosts. Behaviour comes from modules under static/,
// which get their data from templ.JSONScript; widths and colours come from classes and data attributes.
package views

// PageInfo configures the layout of a page.
type PageInfo struct {
	Title   string   // document title; the page renders its own heading
	Active  string   // current menu entry: "play", "train", "runs", "compare", "sweeps", "datasets", "theory", "system" or ""
	Styles  []string // style sheets in addition to shared/base.css, e.g. "run/run.css"
	Scripts []string // classic scripts that run before the modules, e.g. "vendor/uplot/uPlot.iife.min.js"
	Modules []string // ES modules, e.g. "run/run.js"
}

// Asset returns the URL of a file under static/, e.g. "shared/base.css". The server replaces it with a function whose URLs contain the
// content's hash, so that browsers can cache files permanently.
var Asset = func(name string) string { return "/static/" + name }

// ImportMap is the JSON import map from module paths to their hashed URLs; the server sets it.
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
