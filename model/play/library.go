package play

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"slotscope/model"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/format/checkpoint"
)

// Library is every checkpoint that can be played with: the shipped ones, and those of the runs in a data folder. It opens them
// when they are asked for, keeps a few open, and counts the use of their codes in the background.
type Library struct {
	dir    string // the data folder
	engine *compute.Engine
	sets   Sets
	shelf  *shelf

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	counts sync.Mutex // one count at a time
	naming sync.Mutex // one change of names at a time

	mu      sync.Mutex
	open    []*opened // last used first
	usages  map[string]*guarded[Counting]
	samples map[string]*guarded[Sampling]
	data    map[string]data.Set
}

// Sets opens datasets by name; data.Catalogue is one.
type Sets interface {
	Open(ctx context.Context, name string) (data.Set, error)
}

// opened is a checkpoint in use, or kept for the next.
type opened struct {
	source Source
	users  int
	ready  chan struct{}
	model  *Model
	err    error
}

// mostOpen checkpoints are kept when nobody uses them; while used, there may be more.
const mostOpen = 3

// NewLibrary serves the runs of a data folder with an engine. The engine should leave GPUs to runs: "cpu".
func NewLibrary(dir string, engine *compute.Engine, sets Sets) *Library {
	ctx, cancel := context.WithCancel(context.Background())
	return &Library{
		dir: dir, engine: engine, sets: sets, shelf: &shelf{dir: dir, hashes: map[string]hashed{}},
		ctx: ctx, cancel: cancel, usages: map[string]*guarded[Counting]{}, samples: map[string]*guarded[Sampling]{}, data: map[string]data.Set{},
	}
}

// Close ends what runs in the background and closes every checkpoint.
func (l *Library) Close() {
	l.cancel()
	l.tasks.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.open {
		<-o.ready
		if o.model != nil {
			o.model.Close()
		}
	}
	l.open = nil
	for _, set := range l.data {
		set.Close()
	}
	clear(l.data)
}

// List is what can be opened: the shipped checkpoints first, then the newest of every other run, latest first.
func (l *Library) List() []Source {
	runs := l.shelf.newest()
	out := l.shipped(runs)
	for _, src := range runs {
		if !slices.ContainsFunc(out, func(s Source) bool { return s.Key == src.Key }) {
			out = append(out, src)
		}
	}
	return out
}

// shipped are the shipped checkpoints, those that lie in the data folder as runs with their run.
func (l *Library) shipped(runs []Source) []Source {
	all, err := Shipped()
	if err != nil {
		slog.Error("the shipped checkpoints cannot be read", "error", err) // TestShipped reads the same files
	}
	out := slices.Clone(all)
	for i, src := range out {
		if j := slices.IndexFunc(runs, func(r Source) bool { return r.Key == src.Key }); j >= 0 {
			out[i] = runs[j]
			out[i].Card = src.Card
		}
	}
	return out
}

// cardOf is the card of a shipped checkpoint, nil of any other.
func cardOf(key string) *Card {
	all, _ := Shipped() // List says what is wrong
	for _, src := range all {
		if src.Key == key {
			return src.Card
		}
	}
	return nil
}

// Steps are those of a run's checkpoints, ascending.
func (l *Library) Steps(run string) []int { return l.shelf.steps(run) }

// Find resolves what stands in an address: a key, a run's ID (its newest checkpoint) or ID@step. The empty name is the first shipped
// checkpoint, or where there is none the newest of all.
func (l *Library) Find(name string) (Source, error) {
	if name != "" {
		if open, ok := l.known(name); ok {
			return open, nil
		}
		src, err := l.shelf.find(name)
		if err == nil {
			src.Card = cardOf(src.Key)
		}
		if !errors.Is(err, model.ErrNotFound) {
			return src, err
		}
		for _, s := range l.shipped(nil) {
			if s.Key == name {
				return s, nil
			}
		}
		return src, err
	}
	if all := l.List(); len(all) > 0 {
		return all[0], nil
	}
	_, err := Default()
	return Source{}, err
}

// Checkpoint reads the tensors of a source.
func (l *Library) Checkpoint(src Source) (checkpoint.File, error) {
	file, err := src.read()
	if err != nil {
		return file, fmt.Errorf("step %d of %s: %w", src.Step, src.Title, err)
	}
	delete(file.Meta, HashKey)
	return file, nil
}

// known finds an open checkpoint without looking at the disk.
func (l *Library) known(key string) (Source, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.open {
		if o.source.Key == key {
			return o.source, true
		}
	}
	return Source{}, false
}

