//go:build linux

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slotscope/model"
	"slotscope/model/expect"
)

// TestManySockets opens many sockets on one live run, a fifth of which never read, and measures handshake times, the server's memory, and
// the training speed before, during and after. SLOTSCOPE_SOCKETS sets the number; tools/socket-load.sh prints the results.
func TestManySockets(t *testing.T) {
	expect.Long(t)
	count := 40
	if text := os.Getenv("SLOTSCOPE_SOCKETS"); text != "" {
		count, _ = strconv.Atoi(text)
	}
	s := serve(t, t.TempDir())
	var r model.Run
	s.want(http.StatusCreated, "POST", "/api/runs", tinyConfig("steps=1000000", "checkpoint_every=1000"), &r)
	s.folder(r.ID) // kills the run at the end of the test
	s.reach(r.ID, "running", func(r model.Run) bool { return r.State == model.Running && r.Step > 20 })
	const span = 3 * time.Second
	speed := func() float64 {
		first, begin := s.run(r.ID).Step, time.Now()
		time.Sleep(span)
		return float64(s.run(r.ID).Step-first) / time.Since(begin).Seconds()
	}
	before, memory := speed(), s.memory()

	var mu sync.Mutex
	var shakes []time.Duration
	var failures []error
	heard := make([]int, count)
	var open, readers sync.WaitGroup
	done := make(chan struct{})
	for i := range count {
		open.Add(1)
		readers.Go(func() {
			begin := time.Now()
			dialer := websocket.Dialer{HandshakeTimeout: patience}
			conn, _, err := dialer.Dial("ws"+strings.TrimPrefix(s.url, "http")+"/ws/runs/"+r.ID, nil)
			took := time.Since(begin)
			if err == nil {
				err = conn.WriteJSON(map[string]any{"type": "hello", "v": 1})
			}
			mu.Lock()
			shakes, failures = append(shakes, took), append(failures, err)
			mu.Unlock()
			open.Done()
			if err != nil {
				return
			}
			defer conn.Close()
			go func() { <-done; conn.Close() }()
			for i%5 != 0 { // every fifth never reads
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
				heard[i]++
			}
			<-done
		})
	}
	open.Wait()
	during, held := speed(), s.memory()
	close(done)
	readers.Wait()
	after := speed()

	slices.Sort(shakes)
	t.Logf("%d sockets, %d slow: handshake p50 %v, p99 %v; server %d MB before, %d MB during; steps per second %.1f before, %.1f during, %.1f after",
		count, (count+4)/5, shakes[len(shakes)/2].Round(time.Millisecond), shakes[len(shakes)*99/100].Round(time.Millisecond), memory>>20, held>>20, before, during, after)
	for _, err := range failures {
		if err != nil {
			t.Fatalf("a socket was not opened: %v", err)
		}
	}
	for i, n := range heard {
		if i%5 != 0 && n == 0 {
			t.Fatalf("socket %d received nothing", i)
		}
	}
	if during == 0 || after == 0 {
		t.Error("the run made no progress")
	}
	if perSocket := (held - memory) / int64(count); perSocket > 4<<20 {
		t.Errorf("each socket takes %d bytes of the server's memory", perSocket)
	}
}

// memory returns the server's resident memory in bytes.
func (s *site) memory() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skip("no /proc")
	}
	kb, err := strconv.ParseInt(regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindStringSubmatch(string(status))[1], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return kb << 10
}
