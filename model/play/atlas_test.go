package play_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slotscope/model/data"
	"slotscope/model/play"
)

// sampled waits for and returns a source's sample and lives.
func sampled(t *testing.T, lib *play.Library, src play.Source) play.Sampling {
	t.Helper()
	for {
		s := lib.Sample(src)
		if s.Err != nil {
			t.Fatal(s.Err)
		}
		if s.Lives != nil {
			return s
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The sample agrees with the code counts, is saved, and has the same images for every checkpoint.
func TestSample(t *testing.T) {
	dir := t.TempDir()
	for step, seed := range map[int]int64{3: 1, 7: 2} {
		file := randomFile(t, seed)
		file.Step, file.Config.Dataset = step, "shapes3d-synthetic"
		writeRun(t, dir, "run-a", file)
	}
	open := func() (*play.Library, play.Source) {
		lib := play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
		t.Cleanup(lib.Close)
		src, err := lib.Find("run-a")
		if err != nil {
			t.Fatal(err)
		}
		return lib, src
	}
	lib, src := open()
	s := sampled(t, lib, src)
	if len(s.Sample.Index) != play.UsageImages || len(s.Lives) != 2 || s.Lives[0].Step != 3 || s.Lives[1].Step != 7 || s.Done != s.Of {
		t.Fatalf("%d images, lives %+v, %d of %d", len(s.Sample.Index), len(s.Lives), s.Done, s.Of)
	}
	for i := range 2 {
		if !slices.Equal(s.Lives[1].Entries[i], s.Sample.Entries[i]) {
			t.Error("the newest checkpoint's life is not the start of its sample")
		}
	}
	set, err := lib.Set(t.Context(), "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	m, release, err := lib.Use(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	usage, err := m.CountUsage(t.Context(), set, play.UsageImages, nil)
	if err != nil {
		t.Fatal(err)
	}
	for slot, counts := range usage.Counts {
		for entry, n := range counts {
			if got := len(s.Sample.Carried(slot, entry)); got != n {
				t.Fatalf("slot %d, entry %d: on %d images of the sample, but counted on %d", slot, entry, got, n)
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "cache", "play", "*.sample.json"))
	if len(files) != 2 {
		t.Fatalf("saved %v", files)
	}
	s.Sample.Entries[0][0] = 1 - min(1, s.Sample.Entries[0][0]) // a marker, to detect that the file is read
	raw, err := json.Marshal(s.Sample)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "cache", "play", src.Key+".sample.json"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	again, src := open()
	if got := sampled(t, again, src).Sample.Entries[0]; !slices.Equal(got, s.Sample.Entries[0]) {
		t.Errorf("the sample was not read from the folder: %v", got)
	}
}

func TestBorn(t *testing.T) {
	at := func(entries ...int) (out []play.Life) {
		for step, e := range entries {
			out = append(out, play.Life{Step: step, Entries: [][]int{{e}}})
		}
		return out
	}
	for _, c := range []struct {
		lives      []play.Life
		born, died int
	}{{at(0, 5, 5, 0), 1, 3}, {at(5, 0, 5), 0, -1}, {at(0, 0), -1, -1}, {nil, -1, -1}} {
		if born, died := play.Born(c.lives, 0, 5); born != c.born || died != c.died {
			t.Errorf("%v: %d, %d", c.lives, born, died)
		}
	}
	if got := at(5, 0)[0].Share(0, 5); got != 1 {
		t.Errorf("share %v", got)
	}
}

// Known values of Wilson's interval: 8 of 10, and the extremes.
func TestProbability(t *testing.T) {
	for _, c := range []struct {
		taken, of int
		low, high float64
	}{{8, 10, 0.4902, 0.9433}, {0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}} {
		p := play.NewProbability(c.taken, c.of)
		if math.Abs(p.Low-c.low) > 5e-5 || math.Abs(p.High-c.high) > 5e-5 || p.Value != float64(c.taken)/float64(c.of) {
			t.Errorf("%d of %d: %+v", c.taken, c.of, p)
		}
	}
	values := play.Values([][]int{{0, 2}, {1, 2}, {1, 0}}, 1, 3, []int{0, 1})
	if len(values) != 3 || values[2].Value != 1 || values[0].Taken != 0 {
		t.Errorf("%+v", values)
	}
}

func TestNeighbours(t *testing.T) {
	m := openRandom(t)
	near, err := m.Neighbours(0, 4, 5)
	if err != nil || len(near) != 5 {
		t.Fatalf("%v, %v", near, err)
	}
	if !slices.IsSortedFunc(near, func(a, b play.Neighbour) int { return int(math.Copysign(1, a.Distance-b.Distance)) }) || slices.ContainsFunc(near, func(n play.Neighbour) bool { return n.Code == 4 }) {
		t.Errorf("%v", near)
	}
}