// Use opens a checkpoint, or joins those who have it open; release it when done.
func (l *Library) Use(ctx context.Context, src Source) (m *Model, release func(), err error) {
	if err := l.ctx.Err(); err != nil {
		return nil, nil, errClosed
	}
	o, mine := l.enter(src)
	if mine {
		l.load(o)
	}
	release = sync.OnceFunc(func() { l.leave(o) })
	select {
	case <-o.ready:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	if o.err != nil {
		release()
		return nil, nil, o.err
	}
	return o.model, release, nil
}

// enter finds or makes the place of a checkpoint, moves it to the front and counts its user.
func (l *Library) enter(src Source) (o *opened, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, have := range l.open {
		if have.source.Key == src.Key {
			copy(l.open[1:i+1], l.open[:i])
			l.open[0] = have
			have.users++
			return have, false
		}
	}
	o = &opened{source: src, users: 1, ready: make(chan struct{})}
	l.open = append([]*opened{o}, l.open...)
	return o, true
}

func (l *Library) load(o *opened) {
	defer close(o.ready)
	file, err := o.source.read()
	if err != nil {
		o.err = model.Invalid{"checkpoint": fmt.Sprintf("step %d of %s cannot be read: %v", o.source.Step, o.source.Title, err)}
		return
	}
	if o.model, err = Open(l.ctx, l.engine, file); err != nil {
		o.err = fmt.Errorf("step %d of %s: %w", o.source.Step, o.source.Title, err)
	}
}

// leave counts a user out and closes what has been unused for longest, beyond mostOpen. What failed to open is forgotten, so
// that it is tried again.
func (l *Library) leave(o *opened) {
	l.mu.Lock()
	var closing []*opened
	o.users--
	for i := len(l.open) - 1; i >= 0; i-- {
		have := l.open[i]
		failed := have.users == 0 && have.err != nil && isClosed(have.ready)
		if failed || (have.users == 0 && len(l.open) > mostOpen) {
			l.open = append(l.open[:i], l.open[i+1:]...)
			closing = append(closing, have)
		}
	}
	l.mu.Unlock()
	for _, c := range closing {
		<-c.ready
		if c.model != nil {
			c.model.Close()
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Set opens a dataset, once; it stays open.
func (l *Library) Set(ctx context.Context, name string) (data.Set, error) {
	l.mu.Lock()
	set, ok := l.data[name]
	l.mu.Unlock()
	if ok {
		return set, nil
	}
	set, err := l.sets.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, ok := l.data[name]; ok { // another caller was quicker
		set.Close()
		return first, nil
	}
	l.data[name] = set
	return set, nil
}

// Counting is how far the count of a checkpoint's codes has come.
type Counting struct {
	Usage *Usage // nil until it is there
	Early *Usage // of the first UsageEarly images, until the count is done
	Done  int    // images encoded
	Of    int
	Err   error // why there will be none
}

// guarded is how far a piece of background work is, for those who ask while it goes on.
type guarded[T any] struct {
	mu  sync.Mutex
	now T
}

func (g *guarded[T]) set(change func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.now)
}

func (g *guarded[T]) get() T {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

// Usage says which codes a checkpoint's slots take: from the program for a shipped checkpoint, from the data folder where it was counted before,
// else it starts to count in the background and says how far that is. It never waits.
func (l *Library) Usage(src Source) Counting {
	l.mu.Lock()
	c, ok := l.usages[src.Key]
	if !ok {
		c = &guarded[Counting]{now: Counting{Of: UsageImages}}
		l.usages[src.Key] = c
		c.now.Usage, _ = shippedUsage(src) // one that does not fit is counted like any other
		if c.now.Usage == nil {
			c.now.Usage, _ = keptUsage(l.usageDir(), src) // at once, or the first visit after a start shows another pair than the next
		}
		if c.now.Usage == nil && l.ctx.Err() == nil {
			l.tasks.Go(func() { l.count(src, c) })
		}
	}
	l.mu.Unlock()
	return c.get()
}

func (l *Library) count(src Source, c *guarded[Counting]) {
	usage, err := l.countUsage(src, c)
	c.set(func(now *Counting) { now.Usage, now.Early, now.Err = usage, nil, err })
	if err == nil {
		return
	}
	if !errors.Is(err, context.Canceled) {
		slog.Error("counting the use of codes", "checkpoint", src.Key, "error", err)
	}
}

// usageDir is where counts are kept.
func (l *Library) usageDir() string { return filepath.Join(l.dir, "cache", "play") }

func (l *Library) countUsage(src Source, c *guarded[Counting]) (*Usage, error) {
	m, release, err := l.Use(l.ctx, src)
	if err != nil {
		return nil, err
	}
	defer release()
	l.counts.Lock()
	defer l.counts.Unlock()
	set, err := l.Set(l.ctx, src.Config.Dataset)
	if err != nil {
		return nil, err
	}
	usage, sample, err := m.count(l.ctx, set, UsageImages, func(done int, early *Usage) {
		c.set(func(now *Counting) {
			now.Done = done
			if early != nil {
				now.Early = early
			}
		})
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(m.SaveUsage(l.usageDir(), usage), saveSample(l.samplePath(src), sample)); err != nil {
		slog.Warn("the use of codes was counted but not kept", "error", err) // a full disk costs the next start some seconds
	}
	return usage, nil
}
