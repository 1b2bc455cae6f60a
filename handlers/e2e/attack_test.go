//go:build linux

package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// nasty is a name that breaks out of HTML, attributes, scripts, CSV, TeX and headers if it is not escaped.
const nasty = `=cmd|'/c calc'!A1"><script>alert(1)</script><img src=x onerror=alert(1)>';\input{/etc/passwd}${7*7}`

// nastyRun writes a finished run with a nasty name, notes and series.
func nastyRun(t *testing.T, dataDir string) (id string) {
	t.Helper()
	id = model.NewID(time.Now())
	cfg, err := model.Default("hrr", "tiny", "shapes3d-synthetic")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Steps = 2
	f, err := folder.Create(filepath.Join(dataDir, "runs", id), cfg, nasty)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	points, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 2; step++ {
		if err := points.Append(model.Point{Step: step, Values: map[string]float64{"total": 1, "=1+1": 2, nasty: 3}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := points.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.SetMeta(folder.Meta{Name: nasty, Notes: nasty}); err != nil {
		t.Fatal(err)
	}
	if err := f.SetStatus(model.Status{State: model.Finished, Step: 2, Reason: nasty, Engine: nasty, EngineWhy: nasty}); err != nil {
		t.Fatal(err)
	}
	return id
}

// raw sends a request as is and returns the whole response; HTTP clients would normalise the URL.
func (s *site) raw(request string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(conn, request)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	body, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%s\n%v\n%s", answer.Status, answer.Header, body)
}

// TestTricks repeats known attacks: names that become markup, formulas or commands, paths out of the data folder, and forged headers.
func TestTricks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id := nastyRun(t, dir)
	s := serve(t, dir)
	s.reachState(id, model.Finished)

	t.Run("HTML", func(t *testing.T) {
		for _, path := range []string{"/", "/runs", "/runs/" + id, "/runs/new?from=" + id, "/runs/new?name=" + urlEscape(nasty), "/compare?run=" + id, "/runs?q=" + urlEscape(nasty),
			"/datasets?from=" + urlEscape(nasty), "/datasets/" + urlEscape(nasty), "/" + urlEscape(nasty), "/measure", "/system", "/sweeps", "/theory?m=" + urlEscape(nasty)} {
			_, page := s.call("GET", path, nil, nil)
			for _, part := range []string{"<script>alert", "<img src=x", `A1">`} {
				if at := strings.Index(page, part); at >= 0 {
					t.Errorf("%s has %q unescaped: …%s…", path, part, page[max(0, at-80):min(len(page), at+80)])
				}
			}
		}
	})

	if page := s.want(http.StatusOK, "GET", "/runs/"+id, nil, nil); !strings.Contains(page, "&lt;script&gt;alert(1)") {
		t.Error("the run's page does not show its name")
	}

	t.Run("CSV", func(t *testing.T) {
		for _, path := range []string{"/api/runs/" + id + "/points.csv", "/api/runs/" + id + "/points.csv?names=total,%3D1%2B1,%40SUM(A1),-2"} {
			file := s.want(http.StatusOK, "GET", path, nil, nil)
			if !strings.Contains(file, ",'=1+1") {
				t.Errorf("%s lacks the column: %s", path, file)
			}
			for line := range strings.Lines(file) {
				for cell := range strings.SplitSeq(strings.TrimSpace(line), ",") {
					if cell = strings.TrimPrefix(cell, `"`); cell != "" && strings.ContainsAny(cell[:1], "=+-@") {
						t.Errorf("%s: the cell %q is a formula", path, cell)
					}
				}
			}
		}
	})

	t.Run("paths", func(t *testing.T) {
		for _, path := range []string{"/static/../go.mod", "/static/%2e%2e/%2e%2e/etc/passwd", "/static/..%2f..%2fetc%2fpasswd", "/api/runs/..%2f..%2fetc/points.csv",
			"/api/runs/..%2F..%2F..%2Fetc%2Fpasswd/log", "/api/runs/" + id + "/samples/..%2f..%2fconfig.json", "/api/runs/" + id + "/checkpoints/../config.json",
			"/api/runs/" + id + "%00/log", "/api/datasets/..%2f..%2findex.sqlite/image/0.png", "/api/datasets/%2fetc%2fpasswd", "/datasets/..%2fruns", "/sweeps/..%2f..%2fetc",
			"/img/..%2f..%2fetc/1.2.png", "/reports/..%2f..%2fetc%2fpasswd", "//evil.example/%2e%2e/runs/", "/\\evil.example/runs/", "/runs/..;/..;/etc/passwd"} {
			answer := s.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			status, _, _ := strings.Cut(answer, "\n")
			if strings.HasPrefix(status, "2") || strings.HasPrefix(status, "5") || strings.Contains(answer, "root:") || strings.Contains(answer, "Location:[//") || strings.Contains(answer, "Location:[http") {
				t.Errorf("%s: %.300s", path, answer)
			}
		}
		for _, name := range []string{"../evil", "..", "a/b", "a\x00b", "CON\n"} {
			status, answer := s.call("POST", "/api/datasets", map[string]any{"name": name, "from": dir}, nil)
			if status/100 == 2 {
				t.Errorf("a dataset is added as %q: %s", name, answer)
			}
		}
	})

	t.Run("headers", func(t *testing.T) {
		for _, c := range []struct{ name, request, status string }{
			{"another host's name", "GET /runs HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"},
			{"a host with a path", "GET /runs HTTP/1.1\r\nHost: localhost/evil\r\n\r\n", "4"},
			{"a forwarded host", "GET /runs HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\nForwarded: host=localhost\r\n\r\n", "421"},
			{"an absolute address of another host", "GET http://evil.example/runs HTTP/1.1\r\nHost: localhost\r\n\r\n", "421"},
			{"a write from elsewhere", "POST /api/runs/" + id + "/stop HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n\r\n", "403"},
			{"a write from a sandboxed page", "POST /api/runs/" + id + "/stop HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nContent-Length: 0\r\n\r\n", "403"},
			{"a method in a header", "POST /api/runs/" + id + " HTTP/1.1\r\nHost: localhost\r\nX-HTTP-Method-Override: DELETE\r\nContent-Length: 0\r\n\r\n", "405"},
			{"two lengths", "POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
			{"a socket from elsewhere", "GET /ws/runs/" + id + " HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", "403"},
		} {
			if answer := s.raw(c.request); !strings.HasPrefix(answer, c.status) {
				t.Errorf("%s: %.300s", c.name, answer)
			}
		}
		for _, path := range []string{"/runs/%0d%0aSet-Cookie:%20x=1/", "/runs/?token=%0d%0aSet-Cookie:%20x=1"} {
			if answer := s.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); strings.Contains(answer, "Set-Cookie:[") {
				t.Errorf("%s sets a header: %.300s", path, answer)
			}
		}
		res, err := http.Get(s.url + "/api/runs/" + id + "/points.csv?names=%22%0d%0aX-Evil:1")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if want := fmt.Sprintf(`attachment; filename="%s.csv"`, id); res.Header.Get("X-Evil") != "" || res.Header.Get("Content-Disposition") != want {
			t.Errorf("headers %v", res.Header)
		}
	})
	s.run(id) // it still exists and is still finished
	s.close()
}

// urlEscape escapes text as one segment of a URL.
func urlEscape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
