package play_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	playpage "slotscope/handlers/play"
	"slotscope/model/compute"
	"slotscope/model/data"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/play"
	"slotscope/model/shipped"
	"slotscope/static"
)

// differences computes the maximum difference, of 255, between every image that the page has painted and the server's.
const differences = `(async () => {
	const painted = [...document.querySelectorAll('canvas[data-codes]')].filter((c) => c.dataset.painted);
	let most = painted.length > 5 ? 0 : 999;
	for (const canvas of painted) {
		const reply = await fetch('/img/' + KEY + '/' + canvas.dataset.codes + '.png');
		const bitmap = await createImageBitmap(await reply.blob(), { colorSpaceConversion: 'none' });
		const other = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
		other.drawImage(bitmap, 0, 0);
		const [x, y] = [canvas.getContext('2d'), other].map((c) => c.getImageData(0, 0, canvas.width, canvas.height).data);
		for (let i = 0; i < x.length; i++) most = Math.max(most, Math.abs(x[i] - y[i]));
	}
	document.body.dataset.most = most;
})()`

// Once it has the weights, the page decodes in the browser and shows the same images as the server.
func TestBrowserDecodesByItself(t *testing.T) {
	for _, name := range []string{"hrr", "betavae"} {
		t.Run(name, func(t *testing.T) {
			b := openPlayOf(t, playgroundOf(t, name), 1280, 900)
			b.decodes()
			b.Click(`[data-testid="play-swap-2"]`)
			b.Wait(`document.querySelectorAll('canvas[data-codes]').length > 5 && !document.querySelector('.grid[data-waiting]')`, "true")
			b.Eval(strings.ReplaceAll(differences, "KEY", "'"+b.key+"'"))
			b.Wait(`['0', '1'].includes(document.body.dataset.most) || document.body.dataset.most`, "true")
		})
	}
}

// A browser that cannot open the weights, or receives damaged or invalid ones, uses the server's images and shows why.
func TestServerDecodesWhereTheBrowserCannot(t *testing.T) {
	expect.Long(t)
	p := playgroundOf(t, "hrr")
	b := browse(t, p, 1280, 900)
	b.waitFor("usage")
	weights := func(change string) string {
		return `const plain = fetch; window.fetch = async (address, ...rest) => {
			const reply = await plain(address, ...rest);
			if (!String(address).includes('weights.bin')) return reply;
			let raw = new Uint8Array(await reply.arrayBuffer());
			` + change + `
			return new Response(raw);
		};`
	}
	for _, c := range []struct{ name, script, why string }{
		{"no SIMD", `delete globalThis.Worker; WebAssembly.compile = () => Promise.reject(new Error('no SIMD'))`, "This browser does not support WebAssembly SIMD."},
		{"damaged", weights(`raw[raw.length >> 1] ^= 255;`), "The weights file is damaged: its checksum does not match."},
		{"foreign", weights(`raw = new TextEncoder().encode('<!doctype html>'.repeat(20));`), "This is not a weights file of this version of Slotscope."},
		{"cut short", weights(`raw = raw.slice(0, 50);`), "The weights file is too short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := browse(t, p, 1280, 900)
			b.BeforePages(c.script)
			b.open("/play/" + p.key + "?" + playState)
			b.Wait(`document.getElementById('link').title.includes('`+c.why+`') || document.getElementById('link').title`, "true")
			b.Wait(`document.getElementById('play').dataset.decoder`, "server")
			b.Wait(`document.querySelector('[data-testid=play-image]').dataset.painted`, "yes")
			b.Wait(`document.getElementById('failed').hidden`, "true")
		})
	}
}

