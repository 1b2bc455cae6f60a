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
	"slotscope/model/folder"
	"slotscope/model/format/checkpoint"
)

// Library provides the checkpoints of the playground: the shipped ones and those of the runs in a data folder. It opens them on demand, keeps
// a few open, and counts their codes in the background.
type Library struct {
	dir    string // the data folder
	engine *compute.Engine
	sets   Sets
	shelf  *shelf

	ctx    context.Context // cancelled by Close
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

// Sets opens datasets by name; data.Catalogue implements it.
type Sets interface {
	Open(ctx context.Context, name string) (data.Set, error)
}

// opened is a checkpoint in use, or cached.
type opened struct {
	source Source
	users  int
	ready  chan struct{}
	model  *Model
	err    error
}

// mostOpen is the number of checkpoints that are kept open when unused; more may be open while in use.
const mostOpen = 3

// NewLibrary returns a library for the runs of a data folder. The engine should be "cpu", to leave GPUs to training.
func NewLibrary(dir string, engine *compute.Engine, sets Sets) *Library {
	ctx, cancel := context.WithCancel(context.Background())
	return &Library{
		dir: dir, engine: engine, sets: sets, shelf: &shelf{dir: dir, hashes: map[string]hashed{}},
		ctx: ctx, cancel: cancel, usages: map[string]*guarded[Counting]{}, samples: map[string]*guarded[Sampling]{}, data: map[string]data.Set{},
	}
}

// Close stops background work and closes all checkpoints and datasets.
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

// List returns the checkpoints to choose from: the shipped ones, then the newest of every other run, latest first.
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

// shipped returns the shipped checkpoints. One that is also in the data folder is returned with its run.
func (l *Library) shipped(runs []Source) []Source {
	all, err := Shipped()
	if err != nil {
		slog.Error("cannot read the shipped checkpoints", "error", err) // TestShipped reads the same files
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

// cardOf returns the card of a shipped checkpoint, or nil for any other.
func cardOf(key string) *Card {
	all, _ := Shipped() // List logs the error
	for _, src := range all {
		if src.Key == key {
			return src.Card
		}
	}
	return nil
}

// Steps returns the steps of a run's checkpoints, ascending.
func (l *Library) Steps(run string) []int { return l.shelf.steps(run) }

// Find resolves a checkpoint name: a key, a run ID (its newest checkpoint), ID@step or ID@best. The empty name is the first shipped
// checkpoint, or the newest of all if none is shipped.
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

// Checkpoint reads the file of a source.
func (l *Library) Checkpoint(src Source) (checkpoint.File, error) {
	file, err := src.read()
	if err != nil {
		return file, fmt.Errorf("step %d of %s: %w", src.Step, src.Title, err)
	}
	delete(file.Meta, HashKey)
	return file, nil
}

// known returns an open checkpoint without accessing the disk.
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

// Use returns an open checkpoint, shared with its other users. Call release when done.
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

// enter finds or adds a checkpoint, moves it to the front and increments its users. mine reports whether the caller must load it.
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
		o.err = model.Invalid{"checkpoint": fmt.Sprintf("cannot read step %d of %s: %v", o.source.Step, o.source.Title, err)}
		return
	}
	if o.model, err = Open(l.ctx, l.engine, file); err != nil {
		o.err = fmt.Errorf("step %d of %s: %w", o.source.Step, o.source.Title, err)
	}
}

// leave decrements a checkpoint's users and closes the least recently used checkpoints beyond mostOpen. It removes those that failed to open,
// so that they are tried again.
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

// Set returns a dataset, which stays open until Close.
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
	if first, ok := l.data[name]; ok { // another caller was faster
		set.Close()
		return first, nil
	}
	l.data[name] = set
	return set, nil
}

// Counting is the progress of counting a checkpoint's codes.
type Counting struct {
	Usage *Usage // nil until complete
	Early *Usage // of the first UsageEarly images; nil before them and after counting is complete
	Done  int    // images encoded
	Of    int
	Err   error // why counting failed
}

// guarded is the mutex-protected progress of background work.
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

// Usage returns the code counts of a checkpoint, embedded for a shipped one or saved in the data folder. Otherwise it starts counting in the
// background and returns the progress. It does not block.
func (l *Library) Usage(src Source) Counting {
	l.mu.Lock()
	c, ok := l.usages[src.Key]
	if !ok {
		c = &guarded[Counting]{now: Counting{Of: UsageImages}}
		l.usages[src.Key] = c
		c.now.Usage, _ = shippedUsage(src) // if it does not fit, codes are counted
		if c.now.Usage == nil {
			c.now.Usage, _ = keptUsage(l.usageDir(), src) // not in the background, so that the initial pair does not change after the first request
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
		slog.Error("counting codes", "checkpoint", src.Key, "error", err)
	}
}

// usageDir returns the folder of saved counts.
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
	if err := errors.Join(folder.MakeData(l.dir), m.SaveUsage(l.usageDir(), usage), saveSample(l.samplePath(src), sample)); err != nil {
		slog.Warn("cannot save code counts", "error", err) // not fatal: the next start counts again
	}
	return usage, nil
}
