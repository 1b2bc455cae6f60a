package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
)

// A resident dataset and several steps per call change nothing: points and checkpoints equal those of the plain path bit for bit, both in
// one piece and stopped in the middle. Things are due at steps that are not multiples of four.
func TestFeedingChangesNothing(t *testing.T) {
	for _, name := range []string{"hrr", "betavae"} {
		t.Run(name, func(t *testing.T) {
			if name == "betavae" {
				expect.Long(t) // codes have statistics that numbers lack
			}
			cfg := little(t, name)
			cfg.Steps, cfg.EvalEvery, cfg.SampleEvery, cfg.CheckpointEvery = 27, 9, 18, 11
			cfg.Dataset = "shapes3d-synthetic[every=1000]"
			plain := create(t, cfg)
			if err := runIn(t.Context(), plain); err != nil {
				t.Fatal(err)
			}
			for _, fed := range []struct {
				resident string
				steps    int
			}{{model.Never, 4}, {model.Always, 1}, {model.Always, 4}} {
				t.Run(fmt.Sprintf("resident %s, %d steps a call", fed.resident, fed.steps), func(t *testing.T) {
					if fed.resident == model.Never || fed.steps == 1 {
						expect.Long(t) // the last case covers all options together
					}
					cfg := cfg
					cfg.Resident, cfg.StepsPerCall = fed.resident, fed.steps
					whole, pieces := create(t, cfg), create(t, cfg)
					if err := runIn(t.Context(), whole); err != nil {
						t.Fatal(err)
					}
					same(t, plain, whole)
					stopped(t, pieces)
					if err := runIn(t.Context(), pieces); err != nil {
						t.Fatal(err)
					}
					same(t, plain, pieces, "perplexity/window", "perplexity/used") // their window restarts
				})
			}
		})
	}
}

// someWritten is a context that is cancelled when it is asked for its state and twelve points of a run are written.
type someWritten struct {
	context.Context
	cancel context.CancelFunc
	f      *folder.Folder
}

func (c someWritten) Err() error {
	if points, _, _ := c.f.Tail(0); len(points) >= 12 {
		c.cancel()
	}
	return c.Context.Err()
}

// stopped trains a run until some of its points are written, then stops it.
func stopped(t *testing.T, f *folder.Folder) {
	t.Helper()
	inner, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx := someWritten{inner, cancel, f}
	err := runIn(ctx, f)
	status, _ := f.Status()
	if !errors.Is(err, context.Canceled) || status.State != model.Stopped {
		t.Fatalf("stopped run is %s: %v", status.State, err)
	}
	if last := pointsOf(t, f); status.Step < 1 || status.Step >= f.Config().Steps || status.Checkpoint != status.Step || len(last) != status.Step {
		t.Fatalf("stopped after step %d, saved at %d, with %d points", status.Step, status.Checkpoint, len(last))
	}
	t.Logf("stopped after step %d", status.Step)
}

// same compares every point and the last checkpoint of two runs, except for speed and the named series.
func same(t *testing.T, want, got *folder.Folder, but ...string) {
	t.Helper()
	but = append(but, "images_per_second", "eval_seconds") // times
	a, b := pointsOf(t, want), pointsOf(t, got)
	for _, p := range slices.Concat(a, b) { // process series differ
		maps.DeleteFunc(p.Values, func(series string, _ float64) bool { return strings.HasPrefix(series, "process/") })
	}
	if len(a) != len(b) || len(a) != want.Config().Steps {
		t.Fatalf("%d and %d points for %d steps", len(a), len(b), want.Config().Steps)
	}
	for i := range a {
		if a[i].Step != i+1 || b[i].Step != i+1 || len(a[i].Values) != len(b[i].Values) {
			t.Fatalf("point %d is of steps %d and %d, with %d and %d series", i+1, a[i].Step, b[i].Step, len(a[i].Values), len(b[i].Values))
		}
		for series, v := range a[i].Values {
			if w := b[i].Values[series]; w != v && !slices.Contains(but, series) {
				t.Fatalf("step %d: %s is %v, plainly %v", i+1, series, w, v)
			}
		}
	}
	step := want.Latest()
	for _, path := range []func(*folder.Folder) string{
		func(f *folder.Folder) string { return f.CheckpointPath(step) }, func(f *folder.Folder) string { return f.OptimizerPath(step) },
	} {
		sameTensors(t, path(want), path(got))
	}
}