// The frozen page works like the live one: drag, undo, random, upload, palette, another model, reload. It sends no requests.
func TestFrozenPage(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	file := frozenOf(t, "hrr", "betavae")
	path, keys := file.path, file.keys
	b.Do(chromedp.Navigate("file://" + path + "#" + keys[0] + "?codes=1.2.3.4.5&bcodes=6.2.8.9.10"))
	b.decodes()
	b.Wait(`document.querySelector('[data-testid=play-image]').dataset.painted`, "yes")
	b.Wait(`[...document.querySelectorAll('.groupswaps .shot, .swaps .shot, #steps .shot, .entry, .side .frame:has([data-part=reconstruction])')].filter((e) => !e.querySelector('canvas')?.dataset.painted).length`, "0") // nothing is left for a server

	const before, after = "1.2.3.4.5", "1.2.8.4.5"
	first := b.shows(before)
	b.drag("play-slot-b-2", "play-slot-a-2")
	if b.shows(after) == first {
		t.Error("the swap changed no pixel")
	}
	b.Do(chromedp.Reload())
	b.decodes()
	b.shows(after)
	b.Click(`[data-testid="play-undo"]`)
	b.shows(before)

	// blending: the end of the slider is the swap, halfway is something else
	slide := func(id, value string) {
		b.Eval(`(() => { const s = document.querySelector('[data-testid=` + id + `]'); s.value = ` + value + `; s.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	}
	pixels := `document.querySelector('[data-testid=play-image]').toDataURL()`
	slide("play-blend-2", "50")
	b.Wait(pixels+` !== '`+first+`'`, "true")
	half := b.Eval(pixels)
	slide("play-blend-2", "100")
	b.Wait(pixels+` !== '`+half+`'`, "true")
	b.Wait(`document.getElementById('result-state').textContent`, "with 100% of slot 2 from B")
	slide("play-blend-2", "0")
	b.Wait(pixels, first)
	slide("play-noise", "-20")
	b.Wait(`/codes (flip|are unchanged)/.test(document.querySelector('[data-testid=play-flips]').textContent)`, "true")
	slide("play-noise", "21")
	b.Wait(pixels, first)

	b.Click(`[data-testid="play-random-b"]`)
	b.Wait(`document.querySelector('[data-testid=play-original-b]').src.startsWith('data:image/png')`, "true")
	b.upload("play-upload-a")
	b.Wait(`document.querySelector('#side-a [data-part=said]').textContent.includes('centre square')`, "true")
	b.Wait(`/^Re-encoding/.test(document.getElementById('check').textContent)`, "true")
	b.Do(chromedp.SetValue(`[data-testid="play-palette-sort"]`, "distance"))
	b.Eval(`document.querySelector('[data-testid=play-palette-sort]').dispatchEvent(new Event('change'))`)
	b.Wait(`document.querySelector('#entries .entry').dataset.code`, b.Eval(`document.querySelector('[data-testid=play-slot-a-0]').dataset.code`))

	b.Eval(`document.querySelector('[data-testid=play-checkpoint]').value = '` + keys[1] + `', document.querySelector('[data-testid=play-checkpoint]').dispatchEvent(new Event('change'))`)
	b.Wait(`document.getElementById('entries')?.dataset.real !== undefined`, "true")
	b.decodes()
	b.Wait(`document.querySelector('[data-testid=play-image]').dataset.painted`, "yes")
	b.Wait(`performance.getEntriesByType('resource').filter((e) => !/^(data|blob):/.test(e.name)).length`, "0")
}

// The changes of a swap are shown as factors, next to the true image, in the live page and in the frozen one.
func TestFactsOfASwap(t *testing.T) {
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	p.key = key
	path := frozenOf(t, "tiny").path
	if info, err := os.Stat(path); err != nil || info.Size() > 900_000 {
		t.Errorf("the frozen page of a tiny model is larger than 900 KB: %+v, %v", info, err)
	}
	b := browse(t, p, 1280, 900)
	for name, address := range map[string]string{"live": p.url + "/play/" + p.key + "?a=171626&b=309998", "frozen": "file://" + path} {
		b.Do(chromedp.Navigate(address))
		b.decodes()
		b.Wait(`[...document.querySelectorAll('#reading th')].map((e) => e.textContent).join()`, "floor hue,wall hue,object hue,scale,shape,orientation")
		b.Wait(`document.querySelectorAll('#reading [data-kind=none]').length + ' ' + document.getElementById('should').hidden`, "6 true")
		b.Wait(`[...document.querySelectorAll('.groupswaps .fact')].filter((e) => /^✓ .*hit [0-9.]+ dB$/.test(e.textContent)).length`, "6")
		b.Wait(`document.querySelectorAll('.groupswaps canvas.true:not([hidden])').length`, "6")
		b.Click(`[data-testid="play-groupswap-0"]`)
		b.Wait(`document.querySelector('#reading tr').dataset.kind + document.querySelector('#reading td').textContent`, "intended0.3 → 0.6")
		b.Wait(`document.querySelectorAll('#reading [data-kind=leaked]').length`, "0")
		b.Wait(`document.getElementById('should').dataset.hit + /True image: \d+\.\d dB/.test(document.getElementById('should').textContent)`, "truetrue")
		if name == "live" { // the server's measurement agrees
			var truth struct{ PSNR float64 }
			p.getJSON("/api/play/"+p.key+"/truth?a=171626&b=309998&slots=7.8", &truth)
			b.Wait(`document.querySelector('#should p').textContent.match(/[\d.]+ dB/)[0]`, fmt.Sprintf("%.1f dB", truth.PSNR))
		}
		b.Wait(`document.querySelectorAll('#failed:not([hidden])').length`, "0")
	}
}

// The frozen page has an atlas of every slot and code, each with its own URL, without a server.
func TestFrozenAtlas(t *testing.T) {
	expect.Long(t)
	b := browse(t, playground{t: t}, 1280, 900)
	file := frozenOf(t, "tiny")
	at := "file://" + file.path + "#" + file.keys[0]
	b.Do(chromedp.Navigate(at))
	b.decodes()
	a := strings.Split(b.row("a"), ".")
	b.Wait(`document.querySelector('[data-testid=play-atlas]').hash`, "#"+file.keys[0]+"/atlas/0/"+a[0])
	b.click("play-atlas")
	const (
		title   = `document.querySelector('#leaf-title')?.textContent`
		open    = `document.querySelectorAll('dialog[open]').length`
		painted = `[...document.querySelectorAll('.leaf canvas')].every((c) => c.dataset.painted) && document.querySelectorAll('.leaf canvas').length`
	)
	b.Wait(title+`.startsWith('Code `+a[0]+` of slot 0 ')`, "true")
	b.Wait(painted, "9") // the code and its eight nearest
	b.Wait(`/^Slot 0 has this code on [1-9][0-9,]* of 4,096 random images.$/.test(document.querySelector('[data-testid=leaf-count]').textContent)`, "true")
	b.Wait(`/^By factor: .+, on \d+% of those images.$/.test(document.querySelector('[data-testid=leaf-meaning]').textContent)`, "true")
	b.Wait(`document.querySelector('[data-testid=leaf-born]').textContent`, "This file has only one checkpoint (step 20,000), so the code’s history over training is unknown.")
	b.Wait(`document.querySelectorAll('[data-testid=leaf-images] img').length > 0 && document.querySelectorAll('[data-testid=leaf-values] tr').length`, "7")
	distances := b.Eval(`[...document.querySelectorAll('[data-testid=leaf-nearest] .quiet')].map((e) => e.textContent.split(' · ').pop()).join()`)
	if list := strings.Split(distances, ","); len(list) != 8 || !slices.IsSorted(list) {
		t.Errorf("distances of the nearest codes: %s", distances)
	}

	// a user-chosen name is stored, and not interpreted as markup
	b.Do(chromedp.SendKeys(`[data-testid=leaf-name] input`, "<i>big</i>"+kb.Enter))
	b.Wait(title, "Code "+a[0]+" of slot 0 <i>big</i>")
	b.Wait(painted, "9")

	// to the slot, to another code, and into A
	b.Eval(`document.querySelectorAll('.leaf .slotlink')[4].click()`)
	b.Wait(title, "Slot 4 shape")
	b.Wait(`/^On 4,096 random images, \d+ codes are used and \d+ codes are unused. /.test([...document.querySelectorAll('.leaf .quiet')].map((e) => e.textContent).find((s) => s.includes('unused')))`, "true")
	b.Eval(`document.querySelector('[data-testid=leaf-codes] a').click()`)
	b.Wait(title+`.startsWith('Code ')`, "true")
	code := b.Eval(`location.hash.split('/').pop()`)
	b.Do(chromedp.Reload()) // the URL is the code's
	b.Wait(title+`?.startsWith('Code `+code+` of slot 4 ')`, "true")
	b.click("leaf-put")
	b.Wait(open, "0")
	b.Wait(`document.querySelector('[data-testid=play-slot-a-4]').dataset.code`, code)
	b.Wait(`location.hash.includes('?a=')`, "true")

	// an image with the code becomes A; missing slots and codes are reported
	b.Eval(`location.hash = '` + file.keys[0] + `/atlas/0/` + a[0] + `'`)
	b.Wait(open, "1")
	b.Eval(`document.querySelector('[data-testid=leaf-images] button').click()`)
	b.Wait(open+` + ' ' + document.querySelector('[data-testid=play-slot-a-0]').dataset.code`, "0 "+a[0])
	for hash, want := range map[string]string{"/atlas/99": "Slot 99 does not exist; this model has slots 0–8.", "/atlas/0/128": "Code 128 does not exist; this model has codes 0–127."} {
		b.Eval(`location.hash = '` + file.keys[0] + hash + `'`)
		b.Wait(`document.querySelector('.leaf p')?.textContent`, want)
	}
	b.Keys(kb.Escape)
	b.Wait(open, "0")

	// a URL entered while the page saves its own, just before and just after the dialog closes
	enter, click := `location.hash = '`+file.keys[0]+`/atlas/99'`, `document.querySelector('[data-testid=leaf-images] button').click()`
	for _, both := range []string{click + `, ` + enter, enter + `, ` + click} {
		b.Eval(`location.hash = '` + file.keys[0] + `/atlas/0/` + a[0] + `'`)
		b.Wait(open+` + ' ' + document.querySelectorAll('[data-testid=leaf-images]').length`, "1 1")
		b.Eval(`(` + both + `, 0)`)
		b.Wait(open+` + document.querySelector('.leaf p').textContent`, "1Slot 99 does not exist; this model has slots 0–8.")
		b.Wait(`location.hash`, "#"+file.keys[0]+"/atlas/99")
	}
}

// made clicks a download of the page and returns the file's bytes.
func (b playBrowser) made(selector string) []byte {
	b.t.Helper()
	b.Eval(`(window.made = null, URL.createObjectURL = (blob) => { const r = new FileReader(); r.onload = () => { window.made = r.result; }; r.readAsDataURL(blob); return 'about:blank'; }, HTMLAnchorElement.prototype.click = () => {}, document.querySelector('` + selector + `').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })))`)
	b.Wait(`window.made !== null`, "true")
	raw, err := base64.StdEncoding.DecodeString(b.Eval(`window.made.split(',')[1]`))
	if err != nil {
		b.t.Fatal(err)
	}
	return raw
}

// The frozen page creates its downloads itself.
func TestFrozenFiles(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	b.Do(chromedp.Navigate("file://" + frozenOf(t, "tiny").path))
	b.decodes()
	b.Wait(`[...document.querySelectorAll('#download [data-file]')].map((e) => e.dataset.file).join()`, "png,png4,animation.gif,animation.png,codes.json")
	for kind, side := range map[string]int{"png": 64, "png4": 256} {
		img, err := png.Decode(bytes.NewReader(b.made(`[data-file=` + kind + `]`)))
		if err != nil || img.Bounds().Dx() != side || img.Bounds().Dy() != side {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	movie := b.made(`[data-file="animation.png"]`)
	first, err := png.Decode(bytes.NewReader(movie)) // also verifies chunk checksums
	if err != nil || first.Bounds().Dx() != 256 || first.Bounds().Dy() != 274 {
		t.Errorf("the animation's first frame: %v", err)
	}
	if at := bytes.Index(movie, []byte("acTL")); at < 0 || binary.BigEndian.Uint32(movie[at+4:]) != 20 || bytes.Count(movie, []byte("fdAT")) != 19 {
		t.Errorf("the animation does not have 20 frames: A to B and back over 9 slots")
	}
	film, err := gif.DecodeAll(bytes.NewReader(b.made(`[data-file="animation.gif"]`)))
	if err != nil || len(film.Image) != 20 || film.Delay[0] != 120 || film.Delay[1] != 60 {
		t.Fatalf("the GIF does not have 20 frames of 0.6 s, with 1.2 s at A and B: %v", err)
	}
	for y := range 256 {
		for x := range 256 {
			r, g, bl, _ := first.At(x, y).RGBA()
			r2, g2, bl2, _ := film.Image[0].At(x, y).RGBA()
			if max(r, r2)-min(r, r2)+max(g, g2)-min(g, g2)+max(bl, bl2)-min(bl, bl2) > 48<<8 {
				t.Fatalf("the GIF's first frame differs from the APNG's at %d, %d: %v, %v", x, y, film.Image[0].At(x, y), first.At(x, y))
			}
		}
	}
	var state struct {
		Codes []int
		Slots []struct{ Name string }
	}
	if err := json.Unmarshal(b.made(`[data-file="codes.json"]`), &state); err != nil || strings.Trim(strings.ReplaceAll(fmt.Sprint(state.Codes), " ", "."), "[]") != b.row("a") || state.Slots[4].Name != "shape" {
		t.Errorf("codes: %+v, %v", state, err)
	}

	b.Eval(`(() => { const s = document.querySelector('[data-testid=play-many-n]'); s.value = '4'; s.dispatchEvent(new Event('change')); document.querySelector('#many summary').click(); })()`)
	b.Wait(`/^\d+ of \d+ swaps are hits/.test(document.querySelector('[data-testid=play-many-said]').textContent)`, "true")
	drawing := string(b.made(`[data-testid=play-figure-svg]`))
	for part, n := range map[string]int{"<image ": 4 * 8, ">floor hue<": 1, ", step 20,000<": 1, "swaps are hits": 1, ">pair 4<": 1} {
		if got := strings.Count(drawing, part); got != n {
			t.Errorf("the figure contains %q %d times, want %d", part, got, n)
		}
	}
	if !regexp.MustCompile(`hit [0-9.]+ dB<`).MatchString(drawing) {
		t.Error("the figure shows no hit")
	}
	if img, err := png.Decode(bytes.NewReader(b.made(`[data-testid=play-figure-png]`))); err != nil || img.Bounds().Dx() < 1600 {
		t.Errorf("the figure as PNG: %v", err)
	}
	paper := string(b.made(`[data-testid=play-figure-pdf]`))
	places := regexp.MustCompile(`(?s)\nxref\n0 (\d+)\n0000000000 65535 f \n((?:\d{10} 00000 n \n)+)trailer.*\nstartxref\n(\d+)\n%%EOF\n$`).FindStringSubmatch(paper)
	if !strings.HasPrefix(paper, "%PDF-1.4\n") || places == nil || strings.Count(paper, "/Subtype/Image") != 4*8 {
		t.Fatalf("the figure as PDF has %d bytes, %d images, and the table %q", len(paper), strings.Count(paper, "/Subtype/Image"), places)
	}
	for i, line := range strings.Split(strings.TrimSuffix(places[2], " \n"), " \n") {
		if at, err := strconv.Atoi(line[:10]); err != nil || !strings.HasPrefix(paper[at:], strconv.Itoa(i+1)+" 0 obj\n") {
			t.Errorf("object %d does not start at %s: %v", i+1, line, err)
		}
	}
	for _, want := range []string{"floor hue", "pair 4", "step 20,000"} {
		if !strings.Contains(paper, hex.EncodeToString([]byte(want))) {
			t.Errorf("the figure as PDF lacks the text %q", want)
		}
	}
	b.Wait(`document.querySelectorAll('#failed:not([hidden])').length`, "0")
	b.Wait(`performance.getEntriesByType('resource').filter((e) => !/^(data|blob|about):/.test(e.name)).length`, "0")
}

// A download works before the first view is drawn.
func TestFrozenFileBeforeTheFirstView(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	b.BeforePages(`{ const later = setTimeout; requestAnimationFrame = () => 0; setTimeout = (f, ms, ...rest) => later(f, ms === 100 ? 3600000 : ms, ...rest); }`)
	b.Do(chromedp.Navigate("file://" + frozenOf(t, "tiny").path))
	b.Wait(`document.getElementById('play')?.dataset.decoder`, "browser")
	if b.Eval(`document.getElementById('play').dataset.ready ?? 'no'`) != "no" {
		t.Fatal("the first view has been drawn")
	}
	if _, err := png.Decode(bytes.NewReader(b.made(`[data-file=png]`))); err != nil {
		t.Error(err)
	}
}

// Downloads arrive if they are clicked at once, and if codes are re-encoded while they wait for a busy worker.
func TestFrozenFilesAtOnce(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	b.BeforePages(`{
		window.arrived = [];
		HTMLAnchorElement.prototype.click = function () { if (this.download) window.arrived.push(this.download.replace(/^slotscope-[^-]+-/, '')); };
		const post = Worker.prototype.postMessage;
		Worker.prototype.postMessage = function (message, ...rest) {
			if (message.lane?.startsWith('file')) { // more urgent work for 1.5 s
				post.call(this, { lane: 'atlas', jobs: Array(100_000).fill(message.jobs[0]) });
				setTimeout(() => post.call(this, { lane: 'atlas', jobs: [] }), 1500);
			}
			post.call(this, message, ...rest);
		};
	}`)
	b.Do(chromedp.Navigate("file://" + frozenOf(t, "tiny").path))
	b.decodes()
	b.Wait(`/^Re-encoding/.test(document.getElementById('check').textContent)`, "true")
	b.Eval(`document.getElementById('check').textContent = ''`)
	b.Click(`[data-testid="play-swap-2"]`)
	b.Eval(`document.querySelectorAll('#download [data-file]').forEach((link) => link.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })))`)
	b.Wait(`window.arrived.length`, "5")
	image := b.row("a") + ".png"
	b.Wait(`window.arrived.sort().join()`, strings.Join([]string{image, image, "animation.gif", "animation.png", "codes.json"}, ","))
	b.Wait(`/^Re-encoding/.test(document.getElementById('check').textContent)`, "true")
	b.Wait(`document.querySelectorAll('#failed:not([hidden])').length`, "0")
}

// A worker replies to a request that a newer one replaces, so nothing waits for it forever.
func TestReplacedRequest(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	b.Do(chromedp.Navigate("file://" + frozenOf(t, "tiny").path))
	b.decodes()
	b.Eval(`(async () => {
		const [{ Local }, { joined }] = [await import('play/local.js'), await import('play/frozen.js')];
		const [wasm, planes] = await Promise.all(['codec.wasm', frozen.models[0].key + '.weights'].map(frozen.blob));
		const model = await Local.open({ wasm, weights: joined(planes) });
		const job = { a: [` + strings.ReplaceAll(b.row("a"), ".", ",") + `] };
		const old = model.decode('lane', Array(100_000).fill(job)).then(() => 'decoded', (err) => err.message);
		const [pixels] = await model.decode('lane', [job]);
		window.replies = await old + ' ' + pixels.length;
	})().catch((err) => { window.replies = err.message; })`)
	b.Wait(`window.replies`, "A newer request replaced this one. 12288")
}

// A damaged copy shows an error on the page.
func TestFrozenPageSaysThatItIsDamaged(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	file := frozenOf(t, "hrr", "betavae")
	raw, err := os.ReadFile(file.path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(raw, []byte(`id="blob:`+file.keys[0])) + 200
	copy(raw[at:], "AAAAAAAA")
	path := filepath.Join(t.TempDir(), "damaged.html")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	b.Do(chromedp.Navigate("file://" + path))
	b.Wait(`/damaged/.test(document.getElementById('failed')?.textContent)`, "true")
}

