package input

import (
	"errors"
	"fmt"
	"slices"

	"slotscope/model"
	"slotscope/model/format/npz"
	"slotscope/model/measure/metric"
)

// Latents reads the latents that a run's evaluation stores for images common to all runs on a dataset: "codes" or "latents" [n, m],
// "index" [n], and for a VAE "kl" [m].
func Latents(path string) (metric.Latents, error) {
	file, err := npz.Open(path)
	if err != nil {
		return metric.Latents{}, err
	}
	defer file.Close()
	l, err := latentsOf(file)
	if err != nil {
		return l, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Kept is Latents for a file that may be missing: if err is model.ErrNotFound, it returns nil.
func Kept(path string, err error) (*metric.Latents, error) {
	if errors.Is(err, model.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l, err := Latents(path)
	if err != nil {
		return nil, err
	}
	return &l, nil
}

func latentsOf(file *npz.File) (l metric.Latents, err error) {
	name := "latents"
	if slices.Contains(file.Names(), "codes") {
		name = "codes"
	}
	m, err := arrayOf(file, name)
	if err != nil {
		return l, err
	}
	index, err := arrayOf(file, "index")
	if err != nil {
		return l, err
	}
	if index.rows != m.rows || m.cols < 1 {
		return l, fmt.Errorf("%s has %d rows, but index has %d entries", name, m.rows, index.rows)
	}
	for _, v := range index.values {
		l.Index = append(l.Index, int(v))
	}
	for j := range m.cols {
		codes, values := make([]int, m.rows), make([]float64, m.rows)
		for r := range m.rows {
			values[r] = m.values[r*m.cols+j]
			codes[r] = int(values[r])
		}
		if name == "codes" {
			l.Codes = append(l.Codes, codes)
		} else {
			l.Values = append(l.Values, values)
		}
	}
	if !slices.Contains(file.Names(), "kl") {
		return l, nil
	}
	kl, err := arrayOf(file, "kl")
	if err == nil && kl.rows != m.cols {
		err = errors.New("kl must have one value per latent")
	}
	l.KL = kl.values
	return l, err
}
