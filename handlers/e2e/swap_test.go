//go:build linux

package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"slotscope/handlers/handlertest"
	"slotscope/model"
)

// TestFromEmptyFolderToSlotSwap is the complete user journey: an empty folder, the new-run form, a training that is watched, stopped and
// resumed, and a slot that gets another code by mouse and by keyboard.
func TestFromEmptyFolderToSlotSwap(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("trains for several hundred steps")
	}
	handlertest.NeedsBrowser(t)
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	began := time.Now()
	v := s.visitor()
	id := v.startRun()
	reached := v.stop(id, v.watch())
	t.Logf("stopped at step %d after %v", reached, time.Since(began))
	last := reached + 40
	v.resume(id, last)
	totals := wholeFile(t, s.folder(id), last)
	s.wholeIndex(id, totals)
	t.Logf("finished at step %d after %v", last, time.Since(began))
	v.play()
	t.Logf("played until %v", time.Since(began))
	for _, fault := range v.faults {
		t.Error(fault)
	}
	if strings.Contains(s.log.String(), "level=ERROR") {
		t.Errorf("the server's log:\n%s", s.log)
	}
	s.close()
}

// startRun goes from the first page to the new-run form, fills it in and submits it.
func (v *visitor) startRun() (id string) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.url))
	v.see(`document.querySelector('[data-testid="home"]')`)
	v.click(`[data-testid="offer-train"] a`)
	v.see(`location.pathname === '/runs/new' && document.querySelector('[data-testid="start"]')`)
	v.see(`document.getElementById('preset').value === 'tiny' && document.getElementById('model').value === 'hrr'`)
	v.fill("#name", "end to end")
	v.fill("#steps", "100000")
	v.fill("#batch", "many") // rejected at first, beside its field, with all other input kept
	v.click(testID("start"))
	v.see(`document.querySelector('#batch-error')?.textContent.includes('"many" is not a whole number')`)
	v.see(`document.getElementById('steps').value === '100000' && document.getElementById('name').value === 'end to end'`)
	v.fill("#batch", "4")
	if v.eval(`document.querySelector('[data-group="cadence"]').open`) == "false" {
		v.click(`[data-group="cadence"] > summary`)
	}
	for name, text := range map[string]string{"checkpoint_every": "30", "sample_every": "20", "eval_every": "50", "eval_images": "16"} {
		v.fill("#"+name, text)
	}
	v.eval(`document.getElementById('evaluate').value = 'none'`) // the user evaluates later
	v.click(testID("start"))
	v.see(`location.pathname.startsWith('/runs/2') && document.querySelector('[data-testid="run"]')`)
	id = strings.TrimPrefix(v.eval(`location.pathname`), "/runs/")
	v.site.folder(id) // kills its process if the test fails
	if r := v.site.run(id); r.Name != "end to end" || r.Config.Batch != 4 || r.Config.CheckpointEvery != 30 || r.Config.EvalImages != 16 {
		v.t.Errorf("the form made %+v", r)
	}
	return id
}

const (
	stepShown   = `Number(document.querySelector('[data-testid="step"]').textContent.replaceAll(',', ''))`
	pointsShown = `Number(document.querySelector('[data-testid="chart-total"]').dataset.points ?? 0)`
	stateShown  = `document.querySelector('[data-part="state"]').textContent`
)

// watch waits until the step and the curve have grown three times without a reload, to more than a hundred points.
func (v *visitor) watch() (step int) {
	v.t.Helper()
	v.eval(`window.stayed = true`)
	v.see(`document.querySelector('[data-testid="connection"]').textContent === 'live'`)
	for range 3 {
		before, curve, frames := v.number(stepShown), v.number(pointsShown), v.framesHeard()
		v.see(fmt.Sprintf(`%s > %d && %s > %d`, stepShown, before, pointsShown, curve))
		await(v.t, "points come over the socket", func() bool { return v.framesHeard() > frames }) // the page may be ahead of the test
	}
	v.see(pointsShown + ` > 100`)
	v.see(`document.querySelector('[data-testid="samples"] img')?.naturalWidth > 0`)
	if v.eval(`window.stayed`) != "true" {
		v.t.Error("the page was reloaded")
	}
	return v.number(stepShown)
}

