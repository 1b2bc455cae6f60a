package evaluate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
)

// probing is an evaluation that does little except train its probe, and records the first and last training step.
type probing struct {
	Options
	first, last int
	waited      bool
	at          func(step int)
}

func newProbing(dir string) *probing {
	p := &probing{Options: few}
	p.Images, p.Noise, p.Pairs, p.Probe, p.Trees, p.Probes = 64, 0, 2, 8, 1, dir
	p.Progress = func(stage, _ string, done, _ float64) {
		p.waited = p.waited || strings.HasPrefix(stage, "waiting for the probe")
		if stage == "training the probe" {
			if p.last = int(done); p.first == 0 {
				p.first = p.last
			}
			if p.at != nil {
				p.at(p.last)
			}
		}
	}
	return p
}

// scores returns the evaluation's scores up to the probe.
func (p *probing) scores(t *testing.T) model.Scores {
	t.Helper()
	s, err := reading(t.Context(), t, untrained(t, "hrr"), p.Options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// probeFiles returns the tensors of the finished probe in a folder, and whether there is an unfinished one.
func probeFiles(t *testing.T, dir string) (finished map[string]checkpoint.Tensor, half bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, halfProbe):
			half = true
		case strings.HasSuffix(name, finishedProbe):
			file, err := checkpoint.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			finished = file.Tensors
		case !strings.HasSuffix(name, ".lock"):
			t.Errorf("%s is left over", name)
		}
	}
	return finished, half
}

// TestProbeIsKept: the probe of a dataset is trained once, and reads the same for runs of every seed as a newly trained probe.
func TestProbeIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "probes")
	first, second, none := newProbing(dir), newProbing(dir), newProbing("")
	a, b, c := first.scores(t), second.scores(t), none.scores(t)
	if first.last != 8 || second.last != 0 || none.last != 8 || !sameScores(t, a, b) || !sameScores(t, a, c) {
		t.Errorf("trained for %d, %d and %d steps", first.last, second.last, none.last)
	}
	if finished, half := probeFiles(t, dir); len(finished) == 0 || half {
		t.Errorf("%d tensors are stored; an unfinished probe: %v", len(finished), half)
	}
	other := newProbing(dir)
	other.Seed = 5
	if s := other.scores(t); other.last != 0 || s.Swap == nil || !cmp.Equal(s.Swap.ProbeAccuracy, a.Swap.ProbeAccuracy) {
		t.Errorf("a run of another seed trained for %d steps", other.last)
	}
	longer := newProbing(dir)
	longer.Probe = 9
	if longer.scores(t); longer.last != 9 {
		t.Error("a probe with another number of steps was used")
	}
}

// TestProbeIsGoneOnWith: a cancelled probe resumes where it stopped, and ends equal to one that was never cancelled.
func TestProbeIsGoneOnWith(t *testing.T) {
	dir, straight := t.TempDir(), t.TempDir()
	newProbing(straight).scores(t)
	want, _ := probeFiles(t, straight)
	ctx, cancel := context.WithCancel(t.Context())
	p := newProbing(dir)
	p.at = func(step int) {
		if step == 5 {
			cancel()
		}
	}
	if _, err := reading(ctx, t, untrained(t, "hrr"), p.Options); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if finished, half := probeFiles(t, dir); finished != nil || !half {
		t.Fatalf("after the cancellation: finished %v, unfinished %v", finished != nil, half)
	}
	again := newProbing(dir)
	again.scores(t)
	if got, half := probeFiles(t, dir); again.first != 6 || half || !cmp.Equal(got, want) {
		t.Errorf("resumed at step %d; an unfinished probe is left: %v", again.first, half)
	}
}

// TestReader: a given probe reads the same as before, regardless of the stored probe; one with other shapes is rejected.
func TestReader(t *testing.T) {
	dir, others := t.TempDir(), t.TempDir()
	first := newProbing(dir).scores(t)
	mine, err := FindProbe(os.DirFS(dir), first.Probe)
	if err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"+finishedProbe))
	other, err := checkpoint.Read(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range other.Tensors["fc2.weight"].Data {
		other.Tensors["fc2.weight"].Data[i] *= -1
	}
	if err := checkpoint.Write(filepath.Join(others, filepath.Base(names[0])), other); err != nil {
		t.Fatal(err)
	}
	p := newProbing(others)
	if s := p.scores(t); p.last != 0 || s.Probe == first.Probe || cmp.Equal(s.Swap, first.Swap) {
		t.Fatal("the stored probe was not used, or reads the same as the first")
	}
	p.Reader = &mine
	if s := p.scores(t); p.last != 0 || !sameScores(t, s, first) {
		t.Errorf("with the first probe, after %d steps of training", p.last)
	}
	if _, err := FindProbe(os.DirFS(others), first.Probe); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found in a folder without it: %v", err)
	}
	delete(mine.Tensors, "fc2.bias")
	if _, err := reading(t.Context(), t, untrained(t, "hrr"), p.Options); err == nil || !strings.Contains(err.Error(), "the given probe does not fit") {
		t.Errorf("probe without a tensor: %v", err)
	}
}

// TestQuickTrainsNoProbe: without a stored probe swaps are skipped, with one they are measured.
func TestQuickTrainsNoProbe(t *testing.T) {
	dir := t.TempDir()
	p := newProbing(dir)
	p.KeptProbe = true
	if s := p.scores(t); s.Swap != nil || s.Metrics == nil || p.last != 0 {
		t.Errorf("without a probe: %+v after %d steps", s.Swap, p.last)
	}
	newProbing(dir).scores(t)
	if s := p.scores(t); s.Swap == nil || p.last != 0 {
		t.Error("the stored probe was not used")
	}
}

// TestProbeStoreFails: a damaged probe is trained again, one in training is waited for, and write errors are reported.
func TestProbeStoreFails(t *testing.T) {
	dir := t.TempDir()
	newProbing(dir).scores(t)
	names, _ := filepath.Glob(filepath.Join(dir, "*"+finishedProbe))
	if len(names) != 1 {
		t.Fatal(names)
	}
	if err := os.Truncate(names[0], 1000); err != nil {
		t.Fatal(err)
	}
	lock, err := folder.LockFile(strings.TrimSuffix(names[0], finishedProbe)+".lock", "the probe")
	if err != nil {
		t.Fatal(err)
	}
	p := newProbing(dir)
	trains := p.Progress
	p.Progress = func(stage, unit string, done, of float64) {
		if trains(stage, unit, done, of); p.waited {
			lock.Unlock()
		}
	}
	if p.scores(t); !p.waited || p.last != 8 {
		t.Errorf("waited: %v, trained for %d steps", p.waited, p.last)
	}
	if err := errors.Join(os.Remove(names[0]), os.MkdirAll(filepath.Join(names[0], "in the way"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := reading(t.Context(), t, untrained(t, "hrr"), newProbing(dir).Options); err == nil || !strings.HasPrefix(err.Error(), "saving the probe: ") {
		t.Errorf("probe that cannot be written: %v", err)
	}
	if _, err := reading(t.Context(), t, untrained(t, "hrr"), newProbing(filepath.Join(names[0], "in the way", "\x00")).Options); err == nil || !strings.Contains(err.Error(), "folder of probes") {
		t.Errorf("folder that cannot be created: %v", err)
	}
}
