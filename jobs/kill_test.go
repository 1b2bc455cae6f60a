//go:build linux

package jobs

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"slotscope/db"
	"slotscope/model"
	"slotscope/model/folder"
)

// A run, its server, or both are killed at random twenty times. A client that keeps reading through resumes and restarts ends with the
// stored series; so do the index and points.jsonl, each with every step once.
func TestKilledAtRandomTwentyTimes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	const steps = 1500
	dir := t.TempDir()
	data, err := folder.Root(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	f, err := data.Create(config(steps), "survivor", model.Status{State: model.Queued})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer f.Signal(os.Kill)
	server := startServer(t, dir)
	defer func() { server.Process.Kill(); server.Wait() }()
	store, err := db.Open(t.Context(), filepath.Join(dir, "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := &visitor{store: store, id: f.ID(), series: map[string][]model.Sample{}}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := map[string]int{}
	for kills := 0; kills < 20; kills++ {

		for until := time.Now().Add(time.Duration(60+rng.IntN(140)) * time.Millisecond); time.Now().Before(until); {
			v.read(t)
			time.Sleep(time.Millisecond)
		}
		for range 1000 { // until there is a process to kill
			if f.Locked() {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		what := []string{"run", "server", "both"}[rng.IntN(3)]
		if what != "server" {
			f.Signal(os.Kill)
		}
		if what != "run" {
			server.Process.Kill()
			server.Wait()
			server = startServer(t, dir)
		}
		killed[what]++

	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		v.read(t)
		if s, err := f.Status(); err == nil && s.State == model.Finished && v.page.Head == steps && v.since == steps {
			t.Logf("killed %v; attempt %d finished", killed, s.Attempt)
			break
		} else if time.Now().After(deadline) {
			log, _ := f.Log(20)
			t.Fatalf("not finished: %+v, %v\n%s", s, err, log)
		}
	}
	page, err := store.Points(t.Context(), f.ID(), model.PointQuery{Limit: steps})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, readFile(t, data, f.ID()), page, steps)
	for i, s := range page.Series["total"] {
		if s.Value != 1/float64(i+1) {
			t.Fatalf("step %d: %v", i+1, s)
		}
	}
	if diff := cmp.Diff(page.Series, v.series, cmpopts.EquateNaNs()); diff != "" {
		t.Error("the client has a different series: ", diff)
	}
}

func startServer(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), "JOBS_TEST_ROLE=server", "JOBS_TEST_PAUSE=2ms")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 16)); n == 0 {
		t.Fatalf("the server did not start: %v", err)
	}
	return cmd
}

// visitor maintains the series of a run by requesting missing points, as a page does.
type visitor struct {
	store  *db.DB
	id     string
	since  int
	page   model.PointPage
	series map[string][]model.Sample
}

func (v *visitor) read(t *testing.T) {
	t.Helper()
	page, err := v.store.Points(t.Context(), v.id, model.PointQuery{Since: v.since, Attempt: v.page.Attempt, Limit: 100})
	if errors.Is(err, model.ErrNotFound) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	moved := v.page.Attempt != 0 && page.Attempt != v.page.Attempt
	v.page = page
	if moved && page.Resumed < v.since {
		v.since = page.Resumed
		for name, samples := range v.series {
			v.series[name] = slices.DeleteFunc(samples, func(s model.Sample) bool { return s.Step > v.since })
		}
		return
	}
	for name, samples := range page.Series {
		v.series[name] = append(v.series[name], samples...)
	}
	v.since = page.Last
}
