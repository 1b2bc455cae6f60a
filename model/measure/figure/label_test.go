package figure

import "testing"

// TestReferenceLabels: the label of a reference avoids the labels of dots, wherever the dots are.
func TestReferenceLabels(t *testing.T) {
	for at := 1.0; at <= 64; at *= 1.3 {
		for y := 1.0; y <= 400; y *= 1.7 {
			f := LineChart{X: Axis{Label: "m", Log: true}, Y: Axis{Label: "nats"}, Width: 360,
				Lines:      []Line{{Name: "bound", X: []float64{1, 64}, Y: []float64{0, 400}}},
				References: []Reference{{Vertical: true, At: 9, Label: "m = 9"}, {At: 13, Label: "R"}},
				Dots:       []Dot{{X: at, Y: y, Label: "HRR small, as shipped"}}}.Draw()
			for i, m := range f.marks {
				if m.kind != textMark || m.text != "R" && m.text != "m = 9" {
					continue
				}
				rest := Figure{marks: append(append([]mark{}, f.marks[:i]...), f.marks[i+1:]...)}
				if !rest.blank(m.points[0], textWidth(m.text, m.font), m.font.size) {
					t.Fatalf("with a dot at %g, %g, %q is written over another label", at, y, m.text)
				}
			}
		}
	}
}
