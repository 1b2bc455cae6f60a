package play_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gomlx "github.com/gomlx/gomlx/pkg/ml/context"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
	"slotscope/model/paper/ae"
	"slotscope/model/play"
)

var rgb = ae.Image{H: 64, W: 64, C: 3}

// randomFile returns a small HRR model with initial weights.
func randomFile(t testing.TB, seed int64) checkpoint.File {
	t.Helper()
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Widths, cfg.FC, cfg.D, cfg.M, cfg.K, cfg.Seed = [4]int{4, 4, 8, 8}, 16, 32, 5, 12, seed
	return initial(t, cfg)
}

func initial(t testing.TB, cfg model.Config) checkpoint.File {
	t.Helper()
	net, err := ae.New(cfg, rgb)
	if err != nil {
		t.Fatal(err)
	}
	scope := gomlx.New().Checked(false)
	if err := net.Init(scope, nil); err != nil {
		t.Fatal(err)
	}
	tensors, err := net.Export(scope)
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.File{Config: cfg, Step: 3, Tensors: tensors}
}

func cpu(t testing.TB) *compute.Engine {
	t.Helper()
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func openRandom(t testing.TB) *play.Model {
	t.Helper()
	m, err := play.Open(t.Context(), cpu(t), randomFile(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func tuples(n, m, k int) [][]int {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([][]int, n)
	for i := range out {
		for range m {
			out[i] = append(out[i], rng.IntN(k))
		}
	}
	return out
}

// A tuple always decodes to the same bytes: alone, among others, and by a newly opened model. Links rely on this.
func TestDecodeGivesSameBytesInEveryBatch(t *testing.T) {
	all := tuples(64, 5, 12)
	alone := openRandom(t)
	for _, n := range []int{3, 4, 15, 64} {
		m := openRandom(t)
		got, err := m.Decode(t.Context(), play.Strip, all[:n])
		if err != nil {
			t.Fatal(err)
		}
		for i, tuple := range all[:n] {
			want, err := alone.Decode(t.Context(), play.Held, [][]int{tuple})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[i], want[0]) {
				t.Errorf("tuple %v among %d: bytes differ from those of the tuple alone", tuple, n)
			}
		}
	}
}

func TestEncodeGivesSameCodesInEveryBatch(t *testing.T) {
	m := openRandom(t)
	set, err := data.Open(t.Context(), "shapes3d-synthetic", "")
	if err != nil {
		t.Fatal(err)
	}
	index := []int{0, 77, 480, 4_800, 99_999, 123_456, 479_999}
	images := make([]byte, len(index)*m.Size())
	if err := set.Images(images, index); err != nil {
		t.Fatal(err)
	}
	together, err := m.Encode(t.Context(), images)
	if err != nil {
		t.Fatal(err)
	}
	for i := range index {
		alone, err := m.Encode(t.Context(), images[i*m.Size():(i+1)*m.Size()])
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(alone[0], together[i]) {
			t.Errorf("image %d: codes %v alone, %v in a batch", index[i], alone[0], together[i])
		}
		if err := m.Check(alone[0]); err != nil {
			t.Error(err)
		}
	}
}

func TestBadCodesAreNamed(t *testing.T) {
	m := openRandom(t)
	for _, c := range []struct {
		codes []int
		field string
		want  string
	}{
		{[]int{1, 2, 3}, "codes", "got 3 codes; this checkpoint has 5 slots"},
		{[]int{1, 2, 3, 4, 12}, "codes", "slot 4: code 12 does not exist; this checkpoint has codes 0–11"},
		{[]int{1, -2, 3, 4, 1}, "codes", "slot 1: code -2 does not exist; this checkpoint has codes 0–11"},
	} {
		_, err := m.Decode(t.Context(), play.Held, [][]int{c.codes})
		var invalid model.Invalid
		if !errors.As(err, &invalid) || invalid[c.field] != c.want {
			t.Errorf("%v: got %v, want %q", c.codes, err, c.want)
		}
	}
	if _, err := m.Encode(t.Context(), make([]byte, 100)); err == nil {
		t.Error("Encode accepts 100 bytes as images")
	}
}

func TestParseCodesAndOrder(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "17.301.4": {17, 301, 4}, "": nil, "1.": nil, "1.x": nil, "01.2": nil, "-1.2": nil, "1..2": nil, "99999999999999999999": nil} {
		got, err := play.ParseCodes(text)
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("ParseCodes(%q) = %v, %v", text, got, err)
		}
	}
	for text, want := range map[string][]int{"": {0, 1, 2}, "2.0.1": {2, 0, 1}, "0.0.1": nil, "0.1": nil, "0.1.3": nil, "x": nil} {
		got, err := play.ParseOrder(text, 3)
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("ParseOrder(%q) = %v, %v", text, got, err)
		}
	}
}

