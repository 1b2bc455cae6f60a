package fetch

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slotscope/model/public"
)

// content is the file that the test servers serve.
var content = func() []byte {
	b := make([]byte, 1<<20)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}()

// flaky is a server that cuts every reply after some bytes.
type flaky struct {
	after    int
	tag      func(request int) string
	requests atomic.Int32
	ranges   []string
}

func (s *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(s.requests.Add(1))
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	w.Header().Set("ETag", s.tag(n))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(&cut{w, s.after}, r, "", time.Time{}, bytes.NewReader(content))
}

type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(b []byte) (int, error) {
	if len(b) > c.left {
		c.ResponseWriter.Write(b[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

func fetcher() Fetcher {
	f := New()
	f.Wait = func(int) time.Duration { return 0 }
	return f
}

func folder(t *testing.T) *os.Root {
	t.Helper()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/a.bin"
}

func quiet(int64, int64) {}

// TestCutOff: a download resumes after every cut, from the byte where it stopped.
func TestCutOff(t *testing.T) {
	s := &flaky{after: 300_000, tag: func(int) string { return `"one"` }}
	dir := folder(t)
	var last, total int64
	want := Want{URL: serve(t, s), Name: "a.bin", Bytes: int64(len(content)), SHA256: fmt.Sprintf("%x", sha256.Sum256(content))}
	err := fetcher().Download(context.Background(), dir, want, func(done, of int64) {
		if done < last {
			t.Errorf("%d bytes after %d", done, last)
		}
		last, total = done, of
	})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := dir.ReadFile("a.bin")
	if !bytes.Equal(got, content) || last != total || total != int64(len(content)) {
		t.Errorf("%d bytes, reported %d of %d", len(got), last, total)
	}
	if s.requests.Load() < 4 || s.ranges[0] != "" || !strings.HasPrefix(s.ranges[1], "bytes=") || s.ranges[1] == "bytes=0-" {
		t.Errorf("requested %q", s.ranges)
	}
	if err := Verify(context.Background(), filepath.Join(dir.Name(), "a.bin"), want, quiet); err != nil {
		t.Error(err)
	}
	if names := list(t, dir); len(names) != 1 {
		t.Errorf("files left: %q", names)
	}
}

func list(t *testing.T, dir *os.Root) (names []string) {
	entries, err := os.ReadDir(dir.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestAnotherFile: a download starts over if the server's file has changed.
func TestAnotherFile(t *testing.T) {
	s := &flaky{after: 700_000, tag: func(n int) string { return fmt.Sprintf("%q", fmt.Sprint(min(n, 2))) }}
	s.after = 700_000
	dir := folder(t)
	if err := fetcher().Download(context.Background(), dir, Want{URL: serve(t, s), Name: "a.bin"}, quiet); err != nil {
		t.Fatal(err)
	}
	if got, _ := dir.ReadFile("a.bin"); !bytes.Equal(got, content) {
		t.Errorf("parts of different files were joined")
	}
}

// TestCancel: a cancelled download keeps what has arrived, and the next call requests only the rest.
func TestCancel(t *testing.T) {
	s := &flaky{after: 1 << 30, tag: func(int) string { return `"one"` }}
	dir, url := folder(t), serve(t, s)
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("enough")
	var kept int64
	err := fetcher().Download(ctx, dir, Want{URL: url, Name: "a.bin"}, func(done, _ int64) {
		if kept = done; done > 1000 {
			cancel(reason)
		}
	})
	if !errors.Is(err, reason) {
		t.Fatalf("cancelled: %v", err)
	}
	if _, err := dir.Stat("a.bin"); !errors.Is(err, os.ErrNotExist) && kept < int64(len(content)) {
		t.Errorf("a partial file has the final name: %v", err)
	}
	if err := fetcher().Download(context.Background(), dir, Want{URL: url, Name: "a.bin"}, quiet); err != nil {
		t.Fatal(err)
	}
	if got, _ := dir.ReadFile("a.bin"); !bytes.Equal(got, content) || s.ranges[1] == "" {
		t.Errorf("%d bytes after requesting %q", len(got), s.ranges)
	}
}

// TestRefusals: permanent errors are reported after one request.
func TestRefusals(t *testing.T) {
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<p>Are you a robot?")
	}
	plain := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5")
		fmt.Fprint(w, "12345")
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    Want
		room    error
		says    string
	}{
		{"a page", html, Want{}, nil, "web page"},
		{"missing", http.NotFound, Want{}, nil, "404"},
		{"another size", plain, Want{Bytes: 6}, nil, "has 5 bytes; the published file has 6"},
		{"no room", plain, Want{}, syscall.ENOSPC, "no space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			c.want.URL = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; c.handler(w, r) }))
			c.want.Name = "a.bin"
			f, dir := fetcher(), folder(t)
			f.Room = func(*os.Root, int64) error { return c.room }
			err := f.Download(context.Background(), dir, c.want, quiet)
			if err == nil || !strings.Contains(err.Error(), c.says) || asked != 1 {
				t.Errorf("%v after %d requests, want %q after one", err, asked, c.says)
			}
			if _, err := dir.Stat("a.bin"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file exists: %v", err)
			}
		})
	}
}

// TestRedirects: a redirect to a file is followed; an endless one, or one that leaves HTTP, is not retried.
func TestRedirects(t *testing.T) {
	var requests atomic.Int32
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch r.URL.Path {
		case "/there":
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Write(content)
		case "/once":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/out":
			http.Redirect(w, r, "file:///etc/hostname", http.StatusFound)
		}
	}))
	for _, c := range []struct {
		path, says string
		requests   int32
	}{{"/once", "", 2}, {"/loop", "redirects endlessly", 10}, {"/out", "redirects to file:///etc/hostname", 1}} {
		requests.Store(0)
		err := fetcher().Download(t.Context(), folder(t), Want{URL: strings.TrimSuffix(server, "/a.bin") + c.path, Name: "x"}, func(int64, int64) {})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || requests.Load() != c.requests {
			t.Errorf("%s: %d requests, %v", c.path, requests.Load(), err)
		}
	}
}

