package report

import (
	"context"
	"errors"
	"fmt"
	"image"
	"strings"

	"slotscope/model"
	"slotscope/model/measure/figure"
)

// Pair is the paper's qualitative experiment on images A and B, as one run does it.
type Pair struct {
	Originals [2]image.Image
	Swaps     []image.Image // [m]: A with slot i of B
	Changed   []float64     // [m]: fraction of pixels that the swap of slot i changes
	Strip     []image.Image // [m+1]: A, then one more slot of B in each
}

// mostShown is the most runs whose pictures stand side by side.
const mostShown = 8

// Shown is the run of a group whose pictures are shown.
type Shown struct {
	Label string
	Entry Entry
}

// Shown lists the runs that stand for their groups in pictures: the best by InfoM that has a checkpoint, without scores any
// that has; of the first eight groups.
func (s Section) Shown(dataset string) []Shown {
	var all []Shown
	for _, g := range s.Of(dataset) {
		e := g.Best()
		for _, other := range g.All() {
			if (e == nil || e.Run.Checkpoint == 0) && other.Run.Checkpoint > 0 {
				e = &other
			}
		}
		if e != nil && e.Run.Checkpoint > 0 && len(all) < mostShown {
			all = append(all, Shown{g.Label, *e})
		}
	}
	return all
}

// PairFigures draw images a and b through the shown runs, a row for each: single-slot swaps, and the walk from A to B by one
// slot more in each picture. None where no run has a checkpoint. A run whose checkpoint cannot be asked is left out and named
// in the note; a number that the dataset does not have is model.Invalid.
func (s Section) PairFigures(prefix, dataset string, a, b int) ([]figure.Figure, error) {
	var labels, without []string
	var pairs []Pair
	var bad model.Invalid
	for _, row := range s.Shown(dataset) {
		if row.Entry.Pair == nil {
			continue
		}
		p, err := row.Entry.Pair(a, b)
		switch {
		case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
			return nil, fmt.Errorf("pictures of run %s: %w", row.Entry.Run.ID, err)
		case errors.As(err, &bad):
			return nil, bad // another model would say the same of these numbers
		case err != nil:
			without = append(without, row.Label)
		default:
			labels, pairs = append(labels, row.Label), append(pairs, p)
		}
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	note := s.notShown(dataset)
	if len(without) > 0 {
		note += fmt.Sprintf(" Without %s: the checkpoint or its dataset cannot be read.", strings.Join(without, ", "))
	}
	swaps := swapGrid(labels, pairs)
	swaps.Title = "Single-slot swaps · " + DatasetLabel(dataset)
	swaps.Note = fmt.Sprintf("Images %s (A) and %s (B), then A with one slot of B, by the best run of each model; beneath, how many pixels change.", grouped(a), grouped(b)) + note
	strip := stripGrid(labels, pairs)
	strip.Title = "Interpolation by cumulative swaps · " + DatasetLabel(dataset)
	strip.Note = fmt.Sprintf("From image %s (A) to image %s (B): each picture takes one slot more from B.", grouped(a), grouped(b)) + note
	swaps.Name, strip.Name = PairNames(prefix, dataset)
	return []figure.Figure{swaps.Draw(), strip.Draw()}, nil
}

// notShown says of how many models pictures are shown, where that is not all.
func (s Section) notShown(dataset string) string {
	if n := len(s.Of(dataset)); n > mostShown {
		return fmt.Sprintf(" The first %d of %d models are shown.", mostShown, n)
	}
	return ""
}

// PairNames are the names of the figures of PairFigures.
func PairNames(prefix, dataset string) (swaps, strip string) {
	return slug(prefix, dataset, "swaps"), slug(prefix, dataset, "interpolation")
}

// swapGrid has the dataset's images in its first row, then A, B and the swaps of every model.
func swapGrid(labels []string, pairs []Pair) figure.ImageGrid {
	g := figure.ImageGrid{Rows: append([]string{"Dataset"}, labels...), Columns: []string{"A", "B"},
		Images: [][]image.Image{{pairs[0].Originals[0], pairs[0].Originals[1]}}, Captions: [][]string{nil}}
	for _, p := range pairs {
		row, captions := []image.Image{p.Strip[0], p.Strip[len(p.Strip)-1]}, []string{"", ""}
		for i, img := range p.Swaps {
			if len(g.Columns) < i+3 {
				g.Columns = append(g.Columns, fmt.Sprintf("slot %d", i))
			}
			row, captions = append(row, img), append(captions, fmt.Sprintf("%.0f%%", 100*p.Changed[i]))
		}
		g.Images, g.Captions = append(g.Images, row), append(g.Captions, captions)
	}
	return g
}

// stripGrid has a row for each model from A to B, between the dataset's own.
func stripGrid(labels []string, pairs []Pair) figure.ImageGrid {
	g := figure.ImageGrid{Rows: append([]string{"Dataset"}, labels...), Columns: []string{"A"}}
	for _, p := range pairs {
		for i := len(g.Columns); i < len(p.Strip); i++ {
			g.Columns = append(g.Columns, fmt.Sprintf("+ slot %d", i-1))
		}
		g.Images = append(g.Images, p.Strip)
	}
	own := make([]image.Image, len(g.Columns))
	own[0], own[len(own)-1] = pairs[0].Originals[0], pairs[0].Originals[1]
	g.Images = append([][]image.Image{own}, g.Images...)
	return g
}

// ownPair draws the pair that the dataset's runs themselves name; none where none of them can.
func (s Section) ownPair(prefix, dataset string) ([]figure.Figure, error) {
	for _, row := range s.Shown(dataset) {
		if row.Entry.Between == nil {
			continue
		}
		a, b, err := row.Entry.Between()
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("images of %s: %w", dataset, err)
		}
		if err == nil {
			return s.PairFigures(prefix, dataset, a, b)
		}
	}
	return nil, nil
}