func (v *visitor) framesHeard() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.frames
}

// stop clicks the button; the run saves a checkpoint, and the page shows it.
func (v *visitor) stop(id string, after int) (step int) {
	v.t.Helper()
	v.click(testID("stop"))
	v.see(`document.querySelector('[data-part="state"]') && ` + stateShown + ` === 'stopped'`)
	r := v.site.run(id)
	if r.State != model.Stopped || r.Step < after || r.Checkpoint != r.Step || v.site.folder(id).Latest() != r.Step {
		v.t.Fatalf("stopped: %+v", r.Status)
	}
	v.see(fmt.Sprintf(`document.querySelector('[data-testid="reason"]').textContent.includes('saved at step %d')`, r.Step))
	return r.Step
}

// resume continues up to a step entered in the dialog.
func (v *visitor) resume(id string, last int) {
	v.t.Helper()
	v.click(testID("resume"))
	v.see(`document.getElementById('resume').matches(':popover-open')`)
	v.fill("#resume-steps", strconv.Itoa(last))
	v.click(testID("resume-go"))
	v.see(`document.querySelector('[data-part="state"]') && ` + stateShown + ` === 'finished'`)
	v.see(fmt.Sprintf(`%s === %d && %s === %d`, stepShown, last, pointsShown, last))
	r := v.site.reachState(id, model.Finished)
	if r.Step != last || r.Checkpoint != last || r.Attempt != 2 {
		v.t.Errorf("finished: %+v", r.Status)
	}
	v.do(chromedp.Reload())
	v.see(fmt.Sprintf(`document.querySelector('[data-testid="gaps"]')?.textContent === '%d of %d steps stored, 0 gaps'`, last, last))
}

// swap is one slot that gets another code, with the codes before and after.
type swap struct {
	slot, code    int
	before, after string // codes, joined by dots
}

// play goes from the run page to the playground and puts entries of the palette into slots.
func (v *visitor) play() {
	v.t.Helper()
	v.click(testID("play"))
	v.see(`document.getElementById('play')?.dataset.ready === 'yes'`)
	key := strings.Split(v.eval(`location.pathname`), "/")[2]
	await(v.t, "the usage of codes is counted", func() bool {
		status, _ := v.call("GET", "/api/play/"+key+"/usage", nil, nil)
		return status == http.StatusOK
	})
	v.do(chromedp.Reload())
	v.see(`document.getElementById('play')?.dataset.ready === 'yes' && document.getElementById('link').dataset.state === 'live'`)
	swaps := v.choose(key, strings.Split(v.eval(`document.querySelector('[data-testid="play-image"]').dataset.codes`), "."))

	before := v.shows(key, swaps[0].before)
	after := v.dragEntry(key, swaps[0])
	v.click(testID("play-undo"))
	v.same("undone", v.shows(key, swaps[0].before), before)
	v.click(testID("play-redo"))
	v.same("redone", v.shows(key, swaps[0].after), after)
	v.click(testID("play-undo"))
	v.same("undone again", v.shows(key, swaps[0].before), before)

	after = v.typeEntry(key, swaps[1])
	v.control("z")
	v.same("undone by keys", v.shows(key, swaps[1].before), before)
	v.control("Z", chromedp.ModifierShift)
	v.same("redone by keys", v.shows(key, swaps[1].after), after)
	v.see(fmt.Sprintf(`location.search.includes('codes=%s')`, swaps[1].after))
	v.do(chromedp.Reload())
	v.same("loaded again", v.shows(key, swaps[1].after), after)
}

