//go:build linux

package jobs

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/data"
)

// stuck returns a server whose files never end.
func stuck(t *testing.T) string {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write(make([]byte, 100))
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	return server.URL
}

func reaches(t *testing.T, d *Datasets, name string, want data.State) data.Entry {
	t.Helper()
	var e data.Entry
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		var err error
		if e, err = d.Entry(context.Background(), name); err == nil && e.State == want {
			return e
		}
	}
	t.Fatalf("%s is %q, want %q: %s", name, e.State, want, e.Reason)
	return e
}

// TestDatasetQueue checks that datasets are added one at a time, can be removed from the queue, and can be stopped and continued.
func TestDatasetQueue(t *testing.T) {
	ctx, url := context.Background(), stuck(t)
	d := NewDatasets(data.Catalogue{Dir: t.TempDir()}, slog.New(slog.DiscardHandler))
	defer d.Close()
	add := func(name, from string) error { _, err := d.Add(ctx, data.Request{Name: name, From: from}); return err }
	if err := errors.Join(add("a", url+"/a.npz"), add("b", url+"/b.npz"), add("c", "shapes3d-synthetic[every=100]")); err != nil {
		t.Fatal(err)
	}
	if e := reaches(t, d, "a", data.Working); e.Holder == "" {
		t.Errorf("no process is adding it: %+v", e)
	}
	reaches(t, d, "b", data.Queued)
	reaches(t, d, "c", data.Queued)
	if err := add("b", url+"/b.npz"); !errors.Is(err, model.ErrConflict) {
		t.Errorf("adding it twice: %v", err)
	}
	if err := d.Remove(ctx, "a"); !errors.Is(err, model.ErrConflict) {
		t.Errorf("removing a dataset that is being added: %v", err)
	}
	if err := d.Stop(ctx, "b"); err != nil {
		t.Error(err)
	}
	if _, err := d.Entry(ctx, "b"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("still listed after it was removed from the queue: %v", err)
	}
	if err := d.Stop(ctx, "a"); err != nil {
		t.Error(err)
	}
	reaches(t, d, "a", data.Interrupted)
	reaches(t, d, "c", data.Ready)
	if err := d.Stop(ctx, "a"); !errors.Is(err, model.ErrConflict) {
		t.Errorf("stopping a dataset that is not being added: %v", err)
	}
	if err := add("a", ""); err != nil {
		t.Errorf("continuing: %v", err)
	}
	reaches(t, d, "a", data.Working)
}

// TestDatasetQueueCloses checks that closing the queue interrupts the work and rejects new datasets.
func TestDatasetQueueCloses(t *testing.T) {
	ctx, url, dir := context.Background(), stuck(t), t.TempDir()
	d := NewDatasets(data.Catalogue{Dir: dir}, slog.New(slog.DiscardHandler))
	if _, err := d.Add(ctx, data.Request{Name: "a", From: url + "/a.npz"}); err != nil {
		t.Fatal(err)
	}
	reaches(t, d, "a", data.Working)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Add(ctx, data.Request{Name: "b", From: url + "/b.npz"}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("adding to a closed queue: %v", err)
	}
	next := NewDatasets(data.Catalogue{Dir: dir}, slog.New(slog.DiscardHandler))
	defer next.Close()
	reaches(t, next, "a", data.Interrupted)
}
