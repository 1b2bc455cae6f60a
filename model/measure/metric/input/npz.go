package input

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"slotscope/model/format/npz"
)

func readNPZ(path string) (raw, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return raw{}, fmt.Errorf("%s: the file is empty", path)
	}
	file, err := npz.Open(path)
	if err != nil {
		return raw{}, err
	}
	defer file.Close()
	r, err := parseNPZ(file)
	if err != nil && !strings.HasPrefix(err.Error(), path) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return r, err
}

func parseNPZ(file *npz.File) (r raw, err error) {
	codes, latents := slices.Contains(file.Names(), "codes"), slices.Contains(file.Names(), "latents")
	switch {
	case codes && latents:
		return r, errors.New(`the file has both "codes" and "latents"; keep only one`)
	case !codes && !latents:
		return r, fmt.Errorf(`no array "codes" or "latents"; available: %s`, listed(file.Names()))
	}
	name := "latents"
	if codes {
		name = "codes"
	}
	a, err := file.Array(name)
	if err != nil {
		return r, err
	}
	r.discrete = new(codes || a.Kind != npz.Float)
	if r.latents, err = arrayOf(file, name); err != nil {
		return r, err
	}
	if r.factors, err = arrayOf(file, "factors"); err != nil {
		return r, err
	}
	if slices.Contains(file.Names(), "factor_names") {
		names, err := file.Array("factor_names")
		if err != nil {
			return r, err
		}
		r.names, err = names.Strings()
		return r, err
	}
	return r, nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%q", names)
}

func arrayOf(file *npz.File, name string) (matrix, error) {
	m := matrix{name: name, cols: 1}
	a, err := file.Array(name)
	if err != nil {
		return m, err
	}
	if len(a.Shape) < 1 || len(a.Shape) > 2 {
		return m, fmt.Errorf("%s has shape %v; it must have one or two dimensions", name, a.Shape)
	}
	m.rows = a.Shape[0]
	if len(a.Shape) == 2 {
		m.cols = a.Shape[1]
	}
	if a.Kind == npz.Unicode || a.Kind == npz.Bytes {
		return m, fmt.Errorf("array %q holds text, not numbers; encode each value as a number", name)
	}
	if m.values, err = a.Float64s(); err != nil || a.Kind == npz.Float {
		return m, err
	}
	if at := slices.IndexFunc(m.values, func(v float64) bool { return math.Abs(v) >= told }); at >= 0 {
		return m, fmt.Errorf("%s: row %d, column %d is about %.0f, which is too large: integers ≥ %d lose precision as float64",
			name, at/m.cols, at%m.cols, m.values[at], int64(told))
	}
	return m, nil
}
