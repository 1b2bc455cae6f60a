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
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/model"
	"slotscope/model/expect"
)

// TestEveryPageIsAccessible follows every link from the first page and asks axe-core for serious and critical faults, on a
// desk and on a phone, in light and in dark; no page may be wider than its window.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("looks at every page four times")
	}
	handlertest.NeedsBrowser(t)
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	s.finishedRun()
	v := s.visitor()
	widths, schemes := []int64{1280, 390}, []string{"light", "dark"}
	pages := v.crawl(func(i int, page string) {
		widths, schemes := widths, schemes
		if !expect.All() { // each page in one of the four ways, by turns
			widths, schemes = widths[i%2:i%2+1], schemes[i/2%2:i/2%2+1]
		}
		for _, width := range widths {
			v.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(s.url+page))
			v.see(`document.readyState === 'complete'`)
			if over := v.number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s, %d px: the page is %d px wider than its window", page, width, over)
			}
			for _, scheme := range schemes {
				v.prefer(scheme)
				for _, fault := range v.axe(string(axe)) {
					t.Errorf("%s, %d px, %s: %s", page, width, scheme, fault)
				}
			}
		}
	})
	for _, want := range []string{"/", "/datasets", "/runs", "/runs/new", "/system"} {
		if !slices.Contains(pages, want) {
			t.Errorf("no links lead to %s; pages are %v", want, pages)
		}
	}
	t.Logf("%d pages: %v", len(pages), pages)
	s.close()
}

// prefer asks the page for light or dark colours, and waits until none is on its way to another.
func (v *visitor) prefer(scheme string) {
	v.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, media); err != nil {
		v.t.Fatal(err)
	}
	v.see(`matchMedia('(prefers-color-scheme: ` + scheme + `)').matches && !document.getAnimations().some((a) => a instanceof CSSTransition && a.playState === 'running')`)
}

// finishedRun trains for a few steps, so that pages of runs have something to show.
func (s *site) finishedRun() {
	s.t.Helper()
	var run model.Run
	config := map[string]any{"steps": 12, "batch": 4, "checkpoint_every": 6, "sample_every": 6, "eval_every": 6, "eval_images": 16, "evaluate": "none"}
	s.want(http.StatusCreated, http.MethodPost, "/api/runs", map[string]any{"config": config}, &run)
	s.reachState(run.ID, model.Finished)
}

// varying are the parts of an address that name one thing of many.
var varying = regexp.MustCompile(`\d{8}-\d{6}-[a-z0-9]+(@\d+)?|[0-9a-f]{16}`)

// crawl follows links from the first page and has look open each, the i-th; of addresses that differ only in their query or in the run
// that they name, one is enough.
func (v *visitor) crawl(look func(i int, page string)) (pages []string) {
	v.t.Helper()
	seen := map[string]bool{"/": true}
	pages = []string{"/"}
	for i := 0; i < len(pages); i++ {
		look(i, pages[i])
		var links []string
		if err := json.Unmarshal([]byte(v.eval(`JSON.stringify([...document.querySelectorAll('a[href]:not([download])')].map((a) => a.href))`)), &links); err != nil {
			v.t.Fatal(err)
		}
		for _, link := range links {
			u, err := url.Parse(link)
			if err != nil || !strings.HasPrefix(link, v.url+"/") || !isPage(u.Path) {
				continue
			}
			if kind := kindOf(u.Path); !seen[kind] {
				seen[kind] = true
				pages = append(pages, strings.TrimPrefix(link, v.url))
			}
		}
	}
	return pages
}

// kindOf is the same for pages that differ in what they show only: one slot of an atlas and one code stand for all, and where not all tests
// are asked for, one dataset that is not here and one that is drawn for the others, and /play for the page that it leads to.
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

// isPage leaves out what is for machines: pictures, files, the API.
func isPage(path string) bool {
	for _, prefix := range []string{"/api/", "/img/", "/static/", "/metrics", "/healthz", "/readyz", "/version"} {
		if strings.HasPrefix(path, prefix) {
			return false
		}
	}
	return filepath.Ext(path) == ""
}

// axe lists the serious and critical faults that axe-core finds on the page.
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
