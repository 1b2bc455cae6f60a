//go:build linux

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// patience limits every wait; it is long because the machine may be busy.
const patience = 90 * time.Second

// built is the folder of the program under test, created by the first test that needs it.
var built string

// TestMain lets more tests run at once than there are cores, because they mostly wait for a process or a page.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "slotscope-test-")
	if err != nil {
		return "", err
	}
	built = dir
	file := filepath.Join(dir, "slotscope")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", file, "slotscope").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return file, nil
})

// program returns the path of the program, built once.
func program(t *testing.T) string {
	t.Helper()
	file, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// command returns the program with arguments, isolated from this shell's settings for Slotscope and GPUs.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.Env = append(os.Environ(), "SLOTSCOPE_DATA=", "SLOTSCOPE_TOKEN=", "CUDA_VISIBLE_DEVICES=")
	return cmd
}

// exitCode waits for a started program to end; −1 if a signal ended it.
func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		cmd.Process.Kill()
		t.Fatalf("%v does not end", cmd.Args)
		return 0
	}
}

// await polls until ok; what describes the condition in the failure message.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not reached within %v: %s", patience, what)
}

// text collects the output of a process.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// site is `slotscope serve` on a free port.
type site struct {
	t   *testing.T
	url string
	dir string // the data folder
	cmd *exec.Cmd
	log *text // its standard error

	errors []string // fragments of log lines that the test expects
}

// quiet fails the test for every unexpected error in the server's log.
func (s *site) quiet() {
	s.t.Helper()
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "level=ERROR") && !slices.ContainsFunc(s.errors, func(part string) bool { return strings.Contains(line, part) }) {
			s.t.Errorf("unexpected error in the server's log: %s", line)
		}
	}
}

// serve starts the server on a data folder and waits until it listens.
func serve(t *testing.T, dir string) *site {
	t.Helper()
	return started(t, command(t, "serve", "--shipped=false", "--addr", "127.0.0.1:0", "--data", dir), dir)
}

func started(t *testing.T, cmd *exec.Cmd, dir string) *site {
	t.Helper()
	s := &site{t: t, dir: dir, cmd: cmd, log: &text{}}
	s.cmd.Stderr = s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		s.quiet()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("server output %q, %v\n%s", line, err, s.log)
	}
	s.url = url
	return s
}

// close stops the server as Ctrl-C does and checks its exit code.
func (s *site) close() {
	s.t.Helper()
	s.cmd.Process.Signal(os.Interrupt)
	if code := exitCode(s.t, s.cmd); code != 0 {
		s.t.Errorf("server exit code %d\n%s", code, s.log)
	}
}

// kill kills the server.
func (s *site) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// call sends a request to the API, with a JSON body unless body is nil, and decodes the response into out unless out is nil.
func (s *site) call(method, path string, body, out any) (status int, answer string) {
	s.t.Helper()
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, payload)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", method, path, err, s.log)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			s.t.Fatalf("%s %s: status %d, body %q: %v", method, path, res.StatusCode, b, err)
		}
	}
	return res.StatusCode, string(b)
}

// want is call that fails the test on any other status.
func (s *site) want(status int, method, path string, body, out any) string {
	s.t.Helper()
	got, answer := s.call(method, path, body, out)
	if got != status {
		s.t.Fatalf("%s %s: status %d %s, want %d", method, path, got, answer, status)
	}
	return answer
}

func (s *site) run(id string) (r model.Run) {
	s.t.Helper()
	s.want(http.StatusOK, "GET", "/api/runs/"+id, nil, &r)
	return r
}

// reach waits until a run satisfies ok and returns it.
func (s *site) reach(id, what string, ok func(model.Run) bool) (r model.Run) {
	s.t.Helper()
	for start := time.Now(); time.Since(start) < patience; time.Sleep(10 * time.Millisecond) {
		if r = s.run(id); ok(r) {
			return r
		}
	}
	s.t.Fatalf("run %s is not %s: %+v\n%s", id, what, r.Status, s.log)
	return r
}