// choose finds the two slots in which an entry of the palette changes the image most, because a barely trained model draws the same image
// for many entries.
func (v *visitor) choose(key string, codes []string) []swap {
	v.t.Helper()
	base := strings.Join(codes, ".")
	was := pixels(v.t, v.file("/img/"+key+"/"+base+".png"))
	var best []swap
	most := map[int]int{}
	for slot := range codes {
		var palette struct{ Entries []struct{ Code int } }
		v.want(http.StatusOK, "GET", fmt.Sprintf("/api/play/%s/palette?codes=%s&slot=%d&sort=value&limit=8", key, base, slot), nil, &palette)
		best = append(best, swap{slot: slot})
		for _, e := range palette.Entries {
			with := slices.Clone(codes)
			with[slot] = strconv.Itoa(e.Code)
			now := strings.Join(with, ".")
			if d := distance(was, pixels(v.t, v.file("/img/"+key+"/"+now+".png"))); d > most[slot] {
				most[slot], best[slot] = d, swap{slot, e.Code, base, now}
			}
		}
	}
	slices.SortFunc(best, func(a, b swap) int { return most[b.slot] - most[a.slot] })
	if most[best[1].slot] == 0 {
		v.t.Fatalf("no entry of any palette changes the image of %s", base)
	}
	return best[:2]
}

// file returns the content of a URL.
func (v *visitor) file(path string) []byte {
	v.t.Helper()
	return []byte(v.want(http.StatusOK, "GET", path, nil, nil))
}

func pixels(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	out := image.NewNRGBA(img.Bounds())
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			out.Set(x, y, img.At(x, y))
		}
	}
	return out
}

// distance returns the sum of the absolute differences of two images' channels.
func distance(a, b *image.NRGBA) (sum int) {
	for i, p := range a.Pix {
		sum += max(int(p), int(b.Pix[i])) - min(int(p), int(b.Pix[i]))
	}
	return sum
}

// farthest returns the largest difference of a channel between two PNG images.
func farthest(t *testing.T, x, y []byte) (most int) {
	t.Helper()
	a, b := pixels(t, x), pixels(t, y)
	for i, p := range a.Pix {
		most = max(most, int(max(p, b.Pix[i])-min(p, b.Pix[i])))
	}
	return most
}

// picture is an image on the page, and the server's image of the same codes.
type picture struct{ canvas, file []byte }

// shows waits until the large image has these codes. Its pixels must equal those of the server's image, except for differences of 1 of
// 255 because the browser decodes.
func (v *visitor) shows(key, codes string) picture {
	v.t.Helper()
	v.see(fmt.Sprintf(`document.querySelector('canvas[data-testid="play-image"]')?.dataset.codes === %q`, codes))
	encoded := strings.TrimPrefix(v.eval(`document.querySelector('[data-testid="play-image"]').toDataURL('image/png')`), "data:image/png;base64,")
	canvas, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		v.t.Fatal(err)
	}
	p := picture{canvas, v.file("/img/" + key + "/" + codes + ".png")}
	if d := farthest(v.t, p.canvas, p.file); d > 1 {
		v.t.Errorf("the images of %s on the page and from the server differ by %d", codes, d)
	}
	return p
}

func (v *visitor) same(what string, got, want picture) {
	v.t.Helper()
	if farthest(v.t, got.canvas, want.canvas) > 1 || !bytes.Equal(got.file, want.file) {
		v.t.Errorf("%s: the image differs", what)
	}
}

func (v *visitor) differ(what string, a, b picture) {
	v.t.Helper()
	if farthest(v.t, a.canvas, b.canvas) <= 1 || bytes.Equal(a.file, b.file) {
		v.t.Errorf("%s: the image did not change", what)
	}
}

func slotCode(slot int) string {
	return fmt.Sprintf(`document.querySelector('[data-testid="play-slot-a-%d"]').dataset.code`, slot)
}

