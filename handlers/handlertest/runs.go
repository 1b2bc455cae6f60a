// Package handlertest provides fake services, requests and a browser for tests of pages.
package handlertest

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"slotscope/model"
	"slotscope/model/data"
)

// Runs is an in-memory run service that tests control.
type Runs struct {
	mu       sync.Mutex
	Dir      string
	Runs     map[string]*Run
	watchers map[chan struct{}]string
	reads    int // calls of Points
	Placed   model.Placement
	alerts   []model.Alert
	Broken   error
}

// Run is one run with its points, its log and the steps with reconstructions.
type Run struct {
	model.Run
	Points  []model.Point
	Damaged int // damaged lines of its points
	Scores  model.Values
	Last    model.Values // values of series without points
	log     string
	samples []int
	kept    []int // last step kept by each resume
}

// resume drops the points after step keep and starts a new attempt.
func (r *Run) resume(keep int) {
	r.Points, r.Step, r.Resumed, r.State = r.Points[:keep], keep, keep, model.Running
	r.kept = append(r.kept, keep)
	r.Attempt++
}

// outlived returns the last step kept by every resume after an attempt; attempt 0 means the one before the present.
func (r *Run) outlived(attempt int) int {
	if attempt == 0 {
		attempt = r.Attempt - 1
	}
	since := r.kept[min(max(0, attempt-1), len(r.kept)):]
	if len(since) == 0 {
		return 0
	}
	return slices.Min(since)
}

// NewRuns returns an empty service; sheets of reconstructions go into dir.
func NewRuns(dir string) *Runs {
	return &Runs{Dir: dir, Runs: map[string]*Run{}, watchers: map[chan struct{}]string{}}
}

