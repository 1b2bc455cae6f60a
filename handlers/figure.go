package handlers

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/figure"
)

// SplitFigure splits "NAME.svg", "NAME.png" or "NAME.pdf" into name and kind.
func SplitFigure(file string) (name, kind string, err error) {
	name, kind, _ = strings.Cut(file, ".")
	if kind != "svg" && kind != "png" && kind != "pdf" {
		return "", "", fmt.Errorf("%q is not a figure; use .svg, .png or .pdf: %w", file, model.ErrNotFound)
	}
	return name, kind, nil
}

// SendFigure sends a figure as a file. ?x= is the scale of a PNG, 1 to 4, default 2.
func SendFigure(w http.ResponseWriter, r *http.Request, f figure.Figure, kind string) error {
	raw, mime := f.SVG(), "image/svg+xml"
	if kind == "png" {
		scale := 2.0
		if text := r.URL.Query().Get("x"); text != "" {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(v >= 1 && v <= 4) {
				return model.Invalid{"x": fmt.Sprintf("got %q; enter a scale from 1 to 4", text)}
			}
			scale = v
		}
		var err error
		if raw, err = f.PNG(scale); err != nil {
			return err
		}
		mime = "image/png"
	}
	if kind == "pdf" {
		var err error
		if raw, err = f.PDF(); err != nil {
			return err
		}
		mime = "application/pdf"
	}
	AsFile(w, "slotscope-"+f.Name+"."+kind)
	w.Header().Set("Cache-Control", "no-cache")
	return SendBytes(w, r, mime, raw)
}