// counter returns a fake network for two slots that sets an image's first byte to the tuple's first code and calls work with the tuples.
func counter(work func(tuples [][]int32)) play.Coder {
	return play.Coder{
		Enc: func(images []byte, batch int) ([]int32, error) { return make([]int32, batch*2), nil },
		Dec: func(codes []int32, batch int) ([]byte, error) {
			var got [][]int32
			out := make([]byte, batch*rgb.H*rgb.W*rgb.C)
			for b := range batch {
				got = append(got, codes[2*b:2*b+2])
				out[b*len(out)/batch] = byte(codes[2*b])
			}
			work(got)
			return out, nil
		},
	}
}

func fakeFile() checkpoint.File {
	cfg, _ := model.Default("hrr", "tiny", "shapes3d-synthetic")
	cfg.M, cfg.K = 2, 200
	return checkpoint.File{Config: cfg}
}

func TestConcurrentRequestsDecodeOnce(t *testing.T) {
	var decoded atomic.Int32
	seen := sync.Map{}
	m := play.NewModel(counter(func(tuples [][]int32) {
		time.Sleep(2 * time.Millisecond)
		for _, tuple := range tuples {
			if _, again := seen.LoadOrStore([2]int32(tuple), true); !again {
				decoded.Add(1)
			}
		}
	}), fakeFile(), rgb)
	defer m.Close()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			got, err := m.Decode(context.Background(), play.Strip, [][]int{{5, 1}, {6, 1}, {5, 1}})
			if err != nil || got[0][0] != 5 || got[1][0] != 6 || got[2][0] != 5 {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if decoded.Load() != 2 {
		t.Errorf("%d tuples were decoded, want 2", decoded.Load())
	}
}

func TestHeldGoesFirstAndWithdrawnNever(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{}, 100)
	var mu sync.Mutex
	var order []int32
	m := play.NewModel(counter(func(tuples [][]int32) {
		entered <- struct{}{}
		<-gate
		mu.Lock()
		defer mu.Unlock()
		for _, tuple := range tuples {
			if !slices.Contains(order, tuple[0]) {
				order = append(order, tuple[0])
			}
		}
	}), fakeFile(), rgb)
	defer m.Close()
	var wg sync.WaitGroup
	ask := func(ctx context.Context, u play.Urgency, code int, want error) {
		wg.Go(func() {
			if _, err := m.Decode(ctx, u, [][]int{{code, 0}}); !errors.Is(err, want) {
				t.Errorf("code %d: %v, want %v", code, err, want)
			}
		})
	}
	ask(t.Context(), play.Palette, 1, nil)
	<-entered // the worker is decoding 1
	left, leave := context.WithCancel(t.Context())
	ask(t.Context(), play.Palette, 2, nil)
	ask(left, play.Palette, 3, context.Canceled)
	ask(t.Context(), play.Strip, 4, nil)
	ask(t.Context(), play.Held, 5, nil)
	time.Sleep(20 * time.Millisecond)
	leave()
	time.Sleep(20 * time.Millisecond)
	close(gate)
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if want := []int32{1, 5, 4, 2}; !slices.Equal(order, want) {
		t.Errorf("decoded in the order %v, want %v", order, want)
	}
}