// Put stores a run with the given state and points up to step.
func (f *Runs) Put(id string, state model.State, step int) *Run {
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		panic(err)
	}
	r := &Run{Run: model.Run{ID: id, Config: cfg, Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
	r.State, r.Attempt, r.Engine, r.EngineWhy = state, 1, "cpu", "No NVIDIA GPU is visible, so the CPU engine is used."
	r.Parameters, r.ImagesPerSecond, r.Updated = 412_345, 321.4, time.Now()
	for s := 1; s <= step; s++ {
		r.Points = append(r.Points, PointAt(r.Config, s))
	}
	r.Step, r.Checkpoint = step, step/r.Config.CheckpointEvery*r.Config.CheckpointEvery
	r.SecondsLeft = float64((cfg.Steps-step)*cfg.Batch) / r.ImagesPerSecond
	r.log = fmt.Sprintf("step %d\n", step)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Runs[id] = r
	return r
}

// Grow adds steps to a run and then announces them.
func (f *Runs) Grow(id string, steps int) {
	f.mu.Lock()
	r := f.Runs[id]
	for range steps {
		r.Step++
		r.Points = append(r.Points, PointAt(r.Config, r.Step))
	}
	r.Updated = time.Now()
	r.SecondsLeft = float64((r.Config.Steps-r.Step)*r.Config.Batch) / r.ImagesPerSecond
	f.mu.Unlock()
	f.announce(id)
}

// ResumeFrom does to the store what a resume does: it drops points after the checkpoint and starts a new attempt.
func (f *Runs) ResumeFrom(id string, checkpoint int) {
	f.mu.Lock()
	f.Runs[id].resume(checkpoint)
	f.mu.Unlock()
	f.announce(id)
}

func (f *Runs) announce(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch, watched := range f.watchers {
		if watched == "" || watched == id {
			select {
			case ch <- struct{}{}:
			default:
			}
		}
	}
}

// PointAt returns a plausible training point at a step.
func PointAt(c model.Config, step int) model.Point {
	t := float64(step)
	wave := 0.02 * math.Sin(t/3) * math.Exp(-t/3000)
	loss := 0.35 + 0.35*math.Exp(-t/120) + wave
	v := map[string]float64{
		"total": loss + 0.1, "recon": loss, "vq": 0.3 * math.Exp(-t/300), "commit": 0.3 * math.Exp(-t/300), "latent": 40 * math.Exp(-t/200), "value": 2 * math.Exp(-t/250), "codebook": 0.5 * math.Exp(-t/90),
		"perplexity/batch": 20 + 60*(1-math.Exp(-t/400)) + 40*wave, "perplexity/window": 24 + 80*(1-math.Exp(-t/400)), "perplexity/used": math.Round(30 + 90*(1-math.Exp(-t/300))),
		"latent/mean": wave / 10, "latent/var": float64(c.M)/float64(c.D) + 0.05*math.Exp(-t/300), "latent/norm2": float64(c.M) + 5*math.Exp(-t/300) + wave,
		"codebook/mean": wave / 20, "codebook/var": 1/float64(c.D) + 0.004*math.Exp(-t/200), "codebook/norm2": 1 + 0.4*math.Exp(-t/200),
		"images_per_second": 320 + 9*math.Sin(t/17), "grad_norm": 0.4 + 2*math.Exp(-t/100) + math.Abs(wave),
	}
	if step%c.EvalEvery == 0 || step == 1 {
		v["psnr/eval"] = 12 + 14*(1-math.Exp(-t/900))
	}
	return model.Point{Step: step, Time: time.Unix(int64(step), 0), Values: v}
}

func (f *Runs) find(id string) (*Run, error) {
	if f.Broken != nil {
		return nil, f.Broken
	}
	r, ok := f.Runs[id]
	if !ok {
		return nil, fmt.Errorf("run %s: %w", id, model.ErrNotFound)
	}
	return r, nil
}

func (f *Runs) CreateAt(_ context.Context, cfg model.Config, name string, at model.Placement) (model.Run, error) {
	f.Placed = at
	if err := cfg.Validate().OrNil(); err != nil {
		return model.Run{}, err
	}
	r := f.Put(fmt.Sprintf("run-%d", len(f.Runs)+1), model.Queued, 0)
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Config, r.Name = cfg, name
	return r.Run, nil
}

func (f *Runs) List(context.Context) ([]model.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Broken != nil {
		return nil, f.Broken
	}
	var all []model.Run
	for _, id := range slices.Sorted(maps.Keys(f.Runs)) {
		all = append(all, f.Runs[id].Run)
	}
	return all, nil
}

// Overview lists every run with the last value of each series.
func (f *Runs) Overview(ctx context.Context) ([]model.Overview, error) {
	runs, err := f.List(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []model.Overview{}
	for _, r := range slices.Backward(runs) {
		o := model.Overview{Run: r, Values: model.Values{}, Scores: f.Runs[r.ID].Scores}
		maps.Copy(o.Values, f.Runs[r.ID].Last)
		for _, p := range f.Runs[r.ID].Points {
			maps.Copy(o.Values, p.Values)
		}
		all = append(all, o)
	}
	return all, err
}

func (f *Runs) Mark(_ context.Context, id string, marks model.Marks) error {
	return f.change(id, func(r *Run) (err error) {
		r.Tags, r.Star, r.Archived, err = marks.Apply(r.Tags, r.Star, r.Archived)
		return err
	})
}

func (f *Runs) Get(_ context.Context, id string) (model.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err != nil {
		return model.Run{}, err
	}
	return r.Run, nil
}

// change applies do to a run under the lock and announces it.
func (f *Runs) change(id string, do func(r *Run) error) error {
	f.mu.Lock()
	r, err := f.find(id)
	if err == nil {
		err = do(r)
	}
	f.mu.Unlock()
	f.announce(id)
	return err
}

func (f *Runs) Stop(_ context.Context, id string) error {
	return f.change(id, func(r *Run) error {
		if r.State.Ended() {
			return fmt.Errorf("run %s is %s, not running: %w", id, r.State, model.ErrConflict)
		}
		r.State, r.Checkpoint, r.Reason, r.Ended = model.Stopped, r.Step, "You stopped this run. Its checkpoint is saved.", time.Now()
		return nil
	})
}

func (f *Runs) Resume(_ context.Context, id string, steps int) error {
	return f.change(id, func(r *Run) error {
		if !r.State.Ended() {
			return fmt.Errorf("run %s is %s: %w", id, r.State, model.ErrConflict)
		}
		if steps > 0 {
			r.Config.Steps = steps
		}
		r.Reason = ""
		r.resume(r.Checkpoint)
		return nil
	})
}

func (f *Runs) Delete(_ context.Context, id string) error {
	return f.change(id, func(r *Run) error {
		if !r.State.Ended() {
			return fmt.Errorf("run %s is %s; stop it before deleting it: %w", id, r.State, model.ErrConflict)
		}
		delete(f.Runs, id)
		return nil
	})
}

func (f *Runs) Rename(_ context.Context, id, name string) error {
	return f.change(id, func(r *Run) error { r.Name = name; return nil })
}

func (f *Runs) Annotate(_ context.Context, id, notes string) error {
	return f.change(id, func(r *Run) error { r.Notes = notes; return nil })
}

func (f *Runs) Points(_ context.Context, id string, q model.PointQuery) (model.PointPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	r, err := f.find(id)
	if err != nil {
		return model.PointPage{}, err
	}
	page := model.PointPage{Attempt: r.Attempt, Resumed: r.outlived(q.Attempt), Head: len(r.Points), Series: map[string][]model.Sample{}}
	until := page.Head
	if q.Until > 0 {
		until = min(until, q.Until)
	}
	if q.Columns == 0 && q.Limit > 0 {
		until = min(until, q.Since+q.Limit)
	}
	page.Last = max(q.Since, until)
	for _, p := range r.Points[min(q.Since, page.Head):max(min(q.Since, page.Head), until)] {
		for name, v := range p.Values {
			if len(q.Names) == 0 || slices.Contains(q.Names, name) {
				page.Series[name] = append(page.Series[name], model.Sample{Step: p.Step, Value: v})
				page.Count++
			}
		}
	}
	if q.Columns > 0 {
		for name, s := range page.Series {
			page.Series[name] = thin(s, q.Columns)
		}
	}
	return page, nil
}

// Walk calls take with each series as one block.
func (f *Runs) Walk(ctx context.Context, id string, names []string, until int, take func(name string, block []model.Sample)) error {
	page, err := f.Points(ctx, id, model.PointQuery{Names: names, Until: until})
	for _, name := range names {
		if block := page.Series[name]; len(block) > 0 {
			take(name, block)
		}
	}
	return err
}

// thin keeps the minimum, maximum and last sample of each of n spans.
func thin(s []model.Sample, n int) []model.Sample {
	var out []model.Sample
	for i := range n {
		span := s[i*len(s)/n : (i+1)*len(s)/n]
		if len(span) == 0 {
			continue
		}
		byValue := func(a, b model.Sample) int { return int(math.Copysign(1, a.Value-b.Value)) }
		keep := []model.Sample{slices.MinFunc(span, byValue), slices.MaxFunc(span, byValue), span[len(span)-1]}
		slices.SortFunc(keep, func(a, b model.Sample) int { return a.Step - b.Step })
		out = append(out, slices.CompactFunc(keep, func(a, b model.Sample) bool { return a.Step == b.Step })...)
	}
	return out
}

func (f *Runs) Watch(id string) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[ch] = id
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, ch)
	}
}

