//go:build linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/model"
	"slotscope/model/expect"
)

// TestEveryPageIsAccessible follows every link from the first page and fails if axe-core finds serious or critical violations or if a
// page is wider than its window, at desktop and phone width, in light and dark mode.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("checks every page four times")
	}
	handlertest.NeedsBrowser(t)
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	s.finishedRun()
	c := crawl{start: s.url, seen: map[string]bool{"/": true}, found: []string{"/"}}
	c.changed.L = &c.mu
	t.Run("crawl", func(t *testing.T) {
		for i := range 2 {
			t.Run(fmt.Sprint("visitor ", i), func(t *testing.T) {
				t.Parallel()
				v := s.visitorOf(t)
				c.visit(func(i int, page string) (links []string) {
					v.inspect(string(axe), i, page)
					if err := json.Unmarshal([]byte(v.eval(`JSON.stringify([...document.querySelectorAll('a[href]:not([download])')].map((a) => a.href))`)), &links); err != nil {
						t.Fatal(err)
					}
					return links
				})
			})
		}
	})
	for _, want := range []string{"/", "/datasets", "/runs", "/runs/new", "/system"} {
		if !slices.Contains(c.found, want) {
			t.Errorf("no link leads to %s; pages: %v", want, c.found)
		}
	}
	t.Logf("%d pages: %v", len(c.found), c.found)
	s.close()
}

// inspect checks the i-th page in every width and colour scheme, or, unless all tests were requested, in one combination by turns.
func (v *visitor) inspect(axe string, i int, page string) {
	v.t.Helper()
	widths, schemes := []int64{1280, 390}, []string{"light", "dark"}
	if !expect.All() {
		widths, schemes = widths[i%2:i%2+1], schemes[i/2%2:i/2%2+1]
	}
	for _, width := range widths {
		v.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(v.url+page))
		v.see(`document.readyState === 'complete'`)
		if over := v.number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			v.t.Errorf("%s, %d px: the page is %d px wider than its window", page, width, over)
		}
		for _, scheme := range schemes {
			v.prefer(scheme)
			for _, fault := range v.axe(axe) {
				v.t.Errorf("%s, %d px, %s: %s", page, width, scheme, fault)
			}
		}
	}
}

// prefer sets the preferred colour scheme and waits until colour transitions have ended.
func (v *visitor) prefer(scheme string) {
	v.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, media); err != nil {
		v.t.Fatal(err)
	}
	v.see(`matchMedia('(prefers-color-scheme: ` + scheme + `)').matches && !document.getAnimations().some((a) => a instanceof CSSTransition && a.playState === 'running')`)
}

// finishedRun trains a run for a few steps, so that run pages have content.
func (s *site) finishedRun() {
	s.t.Helper()
	var run model.Run
	config := map[string]any{"steps": 12, "batch": 4, "checkpoint_every": 6, "sample_every": 6, "eval_every": 6, "eval_images": 16, "evaluate": "none"}
	s.want(http.StatusCreated, http.MethodPost, "/api/runs", map[string]any{"config": config}, &run)
	s.reachState(run.ID, model.Finished)
}

// varying matches the parts of a URL that identify one item of many.
var varying = regexp.MustCompile(`\d{8}-\d{6}-[a-z0-9]+(@\d+)?|[0-9a-f]{16}`)

// crawl is the shared state of several browsers that follow links from the first page. Of URLs that differ only in their query or run,
// one is visited.
type crawl struct {
	start string // the site's URL

	mu      sync.Mutex
	changed sync.Cond
	seen    map[string]bool // by kind
	found   []string
	taken   int // number of found pages taken by a browser
	busy    int // browsers at a page
}

// visit calls look with pages, which returns their links, until no page is left and no browser is busy.
func (c *crawl) visit(look func(i int, page string) (links []string)) {
	for {
		i, page, ok := c.take()
		if !ok {
			return
		}
		var links []string
		func() {
			defer func() { c.add(links) }() // also if look ends the test
			links = look(i, page)
		}()
	}
}

func (c *crawl) take() (i int, page string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.taken == len(c.found) && c.busy > 0 {
		c.changed.Wait()
	}
	if c.taken == len(c.found) {
		return 0, "", false
	}
	i = c.taken
	c.taken++
	c.busy++
	return i, c.found[i], true
}

// add ends the visit of a page and queues its new links.
func (c *crawl) add(links []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	for _, link := range links {
		u, err := url.Parse(link)
		if err != nil || !strings.HasPrefix(link, c.start+"/") || !isPage(u.Path) {
			continue
		}
		if kind := kindOf(u.Path); !c.seen[kind] {
			c.seen[kind] = true
			c.found = append(c.found, strings.TrimPrefix(link, c.start))
		}
	}
	c.changed.Broadcast()
}

// kindOf returns the same kind for pages that differ only in their data: one slot of an atlas and one code represent all. Unless all tests
// were requested, one drawn and one other dataset represent the rest, and /play the page to which it redirects.
func kindOf(path string) string {
	if name, dataset := strings.CutPrefix(path, "/datasets/"); dataset && !expect.All() {
		return fmt.Sprint("/datasets/* ", strings.HasSuffix(name, "-synthetic"))
	}
	if before, rest, atlas := strings.Cut(path, "/atlas/"); atlas {
		return "atlas " + fmt.Sprint(strings.Count(before, "/"), strings.Count(rest, "/"))
	}
	kind := varying.ReplaceAllString(path, "*")
	if kind == "/play/*" && !expect.All() {
		return "/play"
	}
	return kind
}

// isPage reports whether a path is a page, not an image, a file or the API.
func isPage(path string) bool {
	for _, prefix := range []string{"/api/", "/img/", "/static/", "/metrics", "/healthz", "/readyz", "/version"} {
		if strings.HasPrefix(path, prefix) {
			return false
		}
	}
	return filepath.Ext(path) == ""
}

// axe lists the serious and critical violations that axe-core finds on the page.
func (v *visitor) axe(source string) []string {
	v.t.Helper()
	v.eval(`(() => { if (!window.axe) { ` + source + `; } return 1; })()`)
	v.eval(`(() => { window.axeSays = null; window.axe.run().then((r) => { window.axeSays = r; }, (e) => { window.axeSays = {error: String(e)}; }); })()`)
	v.see(`window.axeSays`)
	var says struct {
		Error      string
		Violations []struct {
			ID, Impact, Help string
			Nodes            []struct {
				HTML           string
				FailureSummary string
			}
		}
	}
	if err := json.Unmarshal([]byte(v.eval(`JSON.stringify({error: window.axeSays.error, violations: window.axeSays.violations})`)), &says); err != nil {
		v.t.Fatal(err)
	}
	if says.Error != "" {
		v.t.Fatal(says.Error)
	}
	var faults []string
	for _, f := range says.Violations {
		if f.Impact != "serious" && f.Impact != "critical" {
			continue
		}
		n := f.Nodes[0]
		faults = append(faults, fmt.Sprintf("%s, %s (%d times): %.200s: %s", f.ID, f.Help, len(f.Nodes), n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", " ")))
	}
	return faults
}
