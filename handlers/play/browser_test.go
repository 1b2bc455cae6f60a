package play_test

import (
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
)

// playBrowser is the playground in a real browser.
type playBrowser struct {
	playground
	handlertest.Browser
}

const playState = "a=12345&b=400000&codes=1.2.3.4.5&bcodes=6.2.8.9.10"

func openPlay(t *testing.T, width, height int64, more ...chromedp.EmulateViewportOption) playBrowser {
	t.Helper()
	handlertest.NeedsBrowser(t)
	return openPlayOf(t, newPlayground(t), width, height, more...)
}

func openPlayOf(t *testing.T, p playground, width, height int64, more ...chromedp.EmulateViewportOption) playBrowser {
	t.Helper()
	b := browse(t, p, width, height, more...)
	b.waitFor("usage")
	b.open("/play/" + p.key + "?" + playState)
	return b
}

// browse opens a window without a page.
func browse(t *testing.T, p playground, width, height int64, more ...chromedp.EmulateViewportOption) playBrowser {
	t.Helper()
	b := playBrowser{p, handlertest.NewWindow(t)}
	b.URL = p.url
	b.BeforePages(`try { localStorage.setItem('slotscope tour', 'seen'); } catch {}`) // not the first visit
	b.Do(chromedp.EmulateViewport(width, height, more...))
	return b
}

func (b playBrowser) open(path string) {
	b.t.Helper()
	b.Open(path)
	b.Wait(`document.getElementById('play').dataset.ready`, "yes")
	b.Wait(`document.getElementById('link').dataset.state`, "live")
}

// decodes waits until the page has drawn its first view and decodes in the browser.
func (b playBrowser) decodes() {
	b.t.Helper()
	b.Wait(`document.getElementById('play')?.dataset.ready === 'yes' && document.getElementById('play').dataset.decoder`, "browser")
}

// shows waits until the enlarged image shows codes, and returns its pixels.
func (b playBrowser) shows(codes string) string {
	b.t.Helper()
	b.Wait(`document.querySelector('[data-testid=play-image]').dataset.codes`, codes)
	return b.Eval(`document.querySelector('[data-testid=play-image]').toDataURL()`)
}

// unfold shows the unused codes of a slot, all but one in a model with initial weights.
func (b playBrowser) unfold() {
	b.t.Helper()
	b.Wait(`document.getElementById('palette-unused').hidden`, "false")
	b.Eval(`document.getElementById('palette-unused').click()`)
	b.Wait(`document.querySelectorAll('.entry').length`, "12")
}

// row returns a row's codes.
func (b playBrowser) row(row string) string { b.t.Helper(); return b.Eval(codesOf(row)) }

// has waits until a row has these codes.
func (b playBrowser) has(row, codes string) { b.t.Helper(); b.Wait(codesOf(row), codes) }

