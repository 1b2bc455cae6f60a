package play_test

import (
	"bytes"
	"net/http"
	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func (p playground) rename(body string) (*http.Response, []byte) {
	p.t.Helper()
	return p.ask("PUT", "/api/play/"+p.key+"/names", http.Header{"Content-Type": {"application/json"}}, strings.NewReader(body))
}

func TestNamesAreShown(t *testing.T) {
	p := newPlayground(t)
	for _, body := range []string{`{"slot":1,"name":"<b>wall</b> & co"}`, `{"slot":1,"code":9,"name":"teal","pin":true}`} {
		if reply, raw := p.rename(body); reply.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", body, reply.Status, raw)
		}
	}
	doc := p.page("/play/" + p.key + "?codes=0.9.0.0.0&bcodes=1.1.1.1.1&slot=1")
	if got := doc.Find(testID("play-head-1") + " .visually-hidden").Text(); got != "<b>wall</b> & co" {
		t.Errorf("the slot's name is %q", got)
	}
	if got := doc.Find(testID("play-slot-a-1") + " .code").Text(); got != "teal" {
		t.Errorf("the code's name is %q", got)
	}
	first := doc.Find("#entries .entry").First()
	if code, _ := first.Attr("data-code"); code != "9" || first.AttrOr("data-pinned", "no") == "no" {
		t.Errorf("the first code in the palette is %s", code)
	}
	var found struct {
		Entries []struct {
			Code   int
			Pinned bool
		}
	}
	p.getJSON("/api/play/"+p.key+"/palette?codes=0.0.0.0.0&slot=1&search=TEA", &found)
	if len(found.Entries) != 1 || found.Entries[0].Code != 9 || !found.Entries[0].Pinned {
		t.Errorf("search by name: %+v", found)
	}
	var kept struct {
		Names struct {
			Slots map[string]string
			Pins  map[string][]int
		}
	}
	p.getJSON("/api/play/"+p.key+"/names", &kept)
	if kept.Names.Slots["1"] != "<b>wall</b> & co" || len(kept.Names.Pins["1"]) != 1 {
		t.Errorf("%+v", kept)
	}
	if reply, raw := p.rename(`{"slot":1,"name":"` + strings.Repeat("x", 10_000) + `"}`); reply.StatusCode != http.StatusUnprocessableEntity || !bytes.Contains(raw, []byte("10000 characters")) {
		t.Errorf("a long name: %s %s", reply.Status, raw)
	}
}

// The longest single-word factor name of Shapes3D fits over a single column.
func TestNameFitsItsColumn(t *testing.T) {
	handlertest.NeedsBrowser(t)
	p := newPlayground(t)
	if reply, raw := p.rename(`{"slot":1,"name":"orientation"}`); reply.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", reply.Status, raw)
	}
	b := openPlayOf(t, p, 1280, 800)
	b.Wait(`[...document.querySelectorAll('.grouphead .factor')].filter((e) => e.textContent === 'orientation').map((e) => e.scrollWidth <= e.clientWidth).join()`, "true")
}

// Names and pins can be set by mouse and by keyboard, in the live page and in the frozen one.
func TestNamesAreGivenInThePage(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	file := frozenOf(t, "hrr", "betavae")
	path, keys := file.path, file.keys
	p := newPlayground(t)
	b := browse(t, p, 1280, 900)
	b.waitFor("usage")
	for name, address := range map[string]string{"live": p.url + "/play/" + p.key + "?" + playState, "frozen": "file://" + path + "#" + keys[0] + "?codes=1.2.3.4.5&bcodes=6.2.8.9.10"} {
		t.Log(name)
		b.Do(chromedp.Navigate(address))
		b.Wait(`document.getElementById('play')?.dataset.ready`, "yes")
		b.Wait(`document.getElementById('entries').inert`, "false")
		b.click("play-name")
		b.Wait(`document.querySelectorAll('dialog[open] input').length > 1 && document.activeElement === document.querySelector('dialog input')`, "true")
		b.Do(chromedp.SendKeys(`dialog input`, "size <i>"+kb.Enter))
		b.Wait(`document.querySelectorAll('dialog').length`, "0")
		b.Wait(`document.querySelector('[data-testid=play-head-0] .visually-hidden').textContent + document.getElementById('palette-factor').textContent`, "size <i>size <i>")
		b.click("play-pin")
		b.Wait(`document.querySelector('#entries .entry[data-pinned]')?.dataset.code + document.querySelector('[data-testid=play-pin]').textContent`, "1Unpin")
		b.Eval(`document.getElementById('palette-unused').click()`)
		b.Wait(`document.querySelectorAll('.entry').length`, "12")
		b.Eval(`document.querySelector('[data-testid=play-palette-7]').focus()`)
		b.Keys("p")
		b.Wait(`[...document.querySelectorAll('#entries .entry')].slice(0, 2).map((e) => e.dataset.code).join()`, "1,7")
		keeps := `localStorage.getItem('slotscope names ` + keys[0] + `')?.includes('size <i>') === true`
		b.Wait(keeps, strconv.FormatBool(name == "frozen"))
		b.Do(chromedp.Reload())
		b.Wait(`document.getElementById('play')?.dataset.ready`, "yes")
		if name == "frozen" && b.Eval(keeps) != "true" { // headless Chromium on a busy machine may lose the storage of file:// pages
			t.Log("the browser lost its storage on reload, so the names cannot be checked")
			continue
		}
		b.Wait(`document.querySelector('[data-testid=play-head-0] .visually-hidden').textContent`, "size <i>")
		b.Wait(`[...document.querySelectorAll('#entries .entry')].slice(0, 2).map((e) => e.dataset.code).join()`, "1,7")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}