func TestPanicOfTheEngineIsAnError(t *testing.T) {
	m := play.NewModel(counter(func([][]int32) { panic("no such operation") }), fakeFile(), rgb)
	defer m.Close()
	for range 2 { // the worker survives the panic
		if _, err := m.Decode(t.Context(), play.Held, [][]int{{1, 1}}); err == nil {
			t.Error("no error")
		}
	}
}

func TestCloseFailsWhatWaits(t *testing.T) {
	gate, entered := make(chan struct{}), make(chan struct{}, 9)
	m := play.NewModel(counter(func([][]int32) { entered <- struct{}{}; <-gate }), fakeFile(), rgb)
	failed := make(chan error)
	go m.Decode(context.Background(), play.Held, [][]int{{1, 1}})
	<-entered
	go func() {
		_, err := m.Decode(context.Background(), play.Held, [][]int{{2, 1}})
		failed <- err
	}()
	time.Sleep(10 * time.Millisecond)
	closed := make(chan struct{})
	go func() { m.Close(); close(closed) }()
	if err := <-failed; err == nil {
		t.Error("a waiting request got an image after Close")
	}
	close(gate)
	<-closed
	if _, err := m.Decode(context.Background(), play.Held, [][]int{{3, 1}}); err == nil {
		t.Error("a closed model still decodes")
	}
}

func TestSwapsAndInterpolation(t *testing.T) {
	a, b := []int{1, 2, 3}, []int{7, 2, 9}
	if got := play.Swaps(a, b); !slices.EqualFunc(got, [][]int{{7, 2, 3}, {1, 2, 3}, {1, 2, 9}}, slices.Equal) {
		t.Errorf("swaps %v", got)
	}
	want := [][]int{{1, 2, 3}, {1, 2, 9}, {7, 2, 9}, {7, 2, 9}}
	if got := play.Interpolation(a, b, []int{2, 0, 1}); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("interpolation %v", got)
	}
	if !slices.Equal(a, []int{1, 2, 3}) {
		t.Error("the original tuple was modified")
	}
}

func TestCompare(t *testing.T) {
	x, y := make([]byte, 4*3), make([]byte, 4*3)
	y[0], y[4], y[9] = 255, 8, 9 // pixels 0 and 3 change; pixel 1 changes by only 8
	d := play.Compare(x, y, 3)
	if d.Changed != 0.5 || d.Mean != 272.0/12 {
		t.Errorf("%+v", d)
	}
	if same := play.Compare(x, x, 3); same.Changed != 0 || same.PSNR != 100 {
		t.Errorf("%+v", same)
	}
}

func TestDistancesAreThoseOfTheCodebook(t *testing.T) {
	m := openRandom(t)
	d, err := m.Distances(0, 3)
	if err != nil || len(d) != 12 {
		t.Fatalf("%v, %v", d, err)
	}
	sum := 0.0
	for j, v := range d {
		if (j == 3) != (v == 0) {
			t.Errorf("distance to entry %d is %v", j, v)
		}
		sum += v
	}
	if mean := sum / 11; mean < 0.999 || mean > 1.001 {
		t.Errorf("the mean distance is %v, want 1", mean)
	}
	if _, err := m.Distances(0, 12); err == nil {
		t.Error("entry 12 of 12 has distances")
	}
}

