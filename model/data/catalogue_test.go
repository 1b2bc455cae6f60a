package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slotscope/model"
	"slotscope/model/expect"
)

// plainSet is the content of a test file: a dataset of one-channel images in which pixel p of image i is 7·i + p.
type plainSet struct {
	N, Side  int
	Sizes    []int
	Labels   []uint16 // nil for a complete grid
	Delay    time.Duration
	Place    bool // random access
	PanicsAt int  // image at which Stream panics; 0 for never
	Info     Info `json:"-"`
}

func (p plainSet) info() Info {
	info := Info{H: p.Side, W: p.Side, C: 1, Len: p.N, Licence: "CC0", Complete: p.Labels == nil && len(p.Sizes) > 0}
	for f, n := range p.Sizes {
		factor := Factor{Name: string(rune('a' + f))}
		for c := range n {
			factor.Values = append(factor.Values, fmt.Sprintf("%c%d", 'A'+f, c))
		}
		info.Factors = append(info.Factors, factor)
	}
	return info
}

func (p plainSet) image(dst []byte, i int) {
	for at := range dst {
		dst[at] = byte(7*i + at)
	}
}

// plainSource reads a plainSet.
type plainSource struct {
	plainSet
	mu *sync.Mutex
}

func openPlain(path string) (Source, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := plainSource{mu: new(sync.Mutex)}
	if err := json.Unmarshal(b, &s.plainSet); err != nil {
		return nil, fmt.Errorf("%s is not a plain set: %w", path, err)
	}
	if s.Place {
		return placedSource{s}, nil
	}
	return s, nil
}

func (s plainSource) Info() Info       { return s.info() }
func (s plainSource) Labels() []uint16 { return s.plainSet.Labels }
func (s plainSource) Close() error     { return nil }

func (s plainSource) Stream(ctx context.Context, first int, yield func(int, []byte) error) error {
	each := s.Side * s.Side
	for i := first; i < s.N; i += 100 {
		n := min(100, s.N-i)
		images := make([]byte, n*each)
		for b := range n {
			s.image(images[b*each:(b+1)*each], i+b)
		}
		if s.PanicsAt > 0 && i >= s.PanicsAt {
			panic("index out of range")
		}
		if err := yield(i, images); err != nil {
			return err
		}
		time.Sleep(s.Delay)
	}
	return nil
}

type placedSource struct{ plainSource }

func (s placedSource) ReadImages(dst []byte, index []int) error {
	each := s.Side * s.Side
	for b, i := range index {
		s.image(dst[b*each:(b+1)*each], i)
	}
	return nil
}

// withPlain registers a published dataset, in one file or two, and a format for a user's own plain files.
func withPlain(t *testing.T, url, sha string) {
	before, formatsBefore := published, formats
	t.Cleanup(func() { published, formats = before, formatsBefore })
	open := func(_ context.Context, paths []string) (Source, error) { return openPlain(paths[0]) }
	published = append(slices.Clone(published), Published{
		Info: Info{Name: "plain", Title: "Plain", Licence: "CC0"}, Page: "https://plain.example/",
		Forms: []Form{
			{Files: []File{{Name: "plain.json", Layout: "plain/plain.json", URL: url, SHA256: sha}}, Open: open},
			{Files: []File{{Name: "plain.one"}, {Name: "plain.two"}}, Open: open},
		},
	})
	formats = append(slices.Clone(formats), Format{Name: "own",
		Match: func(path string, _ []byte) bool { return strings.HasSuffix(path, ".own") },
		Open:  func(_ context.Context, path string, _ Reading) (Source, error) { return openPlain(path) }})
}

func writePlain(t *testing.T, path string, p plainSet) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func catalogue(t *testing.T) Catalogue {
	t.Setenv(LayoutVariable, "")
	return Catalogue{Dir: filepath.Join(t.TempDir(), "data")}
}