func codesOf(row string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('[data-testid^="play-slot-%s-"]')].sort((x, y) => x.dataset.i - y.dataset.i).map((e) => e.dataset.code).join('.')`, row)
}

func (b playBrowser) address(want string) {
	b.t.Helper()
	b.Wait(`location.search`, "?"+want)
}

// at returns the centre of an element by its test ID.
func (b playBrowser) at(id string) (x, y float64) { b.t.Helper(); return b.Middle(testID(id)) }

func (b playBrowser) drag(from, to string) {
	b.t.Helper()
	x0, y0 := b.at(from)
	x1, y1 := b.at(to)
	b.Drag(x0, y0, x1, y1)
}

func (b playBrowser) click(id string) { b.t.Helper(); b.Click(testID(id)) }

func (b playBrowser) focus(id string) { b.t.Helper(); b.Focus(testID(id)) }

func TestPlayDragPutsACodeOfBIntoA(t *testing.T) {
	b := openPlay(t, 1280, 1400)
	before := b.shows("1.2.3.4.5")
	b.drag("play-slot-b-3", "play-slot-a-3")
	after := b.shows("1.2.3.9.5")
	if after == before {
		t.Error("the image did not change")
	}
	b.has("a", "1.2.3.9.5")
	b.address("a=12345&b=400000&codes=1.2.3.9.5&bcodes=6.2.8.9.10")
	b.unfold()
	b.drag("play-palette-11", "play-slot-a-0")
	b.shows("11.2.3.9.5")
	b.drag("play-palette-7", "play-image")
	b.has("a", "7.2.3.9.5")
	b.drag("play-slot-a-4", "play-slot-b-1") // into B, and into another slot
	b.has("b", "6.5.8.9.10")
	b.drag("play-slot-b-0", "play-undo") // released elsewhere
	if got := b.row("a") + " " + b.row("b"); got != "7.2.3.9.5 6.5.8.9.10" {
		t.Errorf("after releasing elsewhere, the rows are %s", got)
	}
}

func TestPlayPictureFollowsWhileDragging(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 1400)
	before := b.shows("1.2.3.4.5")
	x0, y0 := b.at("play-slot-b-3")
	b.Do(chromedp.MouseEvent("mousePressed", x0, y0, chromedp.ButtonLeft, func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }))
	for _, slot := range []int{0, 2, 4} {
		x, y := b.at(fmt.Sprintf("play-slot-a-%d", slot))
		b.Do(chromedp.MouseEvent("mouseMoved", x, y, chromedp.ButtonLeft))
		codes := strings.Split("1.2.3.4.5", ".")
		codes[slot] = "9"
		if b.shows(strings.Join(codes, ".")) == before {
			t.Errorf("over slot %d the image did not change", slot)
		}
	}
	if got := b.row("a"); got != "1.2.3.4.5" {
		t.Errorf("during the drag, row A is %s", got)
	}
	b.Keys(kb.Escape)
	if b.shows("1.2.3.4.5") != before {
		t.Error("Esc did not restore the image")
	}
	b.Do(chromedp.MouseEvent("mouseReleased", x0, y0, chromedp.ButtonLeft))
	b.Wait(`document.querySelectorAll('.ghost').length`, "0")
}

func TestPlayClickAndClick(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 1400)
	b.click("play-slot-b-0")
	b.Wait(`document.querySelector('[data-testid=play-slot-b-0]').ariaPressed`, "true")
	b.click("play-slot-a-0")
	b.shows("6.2.3.4.5")
	b.unfold()
	b.click("play-palette-11") // of slot 0, the last one used
	b.click("play-palette-11") // again: places it in its own slot
	b.shows("11.2.3.4.5")
	b.click("play-slot-b-4")
	b.click("play-slot-b-4") // again: cancels
	if got := b.row("a") + " " + b.row("b"); got != "11.2.3.4.5 6.2.8.9.10" {
		t.Errorf("after cancelling, the rows are %s", got)
	}
	b.click("play-swap-2")
	b.shows("11.2.8.4.5")
}

func TestPlayKeyboardAlone(t *testing.T) {
	b := openPlay(t, 1280, 1400)
	b.focus("play-slot-a-0")
	b.Keys(kb.ArrowRight, kb.ArrowRight, kb.ArrowDown) // to B's slot 2
	b.Wait(`document.activeElement.dataset.testid`, "play-slot-b-2")
	b.Keys(kb.Enter)
	b.Wait(`document.getElementById('said').textContent.startsWith('Holding 8 from B, slot 2')`, "true")
	b.Keys(kb.ArrowUp)
	b.shows("1.2.8.4.5") // previewed while held
	if got := b.row("a"); got != "1.2.3.4.5" {
		t.Errorf("while held, row A is %s", got)
	}
	b.Keys(kb.Enter)
	b.has("a", "1.2.8.4.5")
	b.Wait(`document.getElementById('said').textContent.startsWith('Set slot 2 of A')`, "true")
	b.Wait(`document.activeElement.dataset.testid`, "play-slot-a-2")
	b.unfold()
	b.focus("play-palette-11")
	b.Keys(" ") // picks it and focuses the slot
	b.Wait(`document.activeElement.dataset.testid`, "play-slot-a-2")
	b.Keys(kb.Enter)
	b.shows("1.2.11.4.5")
	b.focus("play-slot-b-0")
	b.Keys(kb.Enter, kb.ArrowUp, kb.Escape)
	b.shows("1.2.11.4.5")
	b.Wait(`document.activeElement.dataset.testid`, "play-slot-b-0")
}

func TestPlayTapAndTapOnAPhone(t *testing.T) {
	b := openPlay(t, 390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
	b.Wait(`document.documentElement.scrollWidth`, "390")
	b.Eval(`document.querySelector('[data-testid=play-slot-b-1]').scrollIntoView({block: 'center'})`)
	for _, id := range []string{"play-slot-b-0", "play-slot-a-0"} {
		x, y := b.at(id)
		b.Do(chromedp.TapXY(x, y))
	}
	b.shows("6.2.3.4.5")
	x, y := b.at("play-head-2")
	b.Do(chromedp.TapXY(x, y))
	b.Wait(`document.getElementById('palette-slot').textContent`, "2")
	b.unfold()
	b.Wait(`document.querySelectorAll('.entry').length`, "12")
	first := b.Eval(`document.querySelector('.entry').dataset.code`)
	for range 2 {
		x, y := b.at("play-palette-" + first)
		b.Do(chromedp.TapXY(x, y))
	}
	b.shows("6.2." + first + ".4.5")
}

func TestPlayUndoRestoresEveryByte(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 1400)
	pictures := []string{b.shows("1.2.3.4.5")}
	states := []string{"1.2.3.4.5"}
	for i, next := range []string{"6.2.3.4.5", "6.2.8.4.5", "6.2.8.9.5"} {
		b.click(fmt.Sprintf("play-swap-%d", []int{0, 2, 3}[i]))
		pictures, states = append(pictures, b.shows(next)), append(states, next)
	}
	for i := len(states) - 2; i >= 0; i-- {
		b.keys2("z", false)
		if b.shows(states[i]) != pictures[i] {
			t.Errorf("undo to %s: bytes differ", states[i])
		}
	}
	b.Wait(`document.querySelector('[data-testid=play-undo]').disabled`, "true")
	b.keys2("z", true)
	b.click("play-redo")
	if b.shows(states[2]) != pictures[2] {
		t.Error("redo: bytes differ")
	}
	b.Do(chromedp.Reload()) // undo survives, and the URL shows the same state
	b.Wait(`document.getElementById('play').dataset.ready`, "yes")
	if b.shows(states[2]) != pictures[2] {
		t.Error("after a reload: bytes differ")
	}
	b.click("play-undo")
	b.shows(states[1])
	b.click("play-reset")
	b.Wait(`document.querySelector('[data-testid=play-reset]').disabled`, "true")
}

// keys2 presses Control with a letter, with or without Shift.
func (b playBrowser) keys2(letter string, shift bool) {
	b.t.Helper()
	b.Eval(fmt.Sprintf(`dispatchEvent(new KeyboardEvent('keydown', {key: %q, ctrlKey: true, shiftKey: %v, bubbles: true}))`, letter, shift))
}

func TestPlayPictureEqualsItsAddress(t *testing.T) {
	b := openPlay(t, 1280, 1400)
	b.shows("1.2.3.4.5")
	b.Wait(`(async () => {
		const img = new Image();
		img.src = '/img/`+b.key+`/1.2.3.4.5.png';
		await img.decode();
		const c = new OffscreenCanvas(64, 64).getContext('2d');
		c.drawImage(img, 0, 0);
		const x = c.getImageData(0, 0, 64, 64).data;
		const y = document.querySelector('[data-testid=play-image]').getContext('2d').getImageData(0, 0, 64, 64).data;
		window.equal = x.every((v, i) => v === y[i]);
	})() && window.equal`, "true")
}

func TestPlayStripChangesItsOrder(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 1400)
	step := func(j int, want string) {
		t.Helper()
		b.Wait(fmt.Sprintf(`document.querySelector('[data-testid=play-strip-%d]').dataset.codes`, j), want)
	}
	step(1, "6.2.3.4.5")
	step(5, "6.2.8.9.10")
	b.Eval(`document.querySelector('[data-place="0"] [data-by="1"]').click()`)
	step(1, "1.2.3.4.5")
	step(2, "6.2.3.4.5")
	b.address("a=12345&b=400000&codes=1.2.3.4.5&bcodes=6.2.8.9.10&order=1.0.2.3.4")
	x0, y0 := b.Middle(`[data-place="4"] .grip`)
	x1, y1 := b.Middle(`[data-place="0"] .grip`)
	b.Drag(x0, y0, x1, y1)
	step(1, "1.2.3.4.10")
	step(5, "6.2.8.9.10") // ends at B in any order
	b.address("a=12345&b=400000&codes=1.2.3.4.5&bcodes=6.2.8.9.10&order=4.1.0.2.3")
	b.keys2("z", false)
	step(1, "1.2.3.4.5")
}

func TestPlayOtherPictures(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 1400)
	b.shows("1.2.3.4.5")
	_, want, _ := b.encode("application/json", []byte(`{"index":777}`))
	codes := strings.Trim(strings.ReplaceAll(fmt.Sprint(want.Codes), " ", "."), "[]")
	b.Do(chromedp.SetValue(chromedp.CSS(testID("play-index-a")), "777"), chromedp.SendKeys(chromedp.CSS(testID("play-index-a")), kb.Enter))
	b.shows(codes)
	b.Wait(`document.querySelector('[data-testid=play-original-a]').getAttribute('src').endsWith('index=777')`, "true")
	b.Eval(`(() => { const s = document.querySelector('[data-testid=play-factor-a-4]'); s.value = 1; s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change')); })()`)
	b.Wait(`document.querySelector('[data-testid=play-index-a]').value`, "747") // shape is the fifth factor, 15 images apart: 777 has class 3
	b.Wait(`location.search.startsWith('?a=747&')`, "true")                     // once the slider is released, it is in the history
	b.click("play-undo")
	b.Wait(`document.querySelector('[data-testid=play-index-a]').value`, "777")
	b.click("play-random-b")
	b.Wait(`document.querySelector('[data-testid=play-index-b]').value !== '400000'`, "true")
}

func TestPlayGoesOnWithoutItsSocket(t *testing.T) {
	b := openPlay(t, 1280, 1400)
	before := b.shows("1.2.3.4.5")
	b.BeforePages(`window.WebSocket = class { static OPEN = 1; readyState = 3; constructor() { setTimeout(() => this.onclose(), 5); } };`)
	b.Open("/play/" + b.key + "?" + playState)
	b.Wait(`document.getElementById('link').dataset.state`, "reconnecting")
	if b.shows("1.2.3.4.5") != before {
		t.Error("images by URL differ from those of the socket")
	}
	b.drag("play-slot-b-3", "play-slot-a-3")
	b.shows("1.2.3.9.5")
}

// openTiny opens a trained model, whose slots have factors, once its codes are counted.
func openTiny(t *testing.T, width, height int64, query string) playBrowser {
	t.Helper()
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	p.key = key
	b := browse(t, p, width, height)
	b.open("/play/" + p.key)
	b.waitFor("usage")
	b.open("/play/" + p.key + query)
	return b
}

// The page is no wider than its window at any width, even with long names of checkpoints, and all buttons of the toolbar are in the window.
func TestPlayFitsItsWindow(t *testing.T) {
	b := openPlay(t, 1280, 800)
	b.Eval(`void (document.querySelector('#checkpoint option').textContent = 'long name '.repeat(20))`)
	for _, width := range []int64{390, 768, 820, 1023, 1024, 1280, 1920} {
		b.Do(chromedp.EmulateViewport(width, 800))
		b.Wait(`innerWidth + ': ' + Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)`, fmt.Sprintf("%d: 0", width))
		b.Wait(`[...document.querySelectorAll('.play-head a, .play-head .tools > *')].filter((e) => { const r = e.getBoundingClientRect(); return r.width === 0 || r.right > document.documentElement.clientWidth || r.right > e.parentElement.getBoundingClientRect().right + 1; }).map((e) => e.textContent).join()`, "")
	}
}

// The first screen shows images, groups of slots and group swaps, of the pair with the most swap hits.
func TestPlayFirstScreen(t *testing.T) {
	b := openTiny(t, 1280, 800, "")
	b.Wait(`[...document.querySelectorAll('#side-a, #side-b, #facts, #image, .grouphead, .token, .groupswaps .shot')].every((e) => {
		const r = e.getBoundingClientRect();
		return r.width > 0 && r.top >= 0 && r.bottom <= 800 && r.right <= 1280;
	})`, "true")
	b.Wait(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`, "true")
	b.Wait(`[...document.querySelectorAll('.grouphead .factor')].map((e) => e.textContent).join(', ')`, "floor hue, wall hue, object hue, scale, shape, orientation")
	b.Wait(`getComputedStyle(document.querySelector('#side-a .factors')).display !== 'none' && document.querySelector('#side-a .factors').checkVisibility()`, "false")
	b.click("play-factors-a")
	b.Wait(`document.querySelector('#side-a .factors').checkVisibility()`, "true")
	b.Wait(`document.querySelector('[data-testid=play-index-a]').value + ' ' + document.querySelector('[data-testid=play-index-b]').value`, "171626 309998")
}

// Drag, two clicks and keys each swap a whole group, and its slider moves all its slots.
func TestPlayGroups(t *testing.T) {
	b := openTiny(t, 1280, 1000, "")
	before, other := strings.Split(b.row("a"), "."), strings.Split(b.row("b"), ".")
	with := func(slots ...int) string {
		out := slices.Clone(before)
		for _, i := range slots {
			out[i] = other[i]
		}
		return strings.Join(out, ".")
	}
	b.drag("play-group-0", "play-image") // floor hue: slots 7 and 8
	b.shows(with(7, 8))
	b.Wait(`document.querySelectorAll('#edits button').length`, "2")
	b.click("play-undo")
	b.shows(with())
	b.click("play-group-1")
	b.Wait(`document.getElementById('hint').textContent.startsWith('Holding the group wall hue.')`, "true")
	b.click("play-slot-a-0") // any slot of the row
	b.shows(with(5, 6))
	b.click("play-undo")
	b.focus("play-group-2")
	b.Keys(kb.Enter, kb.ArrowDown, kb.ArrowDown)
	b.shows(with(1, 2)) // previewed while held
	b.Keys(kb.Enter)
	b.Wait(`document.getElementById('said').textContent`, "A has B’s object hue, slots 1, 2.")
	b.has("a", with(1, 2))
	b.click("play-undo")
	b.drag("play-group-0", "play-slot-b-3") // copies A's codes to B
	b.Wait(codesOf("b")+`.endsWith('.`+before[7]+"."+before[8]+`')`, "true")
	b.click("play-undo")
	b.decodes()
	b.Eval(`(() => { const s = document.querySelector('[data-testid=play-blend-group-0]'); s.value = 40; s.dispatchEvent(new Event('input')); })()`)
	b.Wait(`document.getElementById('result-state').textContent`, "with 40% of floor hue from B")
	b.Wait(`['7', '8'].map((i) => document.querySelector('[data-testid=play-blend-' + i + ']').value).join()`, "40,40")
}

// Codes are named by factor value in slots and in the palette, which can be sorted and searched by it.
func TestPlayNamesCodes(t *testing.T) {
	expect.Long(t)
	b := openTiny(t, 1280, 800, "?a=171626&b=309998")
	b.Wait(`document.querySelector('[data-testid=play-slot-b-4] .code').textContent`, "sphere")
	b.Wait(`document.querySelector('[data-testid=play-slot-b-4] .no').textContent`, "69")
	b.click("play-head-1")
	b.Wait(`document.getElementById('palette-factor').textContent`, "object hue")
	b.Wait(`(() => { const n = [...document.querySelectorAll('.entry .code')].map((e) => e.textContent); return n.length === 14 && n.every((v, i) => i === 0 || parseFloat(v) >= parseFloat(n[i - 1])); })()`, "true")
	b.Wait(`document.querySelectorAll('.entry .hues rect').length >= 14`, "true")
	b.Wait(`document.getElementById('palette-unused').textContent`, "Show 114 unused codes")
	b.click("play-head-4")
	b.Wait(`document.getElementById('palette-factor').textContent`, "shape")
	b.Do(chromedp.SendKeys(chromedp.CSS(testID("play-palette-search")), "sph"))
	b.Wait(`[...document.querySelectorAll('.entry .code')].every((e) => e.textContent.includes('sphere'))`, "true")
	b.Do(chromedp.SendKeys(chromedp.CSS(testID("play-palette-search")), "xyz"))
	b.Wait(`document.getElementById('palette-said').textContent`, "No codes match this filter.")
}

// While another slot's entries load, those of the previous slot cannot be picked.
func TestPaletteHoldsNoEntriesOfAnotherSlot(t *testing.T) {
	b := openPlay(t, 1280, 1400)
	b.unfold()
	b.beforeReplies(`/palette`)
	b.click("play-head-2")
	b.Wait(`document.getElementById('palette-slot').textContent + document.getElementById('entries').inert`, "2true")
	b.Eval(`document.querySelector('.entry[data-of="0"]').dispatchEvent(new MouseEvent('click', { bubbles: true }))`)
	if got := b.Eval(`document.getElementById('hint').textContent`); strings.Contains(got, "slot 2") {
		t.Errorf("an entry of slot 0 was picked for slot 2: %s", got)
	}
	b.Eval(`window.goOn()`)
	b.Wait(`document.getElementById('entries').inert + document.querySelector('.entry').dataset.of`, "false2")
}

// beforeReplies delays replies from URLs that contain part until goOn() is called.
func (b playBrowser) beforeReplies(part string) {
	b.t.Helper()
	b.Eval(`(() => {
		const fetch = window.fetch, waiting = new Promise((go) => { window.goOn = go; });
		window.fetch = async (address, ...rest) => { if (String(address).includes('` + part + `')) await waiting; return fetch(address, ...rest); };
	})()`)
}

// Without a connection, an error is shown next to an image that could not be decoded. The image updates once the connection is back.
func TestPlayDrawsAgainAfterALostConnection(t *testing.T) {
	expect.Long(t)
	b := browse(t, newPlayground(t), 1280, 1400)
	b.waitFor("usage")
	b.BeforePages(`delete globalThis.Worker; WebAssembly.compile = () => Promise.reject(new Error('no SIMD'));
		const Socket = WebSocket, plain = fetch;
		window.sockets = [];
		window.WebSocket = class extends Socket { constructor(...args) { if (window.away) args[0] = 'ws://' + location.host + '/nowhere'; super(...args); window.sockets.push(this); } };
		window.fetch = (address, ...rest) => (window.away && String(address).includes('/img/') ? Promise.reject(new TypeError('Failed to fetch')) : plain(address, ...rest));`)
	b.open("/play/" + b.key + "?" + playState)
	before := b.shows("1.2.3.4.5")
	b.Wait(`document.querySelector('.grid[data-waiting]') === null`, "true")
	b.Eval(`(window.away = true, window.sockets.forEach((s) => s.close()))`)
	b.Wait(`document.getElementById('link').dataset.state`, "reconnecting")
	b.unfold()
	b.drag("play-palette-11", "play-slot-a-0") // an image that is not cached
	b.Wait(`document.getElementById('failed').hidden + document.getElementById('failed').textContent.slice(0, 24)`, "falseCannot reach the server.")
	if got := b.Eval(`document.getElementById('result-state').textContent`); got != "as encoded" && !strings.HasPrefix(got, "with ") {
		t.Errorf("the image is described as %q", got)
	}
	b.Eval(`(window.away = false, dispatchEvent(new Event('online')))`)
	b.Wait(`document.getElementById('link').dataset.state`, "live")
	if b.shows("11.2.3.4.5") == before {
		t.Error("the image did not change")
	}
	b.Wait(`document.getElementById('failed').hidden`, "true")
}

// The animation has its own image next to its button, can be stopped and looped, and has a speed.
func TestPlayAnimation(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 800)
	b.Wait(`document.querySelector('.grid[data-waiting]') === null`, "true")
	b.Eval(`document.getElementById('walk').scrollIntoView({ block: 'center' })`)
	b.Eval(`(document.getElementById('walk-speed').value = '275', document.getElementById('walk-loop').click())`)
	b.click("play-walk")
	b.Wait(`document.getElementById('walk').textContent`, "Stop")
	seen := `[...document.querySelectorAll('#screen, #walk')].every((e) => { const r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })`
	b.Wait(seen, "true")
	for _, codes := range []string{"6.2.8.9.10", "1.2.3.4.5"} { // to the end, then from the start
		b.Wait(`document.getElementById('screen').dataset.codes`, codes)
	}
	b.click("play-walk")
	b.Wait(`document.getElementById('walk').textContent + document.getElementById('screen').hidden`, "Play animationtrue")
	b.shows("1.2.3.4.5")
}

// Replacing image A cancels a held code and restores the hint.
func TestPlayRandomLetsGo(t *testing.T) {
	expect.Long(t)
	b := openPlay(t, 1280, 1400)
	hint := b.Eval(`document.getElementById('hint').textContent.trim()`)
	b.click("play-slot-b-0")
	b.Wait(`document.getElementById('hint').textContent.startsWith('Holding 6 from B')`, "true")
	b.click("play-random-a")
	b.Wait(`document.querySelector('[data-testid=play-index-a]').value !== '12345'`, "true")
	b.Wait(`document.getElementById('hint').textContent.trim()`, hint)
	b.Wait(`document.querySelectorAll('[data-held], [data-holding]').length`, "0")
}

// An upload survives a reload, and its factor sliders show no values.
func TestPlayUploadStays(t *testing.T) {
	b := openPlay(t, 1280, 1400)
	path := filepath.Join(t.TempDir(), "own.png")
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(png.Encode(file, image.NewRGBA(image.Rect(0, 0, 20, 10))), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Do(chromedp.SetUploadFiles(testID("play-upload-a"), []string{path}))
	src := `document.querySelector('[data-testid=play-original-a]').src`
	b.Wait(src+`.startsWith('data:image/png')`, "true")
	b.Wait(`[...document.querySelectorAll('#side-a .factors [data-part=now]')].map((e) => e.textContent).join('')`, "––––––")
	before := b.Eval(src)
	b.Do(chromedp.Reload())
	b.Wait(`document.getElementById('play')?.dataset.ready`, "yes")
	b.Wait(src, before)
	b.Wait(`[...document.querySelectorAll('#side-a .factors [data-part=now]')].map((e) => e.textContent).join('')`, "––––––")
}

// The table is reachable with few tab stops.
func TestPlayTabStops(t *testing.T) {
	b := browse(t, newPlayground(t), 1280, 800)
	b.open("/play/" + b.key + "?a=12345&b=400000")
	stops := b.Eval(`(() => {
		const all = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({ visibilityProperty: true }) && !e.closest('details:not([open]) > :not(summary)'));
		return all.findIndex((e) => e.closest('#grid'));
	})()`)
	if n, err := strconv.Atoi(stops); err != nil || n > 22 {
		t.Errorf("%s tab stops before the table", stops)
	}
	b.focus("play-share")
	b.Keys(kb.ArrowRight)
	b.Wait(`document.activeElement.textContent`, "Legend")
	b.Keys(kb.ArrowRight)
	b.Wait(`document.activeElement.textContent`, "Download")
}

// On a phone all touch targets are visible and large enough, and nothing covers the palette's heading.
func TestPlayOnAPhone(t *testing.T) {
	expect.Long(t) // TestPlayTapAndTapOnAPhone covers the basics
	b := openPlay(t, 390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
	b.unfold()
	b.Wait(`document.documentElement.scrollWidth`, "390")
	small := `[...document.querySelectorAll('.play :is(button, .button, select, summary, .move, .token, .entry, input)')].filter((e) => e.checkVisibility() && !e.closest('.visually-hidden') && !e.matches('.visually-hidden, [type=file], [type=checkbox], [aria-disabled]'))
		.filter((e) => { const r = e.getBoundingClientRect(); return r.width < 24 || r.height < 24; }).map((e) => e.id || e.className || e.tagName).join()`
	b.Wait(small, "")
	b.Eval(`document.getElementById('grid').scrollIntoView()`)
	b.Wait(`(() => { const r = document.querySelector('#palette h2').getBoundingClientRect(); return document.elementFromPoint(r.left + 5, r.top + 5).closest('#palette') !== null && r.bottom < innerHeight; })()`, "true")
	b.Wait(`(() => { const e = document.querySelector('[data-do=undo]'), r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom < innerHeight && e.checkVisibility(); })()`, "true")
	b.Do(chromedp.EmulateViewport(844, 390, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.Wait(`['result', 'palette'].map((id) => getComputedStyle(document.getElementById(id)).position).join()`, "static,static")
}

// On a phone names of slots, groups and the palette are neither clipped nor broken within a word.
func TestPlayNamesOnAPhone(t *testing.T) {
	expect.Long(t)
	b := openTiny(t, 390, 844, "")
	b.Wait(`[...document.querySelectorAll('.grouphead .factor')].map((e) => e.textContent).join()`, "floor hue,wall hue,object hue,scale,shape,orientation")
	b.Wait(`[...document.querySelectorAll('.grouphead .factor, #palette h2, #palette-sort')].filter((e) => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1).map((e) => e.textContent.trim()).join()`, "")
	b.Wait(`[...document.querySelectorAll('.grouphead .factor')].filter((e) => { const r = e.getBoundingClientRect(), h = e.closest('.grouphead').getBoundingClientRect(); return r.top < h.top || r.bottom > h.bottom || r.width > h.width; }).length`, "0")
	b.Wait(`(() => { const e = document.getElementById('palette-unused'), r = e.getBoundingClientRect(); e.scrollIntoView({ block: 'nearest' }); return e.checkVisibility() && r.right <= innerWidth; })()`, "true")
}

// Slots get preliminary names long before all images are counted.
func TestPlayNamesSlotsEarly(t *testing.T) {
	b := browse(t, newPlayground(t), 1280, 900)
	b.BeforePages(`const plain = fetch; window.fetch = async (address, ...rest) => (String(address).endsWith('/usage') && !window.counted
		? new Response(JSON.stringify({ state: 'counting', done: 512, of: 4096, early: true }), { status: 202, headers: { 'Content-Type': 'application/json' } }) : plain(address, ...rest));`)
	b.open("/play/" + b.key + "?" + playState)
	b.Wait(`document.querySelectorAll('.slothead').length`, "5")
	b.Wait(`[...document.querySelectorAll('.slothead .visually-hidden')].every((e) => e.textContent !== '')`, "true")
	b.Wait(`document.querySelector('[data-testid=play-image]').dataset.painted`, "yes")
	b.Eval(`window.counted = true`)
	b.Wait(`/^Each image is A with the code. Counts over 4,096 images.$/.test(document.getElementById('palette-said').textContent) || document.getElementById('palette-said').textContent`, "true")
}

// Another checkpoint can be compared side by side on the same pair, in the live page and in the frozen one.
func TestPlaySideBySide(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	tiny := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "betavae")
	path := frozenOf(t, "tiny", "betavae").path
	b := browse(t, p, 1280, 1400)
	for _, key := range []string{tiny, p.key} {
		b.key = key
		b.waitFor("usage")
	}
	b.open("/play/" + tiny)
	b.Wait(`document.querySelector('[data-testid=play-beside]').value`, "") // neither of the two is shipped
	for name, address := range map[string]string{"live": p.url + "/play/" + tiny + "?a=171626&b=309998", "frozen": "file://" + path + "#" + tiny} {
		b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
		b.decodes()
		if name == "live" {
			b.Eval(`(() => { const s = document.querySelector('[data-testid=play-beside]'); s.value = '` + p.key + `'; s.dispatchEvent(new Event('change')); })()`)
		} else { // a β-VAE is shown beside an HRR model automatically, once in view
			b.Wait(`document.querySelector('[data-testid=play-beside]').value`, p.key)
			b.Eval(`document.getElementById('beside').scrollIntoView()`)
		}
		rows := `[...document.querySelectorAll('#beside tbody tr')]`
		b.Wait(rows+`.map((r) => r.cells[0].textContent).join()`, "A, reconstructed,B, reconstructed,floor hue,wall hue,object hue,scale,shape,orientation")
		b.Wait(rows+`.filter((r) => /hit [0-9.]+ dB/.test(r.cells[2].textContent) && r.cells[3].textContent === 'owns no slot').length`, "6")
		b.Wait(rows+`.slice(0, 2).filter((r) => /PSNR [0-9.]+ dB/.test(r.cells[3].textContent) && r.cells[3].querySelector('canvas')).length`, "2")
		b.Wait(`document.querySelector('#beside [data-part=this]').textContent.endsWith(', step 20,000')`, "true")
		b.Eval(`void (window.firstA = ` + rows + `[0].querySelector('img').src)`)
		b.Eval(`document.querySelector('[data-testid=play-random-a]').click()`)
		b.Wait(`(`+rows+`[0].querySelector('img')?.src ?? window.firstA) !== window.firstA`, "true")
		b.Wait(`document.querySelector('#beside [data-part=said]').textContent`, "")
	}
}

// twoSteps is a playground with a run of two checkpoints.
func twoSteps(t *testing.T) playground {
	t.Helper()
	dir := t.TempDir()
	p := playgroundIn(t, dir, "hrr")
	folder := filepath.Join(dir, "runs", handlertest.RunID, "checkpoints")
	raw, err := os.ReadFile(filepath.Join(folder, "step-000000250.safetensors"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "step-000000100.safetensors"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlayScrubsThroughTraining(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	p := twoSteps(t)
	b := browse(t, p, 1280, 1400)
	b.open("/play/" + p.key + "?a=12345&b=400000")
	b.Wait(`document.querySelector('#beside-step').max + document.querySelector('#beside [data-part=now]').textContent`, "1250")
	b.Eval(`document.getElementById('beside-step').focus()`)
	b.Keys(kb.ArrowLeft)
	b.Wait(`document.querySelector('#beside [data-part=other]').textContent.endsWith(', step 100')`, "true")
	b.Wait(`document.querySelectorAll('#beside tbody tr').length`, "2")
	b.Wait(`/PSNR [0-9.]+ dB/.test(document.querySelector('#beside tbody tr').cells[3].textContent)`, "true")
	b.Eval(`fetch('/api/play/` + handlertest.RunID + `@7').then((r) => r.json()).then((j) => { window.gone = j.error; })`)
	b.Wait(`window.gone?.includes('no checkpoint of step')`, "true")
}

// A checkpoint deleted while its page is open keeps working. Naming it is rejected and does not recreate its folder.
func TestPlayWhileItsRunIsDeleted(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	p := playgroundIn(t, dir, "hrr")
	b := openPlayOf(t, p, 1280, 1400)
	b.shows("1.2.3.4.5")
	folder := filepath.Join(dir, "runs", handlertest.RunID)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	b.drag("play-slot-b-3", "play-slot-a-3")
	b.shows("1.2.3.9.5")
	b.Wait(`document.getElementById('failed').hidden`, "true")
	b.click("play-name")
	b.Wait(`document.activeElement === document.querySelector('dialog input')`, "true")
	b.Do(chromedp.SendKeys(`dialog input`, "size"+kb.Enter))
	b.Wait(`/^Run .+ was deleted, so names cannot be saved/.test(document.querySelector('dialog [role=alert]')?.textContent) || document.querySelector('dialog [role=alert]')?.textContent`, "true")
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was recreated")
	}
	b.Keys(kb.Escape)
	b.click("play-undo")
	b.shows("1.2.3.4.5") // nothing was lost
}

// Two tabs of the same checkpoint keep their own images but share names.
func TestPlayInTwoTabs(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	p := newPlayground(t)
	one := openPlayOf(t, p, 1280, 1400)
	two := openPlayOf(t, p, 1280, 1400)
	one.drag("play-slot-b-3", "play-slot-a-3")
	one.shows("1.2.3.9.5")
	two.drag("play-slot-b-0", "play-slot-a-0")
	two.shows("6.2.3.4.5")
	for slot, b := range map[string]playBrowser{"1": one, "2": two} {
		if reply, raw := b.rename(`{"slot":` + slot + `,"name":"of tab ` + slot + `"}`); reply.StatusCode != 200 {
			t.Fatalf("%s %s", reply.Status, raw)
		}
	}
	for codes, b := range map[string]playBrowser{"1.2.3.9.5": one, "6.2.3.4.5": two} {
		b.Do(chromedp.Reload())
		b.Wait(`document.getElementById('play')?.dataset.ready`, "yes")
		b.shows(codes)
		b.Wait(`[1, 2].map((i) => document.querySelector('[data-testid=play-head-' + i + '] .visually-hidden').textContent).join()`, "of tab 1,of tab 2")
		b.click("play-undo")
		b.shows("1.2.3.4.5")
	}
}
