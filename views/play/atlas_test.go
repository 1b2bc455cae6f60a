package play

import "testing"

// The number of images with a code is shown only once they have been counted.
func TestFactsOfAnEntry(t *testing.T) {
	for want, e := range map[string]AtlasEntry{
		"255 · 0.05 · ×3": {Text: "255", Name: "wall 0.5", Distance: "0.05", Count: 3},
		"×0":              {Text: "255"},
	} {
		if got := e.facts(true); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (AtlasEntry{Text: "255", Name: "wall 0.5", Distance: "0.05"}).facts(false); got != "255 · 0.05" {
		t.Errorf("uncounted: %q", got)
	}
}