func (s *site) reachState(id string, state model.State) model.Run {
	s.t.Helper()
	return s.reach(id, string(state), func(r model.Run) bool { return r.State == state })
}

// folder opens a run's folder and kills the run's processes when the test ends.
func (s *site) folder(id string) *folder.Folder {
	s.t.Helper()
	return openRun(s.t, filepath.Join(s.dir, "runs", id))
}

func openRun(t *testing.T, dir string) *folder.Folder {
	t.Helper()
	f, err := folder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Signal(os.Kill) // fails if there is no process
		f.SignalEvaluation(os.Kill)
		f.Close()
	})
	return f
}

// tinyNet returns the smallest network with every part, as arguments of `slotscope train`.
func tinyNet(more ...string) (words []string) {
	for _, entry := range append([]string{"widths=2,2,2,2", "fc=4", "d=8", "k=4", "m=2", "batch=1", "lr_schedule=constant", "engine=cpu", "eval_images=8",
		"checkpoint_every=5", "sample_every=50", "eval_every=1000000", "evaluate=none"}, more...) {
		words = append(words, "--set", entry)
	}
	return words
}

// tinyConfig returns the same as the body of POST /api/runs.
func tinyConfig(more ...string) map[string]any {
	config := map[string]any{}
	for _, entry := range tinyNet(more...) {
		if name, value, ok := strings.Cut(entry, "="); ok {
			config[name] = value
		}
	}
	return map[string]any{"config": config}
}

// wholeFile checks that points.jsonl has every step from 1 to last exactly once, in order, and returns the total losses.
func wholeFile(t *testing.T, f *folder.Folder, last int) (totals []float64) {
	t.Helper()
	for offset := int64(0); ; {
		points, next, err := f.Tail(offset)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			if p.Step != len(totals)+1 {
				t.Fatalf("points.jsonl: point %d is step %d", len(totals)+1, p.Step)
			}
			totals = append(totals, p.Values["total"])
		}
		if next == offset {
			break
		}
		offset = next
	}
	if len(totals) != last {
		t.Fatalf("points.jsonl has %d steps, want %d", len(totals), last)
	}
	return totals
}

// wholeIndex checks that the API returns the same steps exactly once, with the same total losses.
func (s *site) wholeIndex(id string, totals []float64) {
	s.t.Helper()
	var stored []model.Sample
	for since := 0; since < len(totals); {
		var page model.PointPage
		s.want(http.StatusOK, "GET", fmt.Sprintf("/api/runs/%s/points?names=total&since=%d", id, since), nil, &page)
		if page.Head != len(totals) || page.Last <= since {
			s.t.Fatalf("run %s: after step %d the index has steps up to %d of %d, the file has %d", id, since, page.Last, page.Head, len(totals))
		}
		stored, since = append(stored, page.Series["total"]...), page.Last
	}
	want := make([]model.Sample, len(totals))
	for i, v := range totals {
		want[i] = model.Sample{Step: i + 1, Value: v}
	}
	for i := range max(len(want), len(stored)) {
		if i >= len(want) || i >= len(stored) || want[i] != stored[i] {
			s.t.Fatalf("run %s: sample %d: %d stored, %d measured; stored %v, measured %v", id, i, len(stored), len(want),
				stored[min(i, len(stored)):min(i+3, len(stored))], want[min(i, len(want)):min(i+3, len(want))])
		}
	}
}

var startedPID = regexp.MustCompile(`msg="run started" run=(\S+) pid=(\d+)`)

// starts lists the PIDs of the processes that the server started for a run.
func (s *site) starts(id string) (pids []int) {
	for _, m := range startedPID.FindAllStringSubmatch(s.log.String(), -1) {
		if pid, err := strconv.Atoi(m[2]); m[1] == id && err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process is running; zombies are not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true // a system without /proc
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !slices.Contains([]string{"Z", "X"}, rest[:1])
}
