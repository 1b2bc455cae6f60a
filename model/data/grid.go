package data

import "fmt"

// gridFile describes how a file of arrays holds a dataset in the order of its grid.
type gridFile struct {
	images string
	shape  []int
	frame  frame
	// labels names the array of labels, [n, F], which must equal value; empty if the file has none.
	labels, labelType string
	value             func(factor, class int) float64
}

// openGrid opens a published file of arrays. Shapes, types and labels must be as published.
func openGrid(info Info, path string, g gridFile) (Source, error) {
	f, err := openArrays(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", info.Title, err)
	}
	source, err := g.open(info, f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("opening %s: %w", info.Title, err)
	}
	return source, nil
}

func (g gridFile) open(info Info, f arrays) (Source, error) {
	images, err := arrayOf(f, g.images, "uint8", g.shape...)
	if err != nil {
		return nil, err
	}
	if g.labels != "" {
		labels, err := arrayOf(f, g.labels, g.labelType, info.Len, len(info.Factors))
		if err != nil {
			return nil, err
		}
		if err := checkLabels(info, labels, g.value); err != nil {
			return nil, err
		}
	}
	return newArraySource(info, nil, images, g.frame, f, Contents{}), nil
}
