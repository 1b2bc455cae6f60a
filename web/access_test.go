//go:build unix

package web_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"slotscope/web"
)

// strangerVariable is the environment variable with the URL that a process of another user requests.
const strangerVariable = "SLOTSCOPE_TEST_STRANGER"

// TestMain runs visit in the processes that visitAs starts.
func TestMain(m *testing.M) {
	if url := os.Getenv(strangerVariable); url != "" {
		visit(url)
		return
	}
	os.Exit(m.Run())
}

// visit requests a page, the API, a probe and a socket, and prints each response.
func visit(url string) {
	base, query, _ := strings.Cut(url, "?")
	for _, path := range []string{"/", "/api/runs", "/healthz"} {
		answer, err := http.Get(base + path + "?" + query)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Printf("%s %d %q\n", path, answer.StatusCode, body)
	}
	conn, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(base, "http")+"/ws/echo?"+query, nil)
	if err == nil {
		conn.Close()
	}
	if answer == nil {
		panic(err)
	}
	fmt.Printf("/ws/echo %d\n", answer.StatusCode)
}

// visitAs runs visit in a process of the given user and returns its output.
func visitAs(t *testing.T, uid uint32, url string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	dir, err := os.MkdirTemp("", "slotscope-stranger-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "stranger")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = "/", []string{strangerVariable + "=" + url, "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("user %d: %v\n%s", uid, err, out)
	}
	return string(out)
}

// says fails unless the output has a line with the given prefix.
func says(t *testing.T, said, line string) {
	t.Helper()
	if !strings.Contains("\n"+said, "\n"+line) {
		t.Errorf("no line begins with %q in\n%s", line, said)
	}
}

// logged collects log output.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	someone  = 12345 // another user of the machine
	unmapped = 65534 // user ID shown for users outside a container
)

// TestAnotherUserIsRefused: on loopback, the server's own user has access and other users do not, except with --open.
func TestAnotherUserIsRefused(t *testing.T) {
	log := &logged{}
	page := stub{make(chan struct{})}
	url, stop := serve(t, web.Config{Log: slog.New(slog.NewTextHandler(log, nil)), Pages: []web.Page{page}})
	defer stop()
	if strings.Contains(url, "token") {
		t.Errorf("this user's connections are known, but the URL is %s", url)
	}
	if answer, err := http.Get(url); err != nil || answer.StatusCode != 200 {
		t.Errorf("this user: %v, %v", answer, err)
	}
	said := visitAs(t, someone, url)
	says(t, said, `/ 403 "This server belongs to another user of this machine and serves only that user. You are user 12345.`)
	says(t, said, `/api/runs 403 "{\"error\":`)
	says(t, said, `/ws/echo 403`)
	says(t, said, `/healthz 200 "ok`)
	if !strings.Contains(log.String(), "rejected a connection of another user") || strings.Count(log.String(), "uid=12345") != 1 {
		t.Errorf("the log says %s", log)
	}

	open, stopOpen := serve(t, web.Config{Open: true, Pages: []web.Page{stub{make(chan struct{})}}})
	defer stopOpen()
	said = visitAs(t, someone, open)
	says(t, said, `/ 200`)
	says(t, said, `/ws/echo 101`)
}

// TestUnknownUserNeedsToken: a connection of an unknown user needs the token from the log.
func TestUnknownUserNeedsToken(t *testing.T) {
	log := &logged{}
	url, stop := serve(t, web.Config{Log: slog.New(slog.NewTextHandler(log, nil)), Pages: []web.Page{stub{make(chan struct{})}}})
	defer stop()
	said := visitAs(t, unmapped, url)
	says(t, said, `/ 401`)
	says(t, said, `/api/runs 401`)
	says(t, said, `/ws/echo 401`)
	token := regexp.MustCompile(`\?token=([A-Z2-7]+)`).FindStringSubmatch(log.String())
	if token == nil || len(token[1]) < 26 {
		t.Fatalf("the log has no token: %s", log)
	}
	says(t, visitAs(t, unmapped, url+"?token=WRONG"), `/ 401`)
	said = visitAs(t, unmapped, url+"?token="+token[1])
	says(t, said, `/ws/echo 101`)
	says(t, said, `/api/runs 404`) // the stub has no runs
	says(t, visitAs(t, someone, url+"?token="+token[1]), `/ 403`)
}
