package play_test

import (
	"bytes"
	"image/gif"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
)

func TestManyImages(t *testing.T) {
	p := newPlayground(t)
	type reply struct {
		Images []struct {
			Index   int
			Classes []int
			Codes   []int
			PSNR    float64
		}
	}
	var first, again, other reply
	p.getJSON("/api/play/"+p.key+"/images?n=5&seed=3", &first)
	p.getJSON("/api/play/"+p.key+"/images?n=5&seed=3", &again)
	p.getJSON("/api/play/"+p.key+"/images?n=5&seed=4", &other)
	if len(first.Images) != 5 || first.Images[0].Index != again.Images[0].Index || first.Images[0].Index == other.Images[0].Index {
		t.Errorf("%+v, again %+v, other %+v", first, again, other)
	}
	_, want, _ := p.encode("application/json", []byte(`{"index":`+strconv.Itoa(first.Images[2].Index)+`}`))
	if got := first.Images[2]; !slices.Equal(got.Codes, want.Codes) || got.PSNR != want.PSNR || len(got.Classes) != 6 {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, bad := range []string{"n=0", "n=33", "n=x", "seed=-1", "seed=4294967296"} {
		if r, raw := p.get("/api/play/" + p.key + "/images?" + bad); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %s %s", bad, r.Status, raw)
		}
	}
}

// The swap figure shows the model, factors and hits, and is available in each format.
func TestSwapFigure(t *testing.T) {
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	p.key = key
	p.waitFor("usage")
	p.rename(`{"factor":"scale","name":"size & <more>"}`)
	at := "/api/play/" + key + "/figure."
	reply, svg := p.get(at + "svg?a=171626&b=309998&n=3&seed=2")
	if reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Type") != "image/svg+xml" {
		t.Fatalf("%s %s", reply.Status, svg)
	}
	for _, part := range []string{"step 20,000", "floor hue", "size &amp; &lt;more&gt;", " hit", "pair 3", "random, seed 2"} {
		if !bytes.Contains(svg, []byte(part)) {
			t.Errorf("the figure lacks %q", part)
		}
	}
	_, alike := p.get(at + "svg?a=171626&b=171626&n=1") // no factor differs, so there are no hits or misses
	if bytes.Contains(alike, []byte(" hit")) || bytes.Contains(alike, []byte(" miss")) {
		t.Error("swaps between equal images are marked as hits or misses")
	}
	if n := bytes.Count(svg, []byte("<image")); n != 3*8 {
		t.Errorf("%d images, want 3 pairs of A, B and 6 groups", n)
	}
	if _, again := p.get(at + "svg?a=171626&b=309998&n=3&seed=2"); !bytes.Equal(svg, again) {
		t.Error("bytes differ the second time")
	}
	if reply, raw := p.get(at + "pdf?n=2"); reply.Header.Get("Content-Type") != "application/pdf" || !bytes.HasPrefix(raw, []byte("%PDF")) {
		t.Errorf("PDF: %s %.60q", reply.Status, raw)
	}
	if reply, raw := p.get(at + "png?n=2"); reply.StatusCode != http.StatusOK {
		t.Errorf("PNG: %s", reply.Status)
	} else if _, err := png.Decode(bytes.NewReader(raw)); err != nil {
		t.Error(err)
	}
	if reply, _ := p.get(at + "tiff"); reply.StatusCode != http.StatusNotFound {
		t.Errorf("another format: %s", reply.Status)
	}
	if reply, raw := p.get(at + "svg?n=99"); reply.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("99 pairs: %s %s", reply.Status, raw)
	}
}

func TestAnimation(t *testing.T) {
	p := newPlayground(t)
	for direction, frames := range map[string]int{"both": 12, "there": 6, "back": 6} {
		_, raw := p.get("/api/play/" + p.key + "/animation.gif?" + playState + "&direction=" + direction)
		film, err := gif.DecodeAll(bytes.NewReader(raw))
		if err != nil || len(film.Image) != frames {
			t.Errorf("%s: %d frames, %v", direction, len(film.Image), err)
		}
	}
	reply, raw := p.get("/api/play/" + p.key + "/animation.png?" + playState)
	if _, err := png.Decode(bytes.NewReader(raw)); err != nil || reply.Header.Get("Content-Type") != "image/apng" || !bytes.Contains(raw, []byte("acTL")) {
		t.Errorf("APNG: %s, %v", reply.Status, err)
	}
	if reply, _ := p.get("/api/play/" + p.key + "/animation.gif?direction=up"); reply.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another direction: %s", reply.Status)
	}
}

// Pairs × groups and an edit on many images work in the live page and in the frozen one.
func TestManyInThePage(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	p.key = key
	path := frozenOf(t, "tiny").path
	b := browse(t, p, 1280, 900)
	p.waitFor("usage")
	rows := `document.querySelectorAll('#many tbody tr').length`
	said := `document.querySelector('[data-testid=play-many-said]').textContent`
	choose := func(id, value string) {
		b.Eval(`(() => { const s = document.querySelector('[data-testid=` + id + `]'); s.value = '` + value + `'; s.dispatchEvent(new Event('change')); })()`)
	}
	for _, address := range []string{p.url + "/play/" + key + "?a=171626&b=309998", "file://" + path} {
		b.Do(chromedp.Navigate(address))
		b.decodes()
		choose("play-many-n", "4")
		b.Eval(`document.querySelector('#many summary').click()`)
		b.Wait(`/^\d+ of \d+ swaps are hits/.test(`+said+`)`, "true")
		b.Wait(rows+` + ' ' + document.querySelectorAll('#many tbody canvas').length`, "4 32")
		b.Wait(`[...document.querySelectorAll('#many tr:first-child .fact')].filter((e) => /hit/.test(e.textContent)).length`, "6")
		choose("play-many-what", "edit")
		b.Wait(said, "Edit a slot of A first. The same codes are then applied to other images.")
		b.Eval(`document.querySelector('[data-testid=play-groupswap-0]').closest('a').click()`)
		b.Wait(`/^Slot 7, floor hue = .+ Nothing else changed in [1-4] of 4 images/.test(`+said+`) || `+said, "true")
		b.Wait(rows, "4")
		if strings.HasPrefix(address, "http") {
			b.Eval(`document.querySelector('[data-testid=play-undo]').click()`)
			choose("play-many-what", "pairs")
			b.Wait(`document.querySelector('[data-testid=play-figure-pdf]').getAttribute('href').endsWith('&n=4&seed=1')`, "true")
			b.Eval(`addEventListener('click', (e) => { window.kept = e.defaultPrevented; e.preventDefault(); })`)
			b.Eval(`document.querySelector('[data-testid=play-figure-pdf]').click()`)
			b.Wait(`window.kept`, "false") // the link is followed
			b.Eval(`document.querySelector('#many .fact [data-kind]').dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, isPrimary: true }))`)
			b.Wait(`document.querySelectorAll('[data-held], [data-holding]').length`, "0") // and text cannot be picked
		}
	}
}
