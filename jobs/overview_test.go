//go:build linux

package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slotscope/model"
)

// TestMarksLieInTheFolder checks that marks are stored in the folder and survive the loss of the index, and that scores are listed
// regardless of which process wrote them.
func TestMarksLieInTheFolder(t *testing.T) {
	b := newBench(t)
	ctx, yes := t.Context(), true
	id := b.create("", 20)
	b.awaitState(id, model.Finished)
	if err := b.Mark(ctx, id, model.Marks{Add: []string{"paper", "night", "paper"}, Star: &yes, Archived: &yes}); err != nil {
		t.Fatal(err)
	}
	if err := b.Mark(ctx, id, model.Marks{Add: []string{"best"}, Remove: []string{"night", "absent"}}); err != nil {
		t.Fatal(err)
	}
	var bad model.Invalid
	for _, marks := range []model.Marks{{Add: []string{"two words"}}, {Add: []string{""}}, {Remove: []string{"a,b"}}} {
		if err := b.Mark(ctx, id, marks); !errors.As(err, &bad) || bad["tags"] == "" {
			t.Errorf("%+v: %v", marks, err)
		}
	}
	if err := b.Mark(ctx, "nobody", model.Marks{}); !errors.Is(err, model.ErrNotFound) {
		t.Error(err)
	}
	see := func(when string) {
		t.Helper()
		if r := b.get(id); r.Tags != "best paper" || !r.Star || !r.Archived {
			t.Errorf("%s: %q, star %v, archived %v", when, r.Tags, r.Star, r.Archived)
		}
	}
	see("at once")
	f, err := b.data.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetScores(model.Scores{Version: model.ScoresVersion, Step: 20, Images: 10, PSNR: 31.5}); err != nil { // as another process does
		t.Fatal(err)
	}
	scored := func(want float64, there bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			all, err := b.Overview(ctx)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(all, func(o model.Overview) bool { return o.ID == id })
			if i >= 0 {
				if v, ok := all[i].Scores["psnr"]; ok == there && v == want {
					if all[i].Values["total"] == 0 {
						t.Errorf("last values: %v", all[i].Values)
					}
					return
				}
			}
			if time.Now().After(end) {
				t.Fatalf("the scores are still %+v", all)
			}
		}
	}
	scored(31.5, true)
	b.restart()
	see("after a restart")
	scored(31.5, true)
	if err := os.Remove(filepath.Join(f.Dir(), "scores.json")); err != nil {
		t.Fatal(err)
	}
	scored(0, false)
}