// TestSilence: a download fails if the server stops sending.
func TestSilence(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.Write([]byte("begin"))
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	f := fetcher()
	f.Patience = 20 * time.Millisecond
	err := f.Download(context.Background(), folder(t), Want{URL: url, Name: "a.bin"}, quiet)
	if err == nil || !strings.Contains(err.Error(), "sent nothing for 20ms") {
		t.Errorf("%v", err)
	}
}

// TestVerify distinguishes a truncated file from a changed one.
func TestVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.bin")
	os.WriteFile(path, content, 0o644)
	sum, other := fmt.Sprintf("%x", md5.Sum(content)), strings.Repeat("0", 64)
	for _, c := range []struct {
		want Want
		says string
	}{
		{Want{}, ""},
		{Want{MD5: sum}, ""},
		{Want{Bytes: 5}, fmt.Sprintf("is not the published file: it has %d bytes, not 5", len(content))},
		{Want{Bytes: 1 << 30}, "the published file has 1073741824; the download may be incomplete"},
		{Want{SHA256: other}, "SHA-256 is"},
		{Want{MD5: other[:32]}, "MD5 is " + sum},
	} {
		err := Verify(context.Background(), path, c.want, quiet)
		if got := fmt.Sprint(err); (err == nil) != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%+v: %v", c.want, err)
		}
		if d := Differs(""); errors.As(err, &d) != (c.says != "") {
			t.Errorf("%+v: Differs in the chain? %v", c.want, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Verify(ctx, path, Want{MD5: sum}, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNameOf derives file names from URLs, never paths.
func TestNameOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://a.org/b/c.h5":              "c.h5",
		"https://a.org/b/c.npz?download=1":  "c.npz",
		"https://a.org":                     "download",
		"https://a.org/":                    "download",
		"https://a.org/x/../../etc/passwd":  "passwd",
		"https://a.org/b/..":                "download",
		"https://a.org/file.parquet#part-1": "file.parquet",
	} {
		if got := NameOf(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// TestPrivateServersAreRefused: private servers are refused without a request, and the error names the flag that allows them.
func TestPrivateServersAreRefused(t *testing.T) {
	reached := 0
	inside := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	err := Public().Download(t.Context(), folder(t), Want{URL: inside, Name: "a.bin"}, quiet)
	if refused := (public.Refused{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), AllowPrivate) || reached != 0 {
		t.Errorf("reached %d times: %v", reached, err)
	}
}
