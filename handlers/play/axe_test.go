package play_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
)

// In every state of the live page, the frozen one and the atlas, axe-core finds no serious issues, on desktop and phone, in light and dark
// mode, and the page is no wider than its window.
func TestPlayIsAccessibleInEveryState(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	p := atlasSite(t)
	p.waitFor("usage")
	p.waitFor("atlas/0")
	b := browse(t, p, 1280, 900)
	state := func(name string) {
		t.Helper()
		before := t.Failed()
		b.Accessible()
		if t.Failed() && !before {
			t.Errorf("the state is: %s", name)
		}
		b.Do(chromedp.EmulateViewport(1280, 900))
	}
	click := func(selector string) { b.Eval(`document.querySelector('` + selector + `').click()`) }
	set := func(selector, value, event string) {
		b.Eval(`(() => { const s = document.querySelector('` + selector + `'); s.value = '` + value + `'; s.dispatchEvent(new Event('` + event + `', { bubbles: true })); })()`)
	}
	opened := func(address string) {
		t.Helper()
		b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
		b.decodes()
		b.Wait(`[...document.querySelectorAll('.groupswaps .fact')].filter((e) => /hit/.test(e.textContent)).length`, "6")
	}

	opened(p.url + "/play/" + p.key + "?a=171626&b=309998")
	state("first view")
	click(`[data-testid=play-groupswap-0]`)
	b.Wait(`document.querySelectorAll('#edits button').length`, "2")
	b.focus("play-group-2")
	b.Keys(kb.Enter, kb.ArrowDown)
	b.Wait(`document.querySelectorAll('[data-held]').length > 0`, "true")
	state("a group held, a swap made, two edits")
	b.Keys(kb.Escape)
	for _, view := range []string{"swaps", "diffs"} {
		click(`[data-view=` + view + `]`)
	}
	click(`[data-testid=play-factors-a]`)
	click(`#download summary`)
	choosing := func() { b.choosePad("s0", "s2") }
	choosing()
	set(`[data-testid=play-blend-3]`, "50", "input")
	set(`[data-testid=play-noise]`, "-10", "input")
	b.Wait(`/codes (flip|are unchanged)/.test(document.querySelector('[data-testid=play-flips]').textContent)`, "true")
	b.Eval(`document.getElementById('beside').scrollIntoView()`)
	set(`#beside-step`, "0", "input")
	b.Wait(`document.querySelectorAll('#beside tbody tr').length > 0`, "true")
	set(`[data-testid=play-many-n]`, "4", "change")
	click(`#many summary`)
	b.Wait(`/^\d+ of \d+ swaps/.test(document.querySelector('[data-testid=play-many-said]').textContent)`, "true")
	click(`[data-testid=play-head-4]`)
	b.Wait(`document.getElementById('entries').inert`, "false")
	set(`[data-testid=play-palette-search]`, "sph", "input")
	b.Wait(`document.querySelectorAll('.entry').length > 0 && [...document.querySelectorAll('.entry .code')].every((e) => e.textContent.includes('sphere'))`, "true")
	state("differences, factors and downloads unfolded, pad, slider, noise, scrubber, many, palette searched")
	click(`#legend`)
	b.Wait(`document.querySelectorAll('dialog[open]').length`, "1")
	state("legend")
	b.Eval(`document.querySelector('dialog button:not(.primary)').click()`)
	b.Wait(tourCount, "1 of 4")
	state("tour")
	click(`#tour .plain`)
	click(`[data-testid=play-name]`)
	b.Wait(`document.querySelectorAll('dialog[open]').length`, "1")
	state("naming")

	for _, at := range []string{"/atlas/4", b.Eval(`document.querySelector('[data-testid=play-atlas]').getAttribute('href').replace(/.*\/atlas/, '/atlas')`)} {
		b.Do(chromedp.Navigate(p.url + "/play/" + p.key + at))
		b.Wait(`document.querySelectorAll('.cards li').length > 1`, "true")
		state(at)
	}

	file := frozenOf(t, "tiny")
	opened("file://" + file.path)
	state("frozen page")
	click(`[data-testid=play-atlas]`)
	b.Wait(`document.querySelectorAll('dialog[open] .cards li').length > 8`, "true")
	state("frozen page, atlas")
}