// palette waits until the entries of a slot are shown.
func (v *visitor) palette(s swap) (entry string) {
	v.t.Helper()
	entry = testID(fmt.Sprintf("play-palette-%d", s.code))
	v.see(fmt.Sprintf(`document.getElementById('palette-slot').textContent === '%d' && !document.getElementById('entries').inert`, s.slot))
	// the list of unused entries may be drawn, or drawn again, after the used ones
	v.see(fmt.Sprintf(`(document.querySelector('#palette-unused[aria-expanded="false"]:not([hidden])')?.click(),
		document.getElementById('palette-slot').textContent === '%d' && document.querySelector('%s canvas'))`, s.slot, entry))
	return entry
}

// dragEntry drags an entry of the palette into its slot; the image follows while it is held.
func (v *visitor) dragEntry(key string, s swap) picture {
	v.t.Helper()
	before := v.shows(key, s.before)
	v.click(testID(fmt.Sprintf("play-head-%d", s.slot)))
	entry := v.palette(s)
	code := v.eval(slotCode(s.slot))
	x1, y1 := v.at(testID(fmt.Sprintf("play-slot-a-%d", s.slot)))
	x0, y0 := v.at(entry)
	if x, y := v.at(testID(fmt.Sprintf("play-slot-a-%d", s.slot))); x != x1 || y != y1 {
		v.t.Fatalf("palette and slots do not fit the window together")
	}
	pressed := func(p *input.DispatchMouseEventParams) { p.ClickCount = 1 }
	v.do(chromedp.MouseEvent("mousePressed", x0, y0, chromedp.ButtonLeft, pressed))
	const moves = 12
	for i := 1; i <= moves; i++ {
		part := float64(i) / moves
		v.do(chromedp.MouseEvent("mouseMoved", x0+part*(x1-x0), y0+part*(y1-y0), chromedp.ButtonLeft))
	}
	v.differ("while the entry is held over the slot", v.shows(key, s.after), before)
	if got := v.eval(slotCode(s.slot)); got != code {
		v.t.Errorf("slot %d already has %s before the release", s.slot, got)
	}
	v.do(chromedp.MouseEvent("mouseReleased", x1, y1, chromedp.ButtonLeft, pressed))
	v.see(fmt.Sprintf(`%s === '%d'`, slotCode(s.slot), s.code))
	after := v.shows(key, s.after)
	v.differ("after the drag", after, before)
	return after
}

// typeEntry puts an entry into its slot by keyboard alone, from the top of the page.
func (v *visitor) typeEntry(key string, s swap) picture {
	v.t.Helper()
	v.do(chromedp.Reload())
	before := v.shows(key, s.before)
	v.tab(".token")
	v.keys(kb.Home)
	for v.eval(`document.activeElement.dataset.i`) != strconv.Itoa(s.slot) { // slots of a factor are adjacent
		before := v.eval(`document.activeElement.dataset.testid`)
		v.keys(kb.ArrowRight)
		if v.eval(`document.activeElement.dataset.testid`) == before {
			v.t.Fatalf("slot %d is not reachable by keys", s.slot)
		}
	}
	v.palette(s)
	v.tab(".entry")
	v.keys(kb.Home)
	for range 30 {
		if v.eval(`document.activeElement.dataset.code`) == strconv.Itoa(s.code) {
			break
		}
		v.keys(kb.ArrowRight)
	}
	v.keys(kb.Enter) // holds it and goes to the slot
	v.see(fmt.Sprintf(`document.activeElement.dataset.testid === 'play-slot-a-%d'`, s.slot))
	v.differ("while the entry is held", v.shows(key, s.after), before)
	v.keys(kb.Enter)
	v.see(fmt.Sprintf(`%s === '%d'`, slotCode(s.slot), s.code))
	after := v.shows(key, s.after)
	v.differ("after Enter", after, before)
	return after
}