func TestLibraryServesRunsByKeyIDAndStep(t *testing.T) {
	dir := t.TempDir()
	for step, seed := range map[int]int64{3: 1, 7: 2} {
		file := randomFile(t, seed)
		file.Step = step
		writeRun(t, dir, "20260101-000000-aaaaaaaa", file)
	}
	lib := play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
	defer lib.Close()
	newest, err := lib.Find("20260101-000000-aaaaaaaa")
	if err != nil || newest.Step != 7 || newest.Title != "A first run" || len(newest.Key) != 16 {
		t.Fatalf("%+v, %v", newest, err)
	}
	first, err := lib.Find("20260101-000000-aaaaaaaa@3")
	if err != nil || first.Step != 3 || first.Key == newest.Key {
		t.Fatalf("%+v, %v", first, err)
	}
	byKey, err := lib.Find(first.Key)
	if err != nil || byKey.Step != 3 {
		t.Fatalf("%+v, %v", byKey, err)
	}
	for _, name := range []string{"0000000000000000", "nothing", "../../etc", "20260101-000000-aaaaaaaa@4", "20260101-000000-aaaaaaaa@x"} {
		if _, err := lib.Find(name); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("Find(%q): %v", name, err)
		}
	}
	m, release, err := lib.Use(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if m.Key != first.Key || m.Step != 3 {
		t.Errorf("opened %s of step %d", m.Key, m.Step)
	}
	again, releaseAgain, err := lib.Use(t.Context(), first)
	if err != nil || again != m {
		t.Errorf("opened twice: %v", err)
	}
	releaseAgain()
}

func TestLibraryKeepsFewOpenAndNoneInUseCloses(t *testing.T) {
	dir := t.TempDir()
	var sources []play.Source
	lib := play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
	defer lib.Close()
	for i := range 5 {
		id := "run-" + string(rune('a'+i))
		writeRun(t, dir, id, randomFile(t, int64(i)))
		src, err := lib.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, src)
	}
	held, release, err := lib.Use(t.Context(), sources[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range sources[1:] {
		_, done, err := lib.Use(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if n := lib.Opened(); n != 3 {
		t.Errorf("%d checkpoints are open, want 3", n)
	}
	if _, err := held.Decode(t.Context(), play.Held, [][]int{{0, 1, 2, 3, 4}}); err != nil {
		t.Errorf("a checkpoint in use was closed: %v", err)
	}
	release()
}

func TestDamagedCheckpointIsRefusedWithASentence(t *testing.T) {
	dir := t.TempDir()
	path := writeRun(t, dir, "broken", randomFile(t, 1))
	if err := truncate(path); err != nil {
		t.Fatal(err)
	}
	lib := play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
	defer lib.Close()
	src, err := lib.Find("broken")
	if err != nil {
		t.Fatal(err)
	}
	var invalid model.Invalid
	if _, _, err := lib.Use(t.Context(), src); !errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	config := filepath.Join(dir, "runs", "broken", "config.json")
	for _, spoil := range []func() error{func() error { return os.WriteFile(config, []byte("{{"), 0o644) }, func() error { return os.Remove(config) }} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := lib.Find("broken"); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "config.json") {
			t.Errorf("a run with an incomplete configuration: %v", err)
		}
	}
	if n := lib.Opened(); n != 0 {
		t.Errorf("%d checkpoints are still open after a failure", n)
	}
}

func TestUsageIsCountedOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	writeRun(t, dir, "run", randomFile(t, 1))
	usage := func() (u *play.Usage, atOnce bool) {
		lib := play.NewLibrary(dir, cpu(t), data.Catalogue{Dir: dir})
		defer lib.Close()
		src, err := lib.Find("run")
		if err != nil {
			t.Fatal(err)
		}
		for asked := 1; ; asked++ {
			c := lib.Usage(src)
			if c.Err != nil {
				t.Fatal(c.Err)
			}
			if c.Usage != nil {
				return c.Usage, asked == 1
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	first, _ := usage()
	for i, counts := range first.Counts {
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if sum != play.UsageImages {
			t.Errorf("slot %d: counts add up to %d images", i, sum)
		}
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "cache", "play", "*.json"))
	if len(kept) != 2 || !strings.HasSuffix(kept[1], ".sample.json") { // so that the atlas need not encode the same images again
		t.Fatalf("saved %v", kept)
	}
	second, atOnce := usage()
	if !slices.EqualFunc(first.Counts, second.Counts, slices.Equal) || !atOnce {
		t.Errorf("counts were not loaded immediately: %v", atOnce)
	}
}
