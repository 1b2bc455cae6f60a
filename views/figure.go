package views

import (
	"net/url"

	"slotscope/model/measure/figure"
)

// FigureOf returns the view of a figure with the URLs of its files: base/NAME.svg and .png, with the page's query.
func FigureOf(f figure.Figure, base string, q url.Values) FigureView {
	query := ""
	if len(q) > 0 {
		query = "?" + q.Encode()
	}
	return FigureView{Name: f.Name, Drawing: f.Inline(), SVG: base + "/" + f.Name + ".svg" + query, PNG: base + "/" + f.Name + ".png" + query}
}
