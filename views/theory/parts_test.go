package theory

import (
	"math"
	"testing"

	"slotscope/model"
)

// TestFromZ: a true HRR's cosine 1/√(1+m) gives an SNR of 1/m; a non-positive cosine means no signal.
func TestFromZ(t *testing.T) {
	for _, m := range []int{2, 9, 64} {
		c := model.TrueHRROf(m, 128, "circular").CosRetrieval
		if got := fromZ(&c, float64(m)); got != "1" {
			t.Errorf("m = %d: %s", m, got)
		}
	}
	half, none := math.Sqrt(0.5), -0.0123
	if got := fromZ(&half, 9); got != "9" {
		t.Errorf("at equal powers: %s", got)
	}
	if got := fromZ(&none, 9); got != "0 (cosine -0.0123)" && got != "0 (cosine −0.0123)" {
		t.Errorf("without signal: %s", got)
	}
	if got := fromZ(nil, 9); got != "not evaluated" {
		t.Errorf("unmeasured: %s", got)
	}
}