func add(t *testing.T, c Catalogue, r Request) Set {
	t.Helper()
	name, err := c.Add(context.Background(), r, func(Work) {})
	if err != nil {
		t.Fatal(err)
	}
	set, err := c.Open(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// same checks that a dataset has the images and labels of p.
func same(t *testing.T, set Set, p plainSet) {
	t.Helper()
	info := set.Info()
	if info.Len != p.N || len(info.Factors) != len(p.Sizes) {
		t.Fatalf("%d images with %d factors", info.Len, len(info.Factors))
	}
	each, f := p.Side*p.Side, len(p.Sizes)
	got, want := make([]byte, each), make([]byte, each)
	classes := make([]int, f)
	for i := range p.N {
		p.image(want, i)
		if err := errors.Join(set.Images(got, []int{i}), set.Classes(classes, []int{i})); err != nil || !slices.Equal(got, want) {
			t.Fatalf("image %d: %v", i, err)
		}
		for k := range f {
			if p.Labels != nil && classes[k] != int(p.Labels[i*f+k]) {
				t.Fatalf("image %d has classes %v", i, classes)
			}
		}
		if f > 0 {
			if at, err := set.Index(classes); err != nil || at != i {
				t.Fatalf("Index(%v) = %d, %v; want %d", classes, at, err, i)
			}
		}
	}
}

// sets returns datasets of every shape.
func sets() map[string]plainSet {
	return map[string]plainSet{
		"complete":         {N: 24, Side: 3, Sizes: []int{2, 3, 4}},
		"incomplete":       {N: 5, Side: 3, Sizes: []int{3, 3}, Labels: []uint16{2, 2, 0, 0, 1, 1, 0, 2, 2, 0}},
		"without factors":  {N: 300, Side: 2},
		"in place":         {N: 24, Side: 3, Sizes: []int{2, 3, 4}, Place: true},
		"in place, partly": {N: 3, Side: 3, Sizes: []int{3, 3}, Labels: []uint16{2, 2, 0, 0, 1, 1}, Place: true},
		"in place, none":   {N: 7, Side: 3, Place: true},
	}
}

// TestAdd adds datasets of every shape from a user's own file and reads them back.
func TestAdd(t *testing.T) {
	withPlain(t, "", "")
	for name, p := range sets() {
		t.Run(name, func(t *testing.T) {
			c := catalogue(t)
			path := writePlain(t, filepath.Join(t.TempDir(), "My Set.own"), p)
			set := add(t, c, Request{From: path})
			same(t, set, p)
			if set.Info().Name != "my-set" {
				t.Errorf("it is called %q", set.Info().Name)
			}
			e, err := c.Entry(context.Background(), "my-set")
			if err != nil || e.State != Ready || (e.Kind == Placed) != p.Place {
				t.Errorf("its entry: %+v, %v", e, err)
			}
			if err := c.Check(context.Background(), "my-set", func(Work) {}); err != nil {
				t.Error(err)
			}
			if _, err := c.Add(context.Background(), Request{From: path}, func(Work) {}); !errors.Is(err, model.ErrConflict) {
				t.Errorf("adding it again: %v", err)
			}
			if len(p.Sizes) > 0 && p.Labels != nil {
				if _, err := set.Index([]int{2, 1}); !errors.Is(err, model.ErrNotFound) || !strings.Contains(err.Error(), "a A2, b B1") {
					t.Errorf("a tuple that it lacks: %v", err)
				}
			}
			if len(p.Sizes) == 0 {
				if _, err := set.Index(nil); !errors.Is(err, model.ErrNotFound) {
					t.Errorf("a tuple of no factors: %v", err)
				}
			}
			if err := c.Remove("my-set"); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Open(context.Background(), "my-set"); err == nil || !strings.Contains(err.Error(), `unknown dataset "my-set"`) {
				t.Errorf("after removing it: %v", err)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("removing it deleted the user's file: %v", err)
			}
		})
	}
}

// TestFound finds published files in the data folder and in disentanglement_lib's layout, and adds them by name.
func TestFound(t *testing.T) {
	withPlain(t, "", "")
	p := sets()["complete"]
	for name, place := range map[string]string{"data folder": "data/plain.json", "layout": "lib/plain/plain.json", "two files": "lib/plain.one"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := Catalogue{Dir: filepath.Join(dir, "data")}
			t.Setenv(LayoutVariable, filepath.Join(dir, "lib"))
			ctx := context.Background()
			if e, err := c.Entry(ctx, "plain"); err != nil || e.State != Absent || !strings.Contains(e.Why(), "https://plain.example/. Licence: CC0") {
				t.Errorf("before: %v %v", e.Why(), err)
			}
			if _, err := c.Plan(Request{Name: "plain"}); err == nil || !strings.Contains(err.Error(), "must be downloaded by hand") {
				t.Errorf("before: %v", err)
			}
			path := writePlain(t, filepath.Join(dir, place), p)
			if strings.HasSuffix(path, ".one") {
				if e, _ := c.Entry(ctx, "plain"); e.State != Absent {
					t.Errorf("with one file of two: %s", e.State)
				}
				writePlain(t, filepath.Join(dir, "lib/plain.two"), p)
			}
			e, _ := c.Entry(ctx, "plain")
			if e.State != Found || e.Paths[0] != path {
				t.Fatalf("with the file: %s, %v", e.State, e.Paths)
			}
			if _, err := c.Open(ctx, "plain"); err == nil || !strings.Contains(err.Error(), "but not added") {
				t.Errorf("opening it: %v", err)
			}
			same(t, add(t, c, Request{Name: "plain"}), p)
		})
	}
}

