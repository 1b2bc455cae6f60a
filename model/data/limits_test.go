package data

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
)

// TestPathsStayWithinRoots tries ways out of the folders that users may add from. Existing and missing files outside are not
// distinguishable.
func TestPathsStayWithinRoots(t *testing.T) {
	dir, root, outside := t.TempDir(), t.TempDir(), t.TempDir()
	file := func(path string) string {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("PK\x03\x04"), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inside, data, secret := file(filepath.Join(root, "own.npz")), file(filepath.Join(dir, "in.npz")), file(filepath.Join(outside, "secret.npz"))
	link := func(from, to string) string {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
		return from
	}
	toFile, toFolder := link(filepath.Join(root, "link.npz"), secret), link(filepath.Join(root, "folder"), outside)
	good := link(filepath.Join(root, "good.npz"), inside)
	bracket := file(filepath.Join(outside, "a[b].npz"))
	sets := Catalogue{Dir: dir, Limits: Limits{Roots: []string{root, dir}}}
	for from, ok := range map[string]bool{
		inside: true, data: true, "in.npz": true, good: true,
		secret: false, filepath.Join(outside, "nothing.npz"): false, outside: false, "/": false, "/etc/passwd": false, "/proc/self/environ": false,
		root + "/../" + filepath.Base(outside) + "/secret.npz": false, "../" + filepath.Base(outside) + "/secret.npz": false,
		toFile: false, filepath.Join(toFolder, "secret.npz"): false, root + "-more": false, bracket: false, outside + "/x://y": false,
	} {
		_, err := sets.Plan(Request{From: from, Name: "mine"})
		if (err == nil) != ok {
			t.Errorf("%s: %v, want %v", from, err, ok)
		}
		var bad model.Invalid
		if !ok && !strings.Contains(from, "..") && !strings.Contains(from, "://") && from != bracket && (!errors.As(err, &bad) || !strings.Contains(bad["from"], "outside the folders")) {
			t.Errorf("%s: %v", from, err)
		}
		if _, err := sets.Preview(t.Context(), Request{From: from}); !ok && err == nil {
			t.Errorf("%s: previewed", from)
		}
	}
	if exists, not := sets.isPath(bracket), sets.isPath(outside+"/c[d].npz"); exists || not {
		t.Error("existing and missing files outside the roots are distinguishable")
	}
	if _, err := (Catalogue{Dir: dir}).Plan(Request{From: secret, Name: "mine"}); err != nil {
		t.Errorf("without limits: %v", err)
	}
}

// TestInterruptedRequestIsBounded: an earlier request of the operator does not let a user read outside the roots.
func TestInterruptedRequestIsBounded(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret.npz")
	if err := os.WriteFile(secret, []byte("no archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	operator := Catalogue{Dir: dir}
	if _, err := operator.Add(t.Context(), Request{From: secret, Name: "mine"}, nil); err == nil {
		t.Fatal("a damaged file was added")
	}
	visitor := Catalogue{Dir: dir, Limits: Limits{Roots: []string{dir}}}
	if _, err := visitor.Plan(Request{Name: "mine"}); err == nil || !strings.Contains(err.Error(), "outside the folders") {
		t.Errorf("%v", err)
	}
}

// TestURLsArePublic: servers on this machine get no requests on behalf of a user.
func TestURLsArePublic(t *testing.T) {
	asked := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer inside.Close()
	sets := Catalogue{Dir: t.TempDir(), Limits: Limits{Public: true}}
	for _, address := range []string{inside.URL + "/x.npz", strings.Replace(inside.URL, "127.0.0.1", "localhost", 1) + "/x.npz", "http://[::1]/x.npz", "http://169.254.169.254/latest/x.npz"} {
		if _, err := sets.Add(t.Context(), Request{From: address}, nil); err == nil || !strings.Contains(err.Error(), "--allow-private-urls") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked != 0 {
		t.Errorf("the server got %d requests", asked)
	}
	if _, err := sets.Plan(Request{From: "https://example.org/x.npz"}); err != nil {
		t.Errorf("a public address: %v", err)
	}
}
