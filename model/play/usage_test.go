package play

import (
	"math/rand/v2"
	"testing"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
)

func TestTallyNamesSlots(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	info := data.Info{Factors: []data.Factor{{Name: "hue"}, {Name: "shape"}}}
	var codes [][]int
	var classes []int
	for range 2000 {
		hue, shape := rng.IntN(10), rng.IntN(4)
		noisy := shape
		if rng.IntN(10) < 3 {
			noisy = rng.IntN(4)
		}
		codes = append(codes, []int{(hue*7 + 1) % 40, 10 + noisy, rng.IntN(40), 5})
		classes = append(classes, hue, shape)
	}
	m := &Model{Config: model.Config{Model: "hrr", M: 4, K: 40}}
	u := m.tally(codes, classes, info)
	for i, want := range []struct {
		name      string
		low, high float64
		used      int
	}{{"hue", 0.9999, 1, 10}, {"partly shape", 0.35, 0.5, 4}, {"mixed", 0, 0.05, 40}, {"unused", 0, 0, 1}} {
		l := u.Labels[i]
		if l.Name != want.name || l.Score < want.low || l.Score > want.high || l.Used != want.used {
			t.Errorf("slot %d: %+v, want %+v", i, l, want)
		}
	}
	if u.Ranked(1)[0] < 10 || u.Ranked(1)[0] > 13 || u.Counts[1][0] != 0 || !u.fits(m.Config) || len(u.Ownership.NMI) != 2 {
		t.Errorf("slot 1 is ranked %v; %+v", u.Ranked(1)[:4], u.Ownership)
	}
	if plain := m.tally(codes, nil, data.Info{}); plain.Labels[0].Name != "" || plain.Counts[0][1] == 0 {
		t.Errorf("without factors, slot 0 is named %q", plain.Labels[0].Name)
	}
}

// TestShippedUsage: the counts that ship with a checkpoint match it and are available immediately.
func TestShippedUsage(t *testing.T) {
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	l := NewLibrary(t.TempDir(), engine, data.Catalogue{})
	defer l.Close()
	all := l.List()
	if len(all) == 0 {
		t.Fatal("no checkpoint is shipped")
	}
	for _, src := range all {
		m, release, err := l.Use(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		set, err := l.Set(t.Context(), src.Config.Dataset)
		if err != nil {
			t.Fatal(err)
		}
		u, err := shippedUsage(src)
		if err != nil {
			t.Fatalf("%s (%s): %v", src.Title, src.Key, err)
		}
		if now := l.Usage(src); now.Usage == nil || now.Usage.Images != UsageImages {
			t.Errorf("%s: %+v is not available immediately", src.Title, now)
		}
		some := drawIndices(UsageImages, set.Info().Len)[:64]
		pixels := make([]byte, len(some)*m.Size())
		if err := set.Images(pixels, some); err != nil {
			t.Fatal(err)
		}
		codes, err := m.Encode(t.Context(), pixels)
		if err != nil {
			t.Fatal(err)
		}
		for n, tuple := range codes {
			for i, c := range tuple {
				if u.Counts[i][m.entry(c)] == 0 {
					t.Errorf("%s: image %d has code %d in slot %d, which has a count of 0", src.Title, some[n], c, i)
				}
			}
		}
	}
}

func TestDrawIndices(t *testing.T) {
	a, b := drawIndices(100, 480_000), drawIndices(100, 480_000)
	for i := range a {
		if a[i] != b[i] || a[i] < 0 || a[i] >= 480_000 || (i > 0 && a[i] <= a[i-1]) {
			t.Fatalf("draw %v and %v", a, b)
		}
	}
	if all := drawIndices(10, 4); len(all) != 4 {
		t.Errorf("drew %v of 4", all)
	}
}