// TestPublishedPath recognises a published file, one of several, or their folder, anywhere on the machine.
func TestPublishedPath(t *testing.T) {
	withPlain(t, "", "")
	dir, c := t.TempDir(), catalogue(t)
	os.MkdirAll(c.Dir, 0o755)
	writePlain(t, filepath.Join(dir, "x/plain.json"), sets()["complete"])
	writePlain(t, filepath.Join(dir, "y/plain.one"), sets()["complete"])
	for from, says := range map[string]string{
		"x/plain.json": "", "x": "", "y/plain.one": "neither a published dataset", "y": "neither a published dataset",
		"z": "no file or folder", "x/../x/plain.json": "",
	} {
		name, err := c.Plan(Request{From: dir + "/" + from})
		if says == "" && (err != nil || name != "plain") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %q, %v", from, name, err)
		}
	}
	writePlain(t, filepath.Join(dir, "y/plain.two"), sets()["complete"])
	if name, err := c.Plan(Request{From: dir + "/y/plain.two"}); name != "plain" || err != nil {
		t.Errorf("the second of two files: %q, %v", name, err)
	}
	for from, says := range map[string]string{"../x/plain.json": "leads out of the data folder", "no": "no file or folder", "/dev/null": "neither a file nor a folder"} {
		if _, err := c.Plan(Request{From: from}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// TestNames checks that names that leave the folder of datasets or are taken are rejected.
func TestNames(t *testing.T) {
	withPlain(t, "", "")
	c := catalogue(t)
	path := writePlain(t, filepath.Join(t.TempDir(), "a.own"), sets()["complete"])
	for name, says := range map[string]string{
		"../x": "cannot name a dataset", "X": "cannot name", "a b": "cannot name", ".x": "cannot name", strings.Repeat("x", 65): "cannot name",
		"shapes3d-synthetic": "part of the program", "mpi3d-complex": "name of a published dataset",
	} {
		if _, err := c.Add(context.Background(), Request{Name: name, From: path}, func(Work) {}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, r := range []Request{{From: writePlain(t, filepath.Join(t.TempDir(), "Isaac3D.own"), sets()["complete"])}, {Name: "dsprites", From: "shapes3d-synthetic[every=2]"}} {
		if _, err := c.Add(context.Background(), r, func(Work) {}); err == nil || !strings.Contains(err.Error(), "name of a published dataset") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for from, says := range map[string]string{
		"nowhere.own": "nowhere.own is a relative path", filepath.Join(t.TempDir(), "no.own"): "no.own on this machine",
		writeEmpty(t): "empty.own is empty",
	} {
		if _, err := c.Add(context.Background(), Request{From: from}, func(Work) {}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", from, err, says)
		}
	}
	if _, err := os.Stat(c.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("rejected requests wrote files: %v", err)
	}
}

func writeEmpty(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty.own")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOddPath: a path with brackets is a path, not a selection, if it exists.
func TestOddPath(t *testing.T) {
	withPlain(t, "", "")
	c, p := catalogue(t), sets()["complete"]
	same(t, add(t, c, Request{From: writePlain(t, filepath.Join(t.TempDir(), "runs [1]", "a & b_%$#{}~^ [every=2].own"), p), Name: "odd"}), p)
	writePlain(t, filepath.Join(c.Dir, "mine[2].own"), p)
	same(t, add(t, c, Request{From: "mine[2].own"}), p)
	_, err := c.Add(context.Background(), Request{From: "nowhere.own"}, func(Work) {})
	expect.Says(t, err, "no file or folder nowhere.own in the data folder, "+c.Dir)
	_, err = c.Add(context.Background(), Request{From: "shapes3d-synthetic"}, func(Work) {})
	expect.Says(t, err, "part of the program and need not be added")
}

// TestOtherFile: a file that is not the published one is rejected with a hint, and can be added as the hint says.
func TestOtherFile(t *testing.T) {
	withPlain(t, "", strings.Repeat("0", 64))
	c, p := catalogue(t), sets()["complete"]
	path := writePlain(t, filepath.Join(t.TempDir(), "plain.json"), p)
	formats[len(formats)-1].Match = func(path string, _ []byte) bool { return strings.HasSuffix(path, ".json") }
	_, err := c.Add(context.Background(), Request{From: path}, func(Work) {})
	for _, want := range []string{"is not the published file", "add it under a name other than", "a name other than plain (--name)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing: %v", want, err)
		}
	}
	same(t, add(t, c, Request{From: path, Name: "mine"}), p)
}

// TestDownload downloads a published dataset, rejects a wrong checksum, and downloads it again after that.
func TestDownload(t *testing.T) {
	body, _ := json.Marshal(sets()["complete"])
	good := body
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	}))
	defer server.Close()
	sum := "" // of the good body
	withPlain(t, server.URL+"/plain.json", "")
	c := catalogue(t)
	published[len(published)-1].Forms[0].Files[0].SHA256 = strings.Repeat("0", 64)
	_, err := c.Add(context.Background(), Request{Name: "plain"}, func(Work) {})
	if err == nil || !strings.Contains(err.Error(), "is not the published file") {
		t.Fatalf("another checksum: %v", err)
	}
	_, after, _ := strings.Cut(err.Error(), "SHA-256 is ")
	sum, _, _ = strings.Cut(after, ",")
	if e, _ := c.Entry(context.Background(), "plain"); e.State != Failed || !strings.Contains(e.Reason, "SHA-256") {
		t.Errorf("its entry: %+v", e)
	}
	published[len(published)-1].Forms[0].Files[0].SHA256 = sum
	body = good
	same(t, add(t, c, Request{Name: "plain"}), sets()["complete"])
	if err := c.Remove("plain"); err != nil {
		t.Fatal(err)
	}
	same(t, add(t, c, Request{From: server.URL + "/plain.json"}), sets()["complete"])
	same(t, add(t, c, Request{From: server.URL + "/other.own", Name: "other"}), sets()["complete"])
	body = good[:len(good)/2]
	_, err = c.Add(context.Background(), Request{From: server.URL + "/short.own"}, func(Work) {})
	expect.Says(t, err, "short.own", "the download was removed")
	body = good
	same(t, add(t, c, Request{From: "short"}), sets()["complete"]) // downloads it again
	for from, says := range map[string]string{"http:///x.own": "not a complete URL", "http://": "not a complete URL", "https://[::1/x": "not a complete URL", "ftp://a.example/x.own": "http:// or https://"} {
		_, err := c.Plan(Request{From: from})
		expect.Says(t, err, from, says)
	}
}

// stopping is a source that cancels its reader's context after more than a block of 256 images.
type stopping struct {
	plainSource
	stop func()
}

func (s stopping) Stream(ctx context.Context, first int, yield func(int, []byte) error) error {
	return s.plainSource.Stream(ctx, first, func(i int, images []byte) error {
		if i >= 300 {
			s.stop()
		}
		return yield(i, images)
	})
}

// TestCancel: cancelled packing keeps what was packed and resumes there.
func TestCancel(t *testing.T) {
	withPlain(t, "", "")
	c := catalogue(t)
	p := plainSet{N: 2000, Side: 4}
	path := writePlain(t, filepath.Join(t.TempDir(), "big.own"), p)
	ctx, cancel := context.WithCancel(context.Background())
	open := formats[len(formats)-1].Open
	formats[len(formats)-1].Open = func(ctx context.Context, path string, _ Reading) (Source, error) {
		s, err := openPlain(path)
		return stopping{s.(plainSource), cancel}, err
	}
	_, err := c.Add(ctx, Request{From: path}, func(Work) {})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	formats[len(formats)-1].Open = open
	if e, _ := c.Entry(context.Background(), "big"); e.State != Interrupted || e.Paths[0] != path {
		t.Errorf("its entry: %+v", e)
	}
	if slices.ContainsFunc(c.List(context.Background()), func(i Info) bool { return i.Name == "big" }) {
		t.Error("half a dataset is listed")
	}
	for _, again := range []Request{{Name: "big"}, {From: "big"}, {Name: "big"}} { // as the page and the command request it
		ctx, cancel := context.WithCancel(context.Background())
		if _, err := c.Add(ctx, again, func(w Work) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Fatalf("%+v, cancelled again: %v", again, err)
		}
		e, _ := c.Entry(context.Background(), "big")
		if e.State != Interrupted || e.Paths[0] != path || e.Work.Rate != 0 || e.Work.Left != 0 {
			t.Errorf("%+v, its entry: %+v", again, e)
		}
	}
	first := int64(-1)
	if _, err := c.Add(context.Background(), Request{From: "big"}, func(w Work) {
		if first < 0 && w.Stage == "packing" {
			first = w.Done
		}
	}); err != nil {
		t.Fatal(err)
	}
	if first < 1 {
		t.Errorf("packing resumed from image %d", first)
	}
	set, err := c.Open(context.Background(), "big")
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	same(t, set, p)
}

// TestKilled packs in another process, kills it midway, and resumes in this one.
func TestKilled(t *testing.T) {
	withPlain(t, "", "")
	if dir := os.Getenv("PACK_IN"); dir != "" {
		Catalogue{Dir: dir}.Add(context.Background(), Request{From: os.Getenv("PACK_FROM")}, func(w Work) { fmt.Println(w.Done) })
		return
	}
	c := catalogue(t)
	p := plainSet{N: 30000, Side: 4, Delay: 16 * time.Millisecond, Sizes: []int{3, 100, 100}}
	path := writePlain(t, filepath.Join(t.TempDir(), "big.own"), p)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "PACK_IN="+c.Dir, "PACK_FROM="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		e, _ := c.Entry(context.Background(), "big")
		if e.State == Working && e.Work.Done > 16000 {
			if !strings.Contains(e.Holder, fmt.Sprint(cmd.Process.Pid)) {
				t.Errorf("%q is adding it, not process %d", e.Holder, cmd.Process.Pid)
			}
			break
		}
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("the other process does not pack: %+v", e)
		}
	}
	if _, err := c.Add(context.Background(), Request{From: path}, func(Work) {}); !errors.Is(err, model.ErrConflict) {
		t.Errorf("adding it meanwhile: %v", err)
	}
	if err := c.Remove("big"); !errors.Is(err, model.ErrConflict) {
		t.Errorf("removing it meanwhile: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if e, _ := c.Entry(context.Background(), "big"); e.State != Interrupted || e.Work.Done < 16000 {
		t.Errorf("after the kill: %+v", e)
	}
	first := int64(-1)
	_, err := c.Add(context.Background(), Request{From: "big"}, func(w Work) {
		if first < 0 && w.Stage == "packing" {
			first = w.Done
		}
	})
	if err != nil || first < 1 {
		t.Fatalf("resumed from image %d: %v", first, err)
	}
	set, err := c.Open(context.Background(), "big")
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	same(t, set, p)
}