func sameTensors(t *testing.T, want, got string) {
	t.Helper()
	a, err := checkpoint.Read(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := checkpoint.Read(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Tensors) == 0 || len(a.Tensors) != len(b.Tensors) {
		t.Fatalf("%d and %d tensors", len(a.Tensors), len(b.Tensors))
	}
	for name, v := range a.Tensors {
		if !slices.Equal(v.Data, b.Tensors[name].Data) {
			t.Errorf("%s differs in %s", got, name)
		}
	}
}

// Calls are full from the last due step on, single steps if fewer are left, and never cross a due step.
func TestSpanEndsWhereSomethingIsDue(t *testing.T) {
	s := session{feeding: Feeding{Steps: 4}, cfg: model.Config{Steps: 23, SampleEvery: 10, EvalEvery: 20, CheckpointEvery: 7}}
	var spans []int
	for step := 1; step <= s.cfg.Steps; {
		n := s.span(step)
		for inside := step; inside < step+n-1; inside++ {
			if s.due(inside) {
				t.Errorf("call of steps %d to %d crosses step %d", step, step+n-1, inside)
			}
		}
		spans = append(spans, n)
		step += n
	}
	// due: 4, 7, 10, 14, 20, 21, 23
	if want := []int{4, 1, 1, 1, 1, 1, 1, 4, 4, 1, 1, 1, 1, 1}; !slices.Equal(spans, want) {
		t.Errorf("calls of %v steps, want %v", spans, want)
	}
	for first, want := range map[int]int{1: 4, 2: 1, 4: 1, 5: 1, 11: 4, 12: 1} { // possible starts of a resumed run
		if got := s.span(first); got != want {
			t.Errorf("from step %d: a call of %d, want %d", first, got, want)
		}
	}
	s.cfg = model.Config{Steps: 40, SampleEvery: 8, EvalEvery: 20, CheckpointEvery: 12}
	for step := 1; step <= s.cfg.Steps; step += s.feeding.Steps {
		if got := s.span(step); got != s.feeding.Steps {
			t.Errorf("from step %d, with intervals that are multiples of a call: a call of %d", step, got)
		}
	}
}

// A dataset copied in five parts, of which the last overlaps, is unchanged.
func TestUploadCopiesEveryImage(t *testing.T) {
	set, err := data.Open(t.Context(), "shapes3d-synthetic[every=1000]", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	images, err := upload(t.Context(), set, engine, 100*64*64*3+5, func(done int) { told = append(told, done) })
	if err != nil {
		t.Fatal(err)
	}
	defer images.MustFinalizeAll()
	if !slices.Equal(told, []int{100, 200, 300, 400, 480}) || !slices.Equal(images.Shape().Dimensions, []int{480, 64, 64, 3}) {
		t.Errorf("progress %v images, result %s", told, images.Shape())
	}
	index := make([]int, 480)
	for i := range index {
		index[i] = i
	}
	want, err := read(set, index)
	if err != nil || !slices.Equal(want, tensors.MustCopyFlatData[uint8](images)) {
		t.Errorf("the copy differs (%v)", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = upload(ctx, set, engine, 100*64*64*3, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled after the first part: %v", err)
	}
}

// FeedingOf depends on engine, memory and configuration.
func TestFeeding(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		engine, resident string
		steps, devices   int
		bytes, total     int64
		want, insist     bool
		perCall          int
	}{
		{engine: "xla:cuda", bytes: 6 * gib, total: 16 * gib, want: true, perCall: gpuSteps},
		{engine: "xla:cuda", bytes: 7 * gib, total: 16 * gib, perCall: gpuSteps},
		{engine: "xla:cuda", bytes: 1, total: -1, perCall: gpuSteps},
		{engine: "xla:cuda", bytes: 1, total: 16 * gib, resident: model.Never, insist: true, perCall: gpuSteps},
		{engine: "xla:cuda", bytes: 6 * gib, total: 16 * gib, devices: 2, perCall: gpuSteps},
		{engine: "xla:cuda", bytes: 7 * gib, total: 8 * gib, resident: model.Always, want: true, insist: true, steps: 16, perCall: 16},
		{engine: "xla:cpu", bytes: 1, total: -1, perCall: 1},
		{engine: "cpu", bytes: 1, total: -1, perCall: 1},
		{engine: "cpu", bytes: 1, total: -1, resident: model.Always, steps: 2, want: true, insist: true, perCall: 2},
	} {
		cfg := model.Config{Resident: c.resident, StepsPerCall: c.steps, Devices: c.devices}
		got := FeedingOf(cfg, c.engine, c.bytes, c.total)
		if want := (Feeding{c.want, c.insist, c.perCall}); got != want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// A checkpoint that cannot be written fails the run, although steps continue meanwhile; it is not recorded as saved.
func TestCheckpointThatCannotBeWrittenFailsTheRun(t *testing.T) {
	cfg := little(t, "hrr")
	cfg.Steps, cfg.CheckpointEvery, cfg.Dataset = 40, 5, "shapes3d-synthetic[every=1000]"
	f := create(t, cfg)
	dir := filepath.Dir(f.CheckpointPath(5))
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	err := runIn(t.Context(), f)
	if err == nil || !strings.Contains(err.Error(), "of step 5") {
		t.Errorf("the run ends with %v", err)
	}
	if status, err := f.Status(); err != nil || status.State != model.Failed || status.Checkpoint != 0 || !strings.HasPrefix(status.Reason, "saving the") {
		t.Errorf("it is %s, saved at step %d: %q (%v)", status.State, status.Checkpoint, status.Reason, err)
	}

	// Half of a checkpoint, from which nothing can be resumed, is removed.
	f = create(t, cfg)
	if err := os.MkdirAll(filepath.Join(f.CheckpointPath(5), "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runIn(t.Context(), f); err == nil || !strings.Contains(err.Error(), "the checkpoint of step 5") {
		t.Errorf("the run ends with %v", err)
	}
	if _, err := os.Stat(f.OptimizerPath(5)); !os.IsNotExist(err) {
		t.Errorf("the optimizer of step 5 was not removed: %v", err)
	}
}

// apart is an engine whose buffers the host cannot access, like a GPU's.
type apart struct{ backends.Backend }

func (apart) HasSharedBuffers() bool { return false }

// On an engine with its own memory, images, indices and noise are moved there first, and steps measure the same values.
func TestDeviceWithMemoryOfItsOwn(t *testing.T) {
	cfg := little(t, "betavae")
	set, err := data.Open(t.Context(), "shapes3d-synthetic[every=10000]", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	host, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	device := &compute.Engine{Backend: apart{host.Backend}, Name: "apart"}
	index := []int32{5, 1, 47, 0, 3, 3, 2, 40, 46, 31, 8, 9, 10, 11, 12, 13}
	numbers := make([]int, len(index))
	for i, n := range index {
		numbers[i] = int(n)
	}
	bytes, err := read(set, numbers)
	if err != nil {
		t.Fatal(err)
	}
	measure := func(engine *compute.Engine, resident bool) []Step {
		trainer, err := New(cfg, ae.Image{H: 64, W: 64, C: 3}, engine)
		if err != nil {
			t.Fatal(err)
		}
		defer trainer.Finalize()
		var c Call
		if resident {
			images, e := upload(t.Context(), set, engine, 20*64*64*3, func(int) {})
			if e != nil {
				t.Fatal(e)
			}
			trainer.Hold(images)
			c, err = trainer.Gather(1, 2, index)
		} else {
			images := slices.Clone(bytes)
			c, err = trainer.Load(1, 2, images)
			clear(images) // the call has a copy
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range c.inputs {
			if !in.IsOnDevice(0) || in.IsLocal() == engine.HasSharedBuffers() { // not twice in the host's memory
				t.Errorf("an input of %s is on the device: %v, and also in host memory: %v", in.Shape(), in.IsOnDevice(0), in.IsLocal())
			}
		}
		out := <-trainer.Launch(c)
		if out.Err != nil || len(out.Steps) != 2 {
			t.Fatalf("%d steps: %v", len(out.Steps), out.Err)
		}
		return out.Steps
	}
	want := measure(host, false)
	for _, resident := range []bool{false, true} {
		for i, step := range measure(device, resident) {
			if !maps.Equal(step.Values, want[i].Values) {
				t.Errorf("resident %v, step %d: %v, want %v", resident, i+1, step.Values, want[i].Values)
			}
		}
	}
}

// The out-of-memory message counts a resident dataset, and reports a dataset that does not fit at all.
func TestMemoryThatDoesNotSuffice(t *testing.T) {
	set, err := data.Open(t.Context(), "shapes3d-synthetic", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	full := errors.New("steps 1 to 4: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 103079215104 bytes.\nstack")
	s := &session{cfg: little(t, "hrr"), set: set}
	s.cfg.Batch = 512
	if got := s.failure(full); !strings.HasPrefix(got, "steps 1 to 4: RESOURCE") || strings.Contains(got, "stack") {
		t.Errorf("on the CPU: %q", got)
	}
	s.status.Engine = "xla:cuda"
	for _, c := range []struct {
		feeding Feeding
		copying bool
		want    string
	}{
		{Feeding{}, false, "batch of 512 images; "},
		{Feeding{Resident: true}, false, "in addition to the dataset of 5.5 GiB; "},
		{Feeding{}, true, "too small for the dataset of 5.5 GiB, which takes twice that"},
	} {
		s.feeding, s.copying = c.feeding, c.copying
		if got := s.failure(full); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
