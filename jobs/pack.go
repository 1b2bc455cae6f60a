package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"slotscope/model"
	"slotscope/model/data"
)

// Datasets is a catalogue that adds datasets in the background, one at a time.
type Datasets struct {
	data.Catalogue
	log    *slog.Logger
	ctx    context.Context // of all work; ends with Close
	cancel context.CancelFunc
	idle   sync.WaitGroup // the goroutine that processes the queue, if there is one

	mu    sync.Mutex
	queue []queued // the first is being added
}

type queued struct {
	name    string
	request data.Request
	ctx     context.Context // of adding it
	cancel  context.CancelFunc
}

// NewDatasets returns the catalogue with an empty queue. Datasets that an earlier process did not complete must be added again.
func NewDatasets(catalogue data.Catalogue, log *slog.Logger) *Datasets {
	ctx, cancel := context.WithCancel(context.Background())
	return &Datasets{Catalogue: catalogue, log: log, ctx: ctx, cancel: cancel}
}

// Close interrupts the work, which keeps its progress, and waits for it to end.
func (d *Datasets) Close() error {
	d.cancel()
	d.idle.Wait()
	return nil
}

// Entries returns the entries of the catalogue and of the queue.
func (d *Datasets) Entries(ctx context.Context) []data.Entry {
	waiting := d.waiting()
	entries := d.Catalogue.Entries(ctx)
	for i := range entries {
		if at := slices.IndexFunc(waiting, func(q queued) bool { return q.name == entries[i].Info.Name }); at >= 0 {
			if !entries[i].State.Moving() {
				entries[i].State, entries[i].Reason = data.Queued, ""
			}
			waiting = slices.Delete(waiting, at, at+1)
		}
	}
	for _, q := range waiting {
		entries = append(entries, data.Entry{Info: data.Info{Name: q.name, Title: q.name}, State: data.Queued, Paths: []string{q.request.From}})
	}
	return entries
}

// Entry returns one of Entries by name.
func (d *Datasets) Entry(ctx context.Context, name string) (data.Entry, error) {
	for _, e := range d.Entries(ctx) {
		if e.Info.Name == name {
			return e, nil
		}
	}
	return d.Catalogue.Entry(ctx, name)
}

func (d *Datasets) waiting() []queued {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.queue)
}

// Add queues a request and returns the name that the dataset will have. It returns an error for an invalid request.
func (d *Datasets) Add(_ context.Context, r data.Request) (name string, err error) {
	name, err = d.Plan(r)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return "", fmt.Errorf("the server is closing: %w", model.ErrConflict)
	}
	if slices.ContainsFunc(d.queue, func(q queued) bool { return q.name == name }) {
		return "", fmt.Errorf("%s is already being added: %w", name, model.ErrConflict)
	}
	work, cancel := context.WithCancel(d.ctx)
	d.queue = append(d.queue, queued{name, r, work, cancel})
	if len(d.queue) == 1 {
		d.idle.Go(d.work)
	}
	return name, nil
}

// work adds queued datasets until the queue is empty.
func (d *Datasets) work() {
	for next, more := d.waiting()[0], true; more; {
		_, err := d.Catalogue.Add(next.ctx, next.request, func(data.Work) {})
		next.cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			d.log.Warn("adding a dataset failed", "dataset", next.name, "error", err)
		}
		next, more = d.next()
	}
}

// next removes the dataset just processed from the queue and returns the next one. If there is none, the goroutine ends, and Add starts
// another.
func (d *Datasets) next() (queued, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = d.queue[1:]
	if d.ctx.Err() != nil {
		d.queue = nil
	}
	if len(d.queue) == 0 {
		return queued{}, false
	}
	return d.queue[0], true
}

// Stop removes a dataset from the queue, or stops adding it and keeps the progress. The error wraps model.ErrConflict if there is nothing
// to stop in this process.
func (d *Datasets) Stop(ctx context.Context, name string) error {
	d.mu.Lock()
	at := slices.IndexFunc(d.queue, func(q queued) bool { return q.name == name })
	switch {
	case at == 0:
		d.queue[0].cancel()
	case at > 0:
		d.queue[at].cancel()
		d.queue = slices.Delete(d.queue, at, at+1)
	}
	d.mu.Unlock()
	if at >= 0 {
		return nil
	}
	e, err := d.Catalogue.Entry(ctx, name)
	if err != nil {
		return err
	}
	if e.State == data.Working {
		return fmt.Errorf("%s is being added by %s; stop it there: %w", name, e.Holder, model.ErrConflict)
	}
	return fmt.Errorf("%s is not being added: %w", name, model.ErrConflict)
}

// Remove removes a dataset from the data folder. The error wraps model.ErrConflict while it is being added.
func (d *Datasets) Remove(_ context.Context, name string) error {
	d.mu.Lock()
	busy := slices.ContainsFunc(d.queue, func(q queued) bool { return q.name == name })
	d.mu.Unlock()
	if busy {
		return fmt.Errorf("%s is being added; stop that first: %w", name, model.ErrConflict)
	}
	return d.Catalogue.Remove(name)
}