// Alert stores an alert and announces it.
func (f *Runs) Alert(a model.Alert) {
	f.mu.Lock()
	a.ID, a.Time = int64(len(f.alerts)+1), time.Now()
	f.alerts = append(f.alerts, a)
	f.mu.Unlock()
	f.announce(a.Run)
}

// Alerts lists the stored alerts, newest first.
func (f *Runs) Alerts(_ context.Context, q model.AlertQuery) (all []model.Alert, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range slices.Backward(f.alerts) {
		if (q.Run == "" || a.Run == q.Run) && a.ID > q.After && (q.Limit == 0 || len(all) < q.Limit) {
			all = append(all, a)
		}
	}
	return all, nil
}

// DamagedPoints returns the run's number of damaged lines.
func (f *Runs) DamagedPoints(_ context.Context, id string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err != nil {
		return 0, err
	}
	return r.Damaged, nil
}

func (f *Runs) Log(_ context.Context, id string, lines int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err != nil {
		return "", err
	}
	all := strings.SplitAfter(r.log, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], ""), nil
}

func (f *Runs) Sample(_ context.Context, id string, step int) (string, []int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err != nil {
		return "", nil, err
	}
	if step > 0 && !slices.Contains(r.samples, step) {
		return "", nil, fmt.Errorf("run %s has no reconstructions of step %d: %w", id, step, model.ErrNotFound)
	}
	return filepath.Join(f.Dir, fmt.Sprintf("sample-%d.png", step)), slices.Clone(r.samples), nil
}

// Draw writes the sheet of reconstructions at step: discs that become sharper with the steps.
func (f *Runs) Draw(id string, step int) {
	img := image.NewRGBA(image.Rect(0, 0, 512, 128))
	for y := range 128 {
		for x := range 512 {
			i, u, v := x/64, float64(x%64)-32, float64(y%64)-32
			soft := 1.0
			if y >= 64 {
				soft = 1 + 14*math.Exp(-float64(step)/500)
			}
			in := 1 / (1 + math.Exp((math.Hypot(u, v)-float64(10+2*i))/soft))
			shade := func(phase float64) uint8 {
				return uint8(255 * (0.25 + 0.75*(0.5+0.5*math.Sin(float64(i)+phase))*in + 0.15*v/64))
			}
			img.Set(x, y, color.RGBA{shade(0), shade(2), shade(4), 255})
		}
	}
	out, err := os.Create(filepath.Join(f.Dir, fmt.Sprintf("sample-%d.png", step)))
	if err == nil {
		err = errors.Join(png.Encode(out, img), out.Close())
	}
	if err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Runs[id].samples = append(f.Runs[id].samples, step)
}

func (f *Runs) Checkpoints(_ context.Context, id string) ([]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.find(id)
	if err == nil && r.Config == (model.Config{}) {
		err = model.Invalid{"": r.Reason}
	}
	if err != nil || r.Checkpoint == 0 {
		return nil, err
	}
	return []int{r.Checkpoint}, nil
}

func (f *Runs) CheckpointPath(_ context.Context, id string, step int) (string, error) {
	return "", fmt.Errorf("run %s has no checkpoint of step %d: %w", id, step, model.ErrNotFound)
}

// Data is a list of one dataset, with the length of the built-in one.
type Data struct{}

func (Data) List(context.Context) []data.Info {
	return []data.Info{{Name: "shapes3d-synthetic", Title: "Shapes", H: 64, W: 64, C: 3, Len: 480_000}}
}
