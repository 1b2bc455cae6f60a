package play_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
)

// place scrolls an element to the centre of the window and returns its centre.
func (b playBrowser) place(id string) handlertest.Place {
	b.t.Helper()
	b.Eval(fmt.Sprintf(`document.querySelector('[data-testid="%s"]').scrollIntoView({ block: 'center', behavior: 'instant' })`, id))
	x, y := b.at(id)
	return handlertest.Place{x, y}
}

// onAPhone opens the trained model on a touch screen.
func onAPhone(t *testing.T) (playBrowser, *handlertest.Hand) {
	t.Helper()
	b := openTiny(t, 390, 844, "?a=171626&b=309998")
	hand := b.TouchScreen()
	b.open("/play/" + b.key + "?a=171626&b=309998")
	b.decodes()
	return b, hand
}

// Touch drags a whole group to A or B; releasing elsewhere changes nothing; taps do the same as a drag.
func TestGroupsByTouch(t *testing.T) {
	expect.Long(t)
	b, hand := onAPhone(t)
	a, other := strings.Split(b.row("a"), "."), strings.Split(b.row("b"), ".")
	floor := func(codes, from []string) string { // slots 7 and 8
		return strings.Join(append(append([]string{}, codes[:7]...), from[7:]...), ".")
	}
	drag := func(to string) {
		t.Helper()
		from := b.place("play-group-0")
		x, y := b.at(to)
		hand.Drag(0, []handlertest.Place{from}, []handlertest.Place{{x, y}})
		hand.Rest()
	}
	drag("play-slot-a-7")
	b.shows(floor(a, other))
	b.Wait(`document.querySelectorAll('.ghost').length`, "0")
	if got := b.row("b"); got != strings.Join(other, ".") {
		t.Errorf("row B is %s", got)
	}
	hand.Tap(b.place("play-undo"))
	b.shows(strings.Join(a, "."))
	drag("play-head-8") // not a target
	b.Wait(`document.getElementById('said').textContent`, "Nothing was changed.")
	if got := b.row("a") + " " + b.row("b"); got != strings.Join(a, ".")+" "+strings.Join(other, ".") {
		t.Errorf("after releasing elsewhere, the rows are %s", got)
	}
	drag("play-slot-b-8") // copies A's codes to B
	b.Wait(`document.getElementById('said').textContent.startsWith('B has A’s floor hue')`, "true")
	if got := b.row("a") + " " + b.row("b"); got != strings.Join(a, ".")+" "+floor(other, a) {
		t.Errorf("the rows are %s", got)
	}
	hand.Tap(b.place("play-group-1"))
	b.Wait(`document.getElementById('hint').textContent.startsWith('Holding the group wall hue.')`, "true")
	hand.Tap(b.place("play-slot-a-5"))
	b.Wait(`document.getElementById('said').textContent`, "A has B’s wall hue, slots 5, 6.")
	b.Wait(`document.documentElement.scrollWidth`, "390")
}

// Touch on the training-step slider shows the pair at an earlier step, and scrolls the table horizontally without the page.
func TestSideBySideByTouch(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	p := twoSteps(t)
	b := browse(t, p, 390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch)
	hand := b.TouchScreen()
	b.open("/play/" + p.key + "?a=12345&b=400000")
	b.Wait(`document.querySelector('#beside [data-part=now]').textContent`, "250")
	middle := b.place("play-scrub")
	var wide float64
	fmt.Sscan(b.Eval(`document.getElementById('beside-step').getBoundingClientRect().width`), &wide)
	hand.Drag(0, []handlertest.Place{{middle[0] + wide/2 - 8, middle[1]}}, []handlertest.Place{{middle[0] - wide/2 + 8, middle[1]}})
	b.Wait(`document.querySelector('#beside [data-part=now]').textContent`, "100")
	b.Wait(`document.querySelector('#beside [data-part=other]').textContent.endsWith(', step 100')`, "true")
	b.Wait(`/PSNR [0-9.]+ dB/.test(document.querySelector('#beside tbody tr').cells[3].textContent)`, "true")
	b.Wait(`document.documentElement.scrollWidth`, "390")
	table := b.place("play-beside-table")
	hand.Drag(0, []handlertest.Place{{300, table[1]}}, []handlertest.Place{{60, table[1]}})
	b.Wait(`document.querySelector('[data-testid=play-beside-table]').closest('.scroll').scrollLeft > 100 && scrollX === 0`, "true")
}
