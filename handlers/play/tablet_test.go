package play_test

import (
	"testing"

	"slotscope/model/expect"
)

// On a tablet the table of changes is not clipped, even with long values.
func TestReadingIsWholeOnATablet(t *testing.T) {
	expect.Long(t)
	b := openTiny(t, 820, 1180, "")
	b.Wait(`document.querySelectorAll('.groupswaps .shot').length`, "6")
	b.Eval(`void document.querySelectorAll('.groupswaps .shot')[4].click()`)
	b.Wait(`document.getElementById('reading').innerText.replace(/\s+/g, ' ').includes('cylinder → sphere')`, "true")
	b.Wait(`[...document.querySelectorAll('#reading :is(th, td)')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent).join()`, "")
}
