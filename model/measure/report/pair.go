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

// Pair is the paper's qualitative experiment on images A and B with one run.
type Pair struct {
	Originals [2]image.Image
	Swaps     []image.Image // [m]: A with slot i taken from B
	Changed   []float64     // [m]: fraction of pixels changed by swapping slot i
	Strip     []image.Image // [m+1]: A, then each with one more slot from B
}

// mostShown is the maximum number of runs shown side by side.
const mostShown = 8

// Shown is the run of a group whose images are shown.
type Shown struct {
	Label string
	Entry Entry
}

// Shown lists the runs that represent their groups in images, for the first eight groups: the best run if it has a checkpoint, else
// any run that has one.
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

// PairFigures draws images a and b through the shown runs, one row per run: single-slot swaps, and the path from A to B with one more
// slot from B in each image. It returns none if no run has a checkpoint. Runs whose checkpoint cannot be read are omitted and named in
// the note; an image number outside the dataset is model.Invalid.
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
			return nil, fmt.Errorf("images of run %s: %w", row.Entry.Run.ID, err)
		case errors.As(err, &bad):
			return nil, bad // every other model would reject the same numbers
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
		note += fmt.Sprintf(" %s omitted: cannot read the checkpoint or its dataset.", strings.Join(without, ", "))
	}
	swaps := swapGrid(labels, pairs)
	swaps.Title = "Single-slot swaps · " + DatasetLabel(dataset)
	swaps.Note = fmt.Sprintf("Images %s (A) and %s (B), then A with one slot from B, by the best run of each model. Percentages: pixels changed.", grouped(a), grouped(b)) + note
	strip := stripGrid(labels, pairs)
	strip.Title = "Interpolation by cumulative swaps · " + DatasetLabel(dataset)
	strip.Note = fmt.Sprintf("From image %s (A) to image %s (B): each image takes one more slot from B.", grouped(a), grouped(b)) + note
	swaps.Name, strip.Name = PairNames(prefix, dataset)
	return []figure.Figure{swaps.Draw(), strip.Draw()}, nil
}

// notShown states how many models are shown, if not all are.
func (s Section) notShown(dataset string) string {
	if n := len(s.Of(dataset)); n > mostShown {
		return fmt.Sprintf(" Showing the first %d of %d models.", mostShown, n)
	}
	return ""
}

// PairNames returns the names of the figures of PairFigures.
func PairNames(prefix, dataset string) (swaps, strip string) {
	return slug(prefix, dataset, "swaps"), slug(prefix, dataset, "interpolation")
}

// swapGrid has the dataset's images in the first row, then one row per model: A, B and the swaps.
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

// stripGrid has a row for each model from A to B, below a row with the dataset's own A and B.
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

// ownPair draws the pair returned by the Between of the dataset's first shown run that succeeds; none if no run does.
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