// TestBadSource: a bad source registers nothing and the error says why.
func TestBadSource(t *testing.T) {
	withPlain(t, "", "")
	for name, c := range map[string]struct {
		set  plainSet
		says string
	}{
		"panics":       {plainSet{N: 500, Side: 2, PanicsAt: 100}, "cannot be read: index out of range"},
		"wrong grid":   {plainSet{N: 23, Side: 2, Sizes: []int{4, 6}}, "23 images do not match the 24 combinations"},
		"wrong class":  {plainSet{N: 2, Side: 2, Sizes: []int{2}, Labels: []uint16{1, 2}}, "image 1 has class 2 of a"},
		"wrong labels": {plainSet{N: 2, Side: 2, Sizes: []int{2}, Labels: []uint16{1}}, "1 labels for 2 images"},
		"no images":    {plainSet{Side: 2}, "0 images"},
	} {
		t.Run(name, func(t *testing.T) {
			cat := catalogue(t)
			path := writePlain(t, filepath.Join(t.TempDir(), "bad.own"), c.set)
			if _, err := cat.Add(context.Background(), Request{From: path}, func(Work) {}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			e, err := cat.Entry(context.Background(), "bad")
			if err != nil || e.State != Failed || !strings.Contains(e.Reason, c.says) {
				t.Errorf("its entry: %+v, %v", e, err)
			}
			if _, err := cat.Open(context.Background(), "bad"); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("opening it: %v", err)
			}
			if err := cat.Remove("bad"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMoved: changed or missing files of a dataset that is read in place are reported.
func TestMoved(t *testing.T) {
	withPlain(t, "", "")
	c, ctx := catalogue(t), context.Background()
	path := writePlain(t, filepath.Join(t.TempDir(), "a.own"), sets()["in place"])
	add(t, c, Request{From: path})
	writePlain(t, path, sets()["in place, none"])
	if _, err := c.Open(ctx, "a"); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("changed: %v", err)
	}
	if e, _ := c.Entry(ctx, "a"); e.State != Failed || !strings.Contains(e.Reason, path+" has changed since") {
		t.Errorf("changed: %+v", e)
	}
	os.Remove(path)
	if e, _ := c.Entry(ctx, "a"); e.State != Failed || !strings.Contains(e.Reason, "no longer exists") {
		t.Errorf("gone: %+v", e)
	}
}

// TestNamedPart names a part of a set, and a part of that.
func TestNamedPart(t *testing.T) {
	c, ctx := catalogue(t), context.Background()
	cubes := add(t, c, Request{Name: "cubes", From: "shapes3d-synthetic[shape=cube]"}).Info()
	if cubes.Name != "cubes" || cubes.Len != 120_000 || !cubes.Complete {
		t.Errorf("%s has %d images, complete: %v", cubes.Name, cubes.Len, cubes.Complete)
	}
	red := add(t, c, Request{Name: "red-cubes", From: "cubes[floor_hue=0.0]"}).Info()
	if red.Name != "red-cubes" || red.Len != 12_000 {
		t.Errorf("%s has %d images", red.Name, red.Len)
	}
	if err := c.Remove("cubes"); err != nil {
		t.Fatal(err)
	}
	if e, err := c.Entry(ctx, "red-cubes"); err != nil || e.State != Failed || !strings.Contains(e.Reason, "it is a part of cubes") {
		t.Errorf("a part of a removed dataset: %+v, %v", e, err)
	}
	cubes = add(t, c, Request{Name: "cubes", From: "shapes3d-synthetic[shape=cube]"}).Info()
	if e, err := c.Entry(ctx, "red-cubes"); err != nil || e.State != Ready {
		t.Errorf("a part of a dataset added again: %+v, %v", e, err)
	}
	if _, err := c.Add(ctx, Request{From: "cubes[every=2]"}, func(Work) {}); err == nil || !strings.Contains(err.Error(), "choose a name") {
		t.Errorf("without a name: %v", err)
	}
	if _, err := c.Add(ctx, Request{Name: "x", From: "cubes[shape=ball]"}, func(Work) {}); err == nil || !strings.Contains(err.Error(), `no value "ball"`) {
		t.Errorf("a value that does not exist: %v", err)
	}
}

// TestTogether adds, lists, opens and reads from several goroutines, for the race detector.
func TestTogether(t *testing.T) {
	withPlain(t, "", "")
	c, dir := catalogue(t), t.TempDir()
	var wg sync.WaitGroup
	for i, name := range []string{"complete", "incomplete", "in place", "in place, partly"} {
		path := writePlain(t, filepath.Join(dir, fmt.Sprintf("s%d.own", i)), sets()[name])
		wg.Go(func() {
			if _, err := c.Add(context.Background(), Request{From: path}, func(Work) {}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for range 50 {
				for _, info := range c.List(context.Background()) {
					if info.Name == "shapes3d-synthetic" {
						continue
					}
					set, err := c.Open(context.Background(), info.Name)
					if err != nil {
						t.Error(err)
						continue
					}
					if err := set.Images(make([]byte, info.H*info.W*info.C), []int{info.Len - 1}); err != nil {
						t.Error(err)
					}
					set.Close()
				}
			}
		})
	}
	wg.Wait()
	if n := len(c.List(context.Background())); n < 5 {
		t.Errorf("%d sets are ready", n)
	}
}