// Without WebAssembly SIMD the frozen page shows an error, and names, codes and examples.
func TestFrozenPageWithoutSIMD(t *testing.T) {
	b := browse(t, playground{t: t}, 1280, 900)
	b.BeforePages(`delete globalThis.Worker; WebAssembly.compile = () => Promise.reject(new Error('no SIMD'))`)
	b.Do(chromedp.Navigate("file://" + frozenOf(t, "hrr", "betavae").path))
	b.Wait(`/SIMD/.test(document.getElementById('failed')?.textContent) || document.getElementById('failed')?.textContent`, "true")
	b.Wait(`document.getElementById('failed').hidden + document.querySelector('[data-testid=play-original-a]').src.slice(0, 15)`, "falsedata:image/png;")
}

// The frozen page of a run without factors works: codes are shown by number, and there is nothing about factors.
func TestFrozenPageWithoutFactors(t *testing.T) {
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	pictures := filepath.Join(dir, "pictures")
	if err := os.Mkdir(pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 80 {
		img := image.NewRGBA(image.Rect(0, 0, 64, 64))
		for p := range img.Pix {
			img.Pix[p] = [4]byte{byte(3 * i), byte(p / 1024), byte(p % 256), 255}[p%4]
		}
		var file bytes.Buffer
		err := png.Encode(&file, img)
		if err == nil {
			err = os.WriteFile(filepath.Join(pictures, fmt.Sprintf("%02d.png", i)), file.Bytes(), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	catalogue := data.Catalogue{Dir: dir}
	name, err := catalogue.Add(t.Context(), data.Request{Name: "plain-pictures", From: pictures}, func(data.Work) {})
	if err != nil {
		t.Fatal(err)
	}
	handlertest.WriteRun(t, dir)
	folder := filepath.Join(dir, "runs", handlertest.RunID)
	path := filepath.Join(folder, "checkpoints", "step-000000250.safetensors")
	file, err := checkpoint.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	file.Config.Dataset = name
	raw, err := json.Marshal(file.Config)
	if err = errors.Join(err, os.WriteFile(filepath.Join(folder, "config.json"), raw, 0o644), checkpoint.Write(path, file)); err != nil {
		t.Fatal(err)
	}
	engine, err := compute.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	library := play.NewLibrary(dir, engine, catalogue)
	t.Cleanup(library.Close)
	page, err := os.Create(filepath.Join(dir, "plain.html"))
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	if err := (playpage.Freezer{Library: library, Static: static.Files(), Revision: "test"}).Freeze(t.Context(), []string{handlertest.RunID}, page); err != nil {
		t.Fatal(err)
	}

	b := browse(t, playground{t: t}, 1280, 900)
	b.Do(chromedp.Navigate("file://" + page.Name()))
	b.decodes()
	b.Wait(`document.querySelector('[data-testid=play-image]').dataset.painted`, "yes")
	b.Wait(`document.querySelectorAll('#side-a [data-factor], #reading:not([hidden])').length`, "0")
	b.Eval(`document.querySelector('[data-testid=play-swap-2]').click()`)
	b.Wait(`document.querySelector('[data-testid=play-slot-a-2]').dataset.code === document.querySelector('[data-testid=play-slot-b-2]').dataset.code`, "true")
	b.Eval(`document.querySelector('[data-testid=play-random-a]').click()`)
	b.Wait(`document.querySelector('[data-testid=play-original-a]').src.startsWith('data:image/png')`, "true")
	b.Wait(`document.querySelectorAll('#failed:not([hidden])').length`, "0")
}

// A link with codes or images that the file does not have shows a message, and the page works.
func TestFrozenPageOfAForeignAddress(t *testing.T) {
	expect.Long(t)
	b := browse(t, playground{t: t}, 1280, 900)
	file := frozenOf(t, "hrr", "betavae")
	said := `[...document.querySelectorAll('.side [data-part=said]:not([hidden])')].map((e) => e.textContent).join(' ')`
	for query, want := range map[string]string{
		"codes=1.2.3.4.99&bcodes=6.2.8.9.10": "The link must have 5 codes in 0–11 for A. Showing A as encoded.",
		"codes=1.2.3.4.5&bcodes=6.2":         "The link must have 5 codes in 0–11 for B. Showing B as encoded.",
		"a=479999":                           "Image 479999 is not in this file; showing another.",
		"codes=1.2.3.4.5":                    "",
	} {
		b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+file.path+"#"+file.keys[0]+"?"+query))
		b.decodes()
		b.Wait(said, want)
		b.Wait(`document.querySelector('[data-testid=play-image]').dataset.painted`, "yes")
	}
}

// Uploads of unusual size show a message in the frozen page, as in the live one.
func TestFrozenUploadsOfOddSizes(t *testing.T) {
	expect.Long(t)
	b := browse(t, playground{t: t}, 1280, 900)
	b.Do(chromedp.Navigate("file://" + frozenOf(t, "hrr", "betavae").path))
	b.decodes()
	give := func(wide, high int) {
		path := filepath.Join(t.TempDir(), "own.png")
		file, err := os.Create(path)
		if err == nil {
			err = errors.Join(png.Encode(file, image.NewGray(image.Rect(0, 0, wide, high))), file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Do(chromedp.SetUploadFiles(`[data-testid="play-upload-a"]`, []string{path}))
	}
	said := `document.querySelector('#side-a [data-part=said]').textContent`
	give(12_000, 3)
	b.Wait(said, "The image is 12000 × 3 pixels; choose one of at most 8,192 pixels on each side.")
	give(1, 1)
	b.Wait(said, "Cropped 1 × 1 to the centre square and resized to 64 × 64.")
	b.Wait(`document.querySelector('[data-testid=play-original-a]').src.startsWith('data:image/png')`, "true")
}

func TestFreezeRefuses(t *testing.T) {
	f, _ := freezer(t, "hrr")
	for name, names := range map[string][]string{"nothing": {}, "too many": make([]string, 17), "unknown run": {"no-such-run"}} {
		var page bytes.Buffer
		if err := f.Freeze(context.Background(), names, &page); err == nil || page.Len() > 0 {
			t.Errorf("%s: %d bytes and the error %v", name, page.Len(), err)
		}
	}
}

// upload sets a file input to an image of 20 × 10 pixels.
func (b playBrowser) upload(id string) {
	b.t.Helper()
	raw, err := base64.StdEncoding.DecodeString("R0lGODdhFAAKAIAAAP8AAAAA/ywAAAAAFAAKAAACE4SPqcvtD6OctNqLs968+w+G4lgAADs=")
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.t.TempDir(), "own.gif")
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.Do(chromedp.SetUploadFiles(`[data-testid="`+id+`"]`, []string{path}))
}

// The shipped models' page in docs takes at most 3 MB per model.
func TestShippedPageIsSmall(t *testing.T) {
	info, err := os.Stat("../../docs/playground.html")
	if err != nil || info.Size() > int64(3_000_000*len(shipped.Runs())) {
		t.Errorf("%+v, %v", info, err)
	}
}
