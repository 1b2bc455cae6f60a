package report

import (
	"encoding/json"
	"errors"
	"image"
	"strings"
	"testing"

	"slotscope/model"
)

// square is an image of the size that models produce.
func square() image.Image { return image.NewRGBA(image.Rect(0, 0, 64, 64)) }

// pairOf is the pair of a run with m slots.
func pairOf(m int) Pair {
	p := Pair{Originals: [2]image.Image{square(), square()}, Strip: []image.Image{square()}}
	for i := range m {
		p.Swaps, p.Strip, p.Changed = append(p.Swaps, square()), append(p.Strip, square()), append(p.Changed, float64(i)/4)
	}
	return p
}

// A pair is drawn for runs of 2 and of 4 slots; a run with a damaged checkpoint is named, a number out of range is an error.
func TestPairFigures(t *testing.T) {
	w := &world{}
	for i, name := range []string{"hrr", "qlae", "vqvae"} {
		e := w.add(name, "shapes3d", 0, 0.8, 40, nil)
		e.Run.Checkpoint = 100
		e.Between = func() (int, int, error) { return 3, 7, nil }
		e.Pair = func(a, b int) (Pair, error) {
			switch {
			case b > 9:
				return Pair{}, model.Invalid{"b": "the images are numbered 0 to 9"}
			case name == "vqvae":
				return Pair{}, errors.New("the checkpoint is damaged")
			}
			return pairOf(2 + 2*i), nil
		}
	}
	r := reportOf(t, w)
	all, err := r.Sections[0].PairFigures("s1", "shapes3d", 3, 7)
	if err != nil || len(all) != 2 || all[0].Name != "s1-shapes3d-swaps" || all[1].Name != "s1-shapes3d-interpolation" {
		t.Fatalf("%v, %d figures", err, len(all))
	}
	for i, want := range []string{"slot 3", "+ slot 3"} {
		svg := string(all[i].SVG())
		if !strings.Contains(svg, ">"+want+"<") || strings.Contains(svg, "slot 4<") || !strings.Contains(svg, "VQ-VAE omitted") || !strings.Contains(svg, ">QLAE<") {
			t.Errorf("%s: %.400s", all[i].Name, svg)
		}
	}
	if n := strings.Count(string(all[0].SVG()), "<image"); n != 2+(2+2)+(2+4) {
		t.Errorf("%d images of swaps", n)
	}
	if n := strings.Count(string(all[1].SVG()), "<image"); n != 2+3+5 {
		t.Errorf("%d images of interpolation", n)
	}
	var bad model.Invalid
	if _, err := r.Sections[0].PairFigures("s1", "shapes3d", 3, 10); !errors.As(err, &bad) {
		t.Errorf("image number out of range: %v", err)
	}
	if page := written(t, r.HTML); !strings.Contains(page, "Interpolation by cumulative swaps") {
		t.Error("the report lacks the interpolation")
	}
}

// Runs with unreadable scores are excluded with a reason, and every file can still be written.
func TestReportOfDamagedScores(t *testing.T) {
	w := paperLike()
	w.entries[0].Scores, w.entries[0].Damage = nil, Damage
	r := reportOf(t, w)
	found := false
	for _, l := range r.Left() {
		found = found || l.Run.ID == w.entries[0].Run.ID && l.Why == Damage
	}
	if !found {
		t.Errorf("excluded: %+v", r.Left())
	}
	for _, f := range r.Files() {
		text := written(t, f.Write)
		if f.Name == "results.json" && (!json.Valid([]byte(text)) || !strings.Contains(text, Damage)) {
			t.Error("results.json is invalid or does not mention the damage")
		}
	}
}
