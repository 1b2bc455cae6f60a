package dataset

import (
	"bytes"
	"slotscope/handlers/handlertest"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// datasetBrowser opens the datasets' pages in a real browser.
type datasetBrowser struct{ handlertest.Browser }

func openDatasetBrowser(t *testing.T, sets DatasetCatalogue) datasetBrowser {
	t.Helper()
	return datasetBrowser{handlertest.Open(t, Datasets{Catalogue: sets})}
}

func (b datasetBrowser) open(path string) {
	b.T.Helper()
	b.Open(path)
	b.ready()
}

// ready waits for the page's script; before it has run, forms reload the page.
func (b datasetBrowser) ready() {
	b.T.Helper()
	b.Wait(`document.querySelectorAll('#grid a[tabindex="0"]').length`, "1")
}

// enter replaces the text of a field and presses Enter.
func (b datasetBrowser) enter(id, text string) {
	b.T.Helper()
	b.Focus("#" + id)
	b.Eval(`document.activeElement.select()`)
	b.Keys(text + kb.Enter)
}

const (
	shownImage = `new URL(document.getElementById("image").src).pathname.split("/").pop()`
	focusLabel = `document.activeElement.getAttribute("aria-label")`
)

// TestDatasetByKeyboard uses every control of the page by keyboard alone.
func TestDatasetByKeyboard(t *testing.T) {
	b := openDatasetBrowser(t, builtIn(t))
	b.open(theSet + "?index=123456&grid=5") // shape 2, orientation 6

	b.Focus(part("range-shape"))
	b.Keys(kb.ArrowRight)
	b.Wait(shownImage, "123471.png")
	b.Wait(`location.search`, "?index=123471&grid=5")
	b.Wait(`document.querySelector('[data-testid="select-shape"]').value`, "3")
	b.Wait(`document.getElementById("tuple").value`, "2.5.7.1.3.6")

	b.Keys(kb.Tab) // to the strip, which is one tab stop at the current value
	b.Wait(focusLabel, "shape capsule")
	b.Keys(kb.ArrowLeft)
	b.Keys(kb.ArrowLeft)
	b.Wait(focusLabel, "shape cylinder")
	b.Keys(kb.Enter)
	b.Wait(shownImage, "123441.png")
	b.Keys(kb.Tab) // past the rest of the strip
	b.Wait(`document.activeElement.id`, "f-orientation")

	b.Focus("#grid a")
	b.Keys(kb.ArrowDown)
	b.Keys(kb.ArrowRight)
	tenth := b.Eval(`document.querySelectorAll("#grid a")[9].getAttribute("aria-label").split(" ")[1]`)
	b.Wait(focusLabel, "Image "+tenth)
	b.Keys(kb.Enter)
	b.Wait(shownImage, tenth+".png")
	b.Wait(`document.getElementById("said").textContent.startsWith("Image `+tenth+`: floor hue ")`, "true")

	b.Focus("#reroll")
	b.Keys(kb.Enter)
	b.Wait(`new URL(location.href).searchParams.get("grid")`, "6")
	b.Wait(`document.querySelector("#grid image").getAttribute("href")`, "/api/datasets/shapes3d-synthetic/grid.png?seed=6&n=64&columns=8")
	b.Do(chromedp.NavigateBack(), chromedp.NavigateBack())
	b.Wait(shownImage, "123441.png")
	b.Wait(`document.getElementById("seed").value`, "5")

	b.Wait(`[...document.querySelectorAll("main a, main input:not([type=hidden]), main select, main button")].filter((e) => e.tabIndex >= 0).length < 35`, "true")
}

// TestDatasetByPointer clicks, types and sends without reloading the page.
func TestDatasetByPointer(t *testing.T) {
	b := openDatasetBrowser(t, builtIn(t))
	b.open(theSet + "?index=123456")
	b.Eval(`window.loadedOnce = true`)

	b.Click(part("strip-wall_hue") + " li:nth-child(1) a")
	b.Wait(shownImage, "99456.png") // 5 · 4800 less
	b.Click("#random")
	b.Wait(shownImage+` !== "99456.png"`, "true")

	b.enter("tuple", "1.2.3.9.1.1")
	b.Wait(`document.getElementById("tuple-error").textContent`, "There is no class 9 of scale; its classes are 0 to 7.")
	b.Wait(`document.getElementById("tuple").value`, "1.2.3.9.1.1")
	b.Wait(`document.getElementById("tuple").getAttribute("aria-invalid")`, "true")
	b.enter("index", "42")
	b.Wait(shownImage, "42.png")
	b.Wait(`document.getElementById("tuple-error").textContent`, "")
	b.Wait(`window.loadedOnce`, "true")

	// A is kept when B is sent, because the tab remembers the pair.
	b.Eval(`(document.getElementById("send-a").addEventListener("click", (e) => e.preventDefault()), document.getElementById("send-a").click())`)
	b.Click(part("strip-shape") + " li:nth-child(1) a")
	b.Wait(`document.querySelector("#send-b").getAttribute("href")`, "/play?a=42&dataset=shapes3d-synthetic&b=12")
}

// TestAddInBrowser adds a user's file through the form, waits until it is ready, and browses it. Some combinations have no image.
func TestAddInBrowser(t *testing.T) {
	sets := builtIn(t)
	path := ownFile(t)
	b := openDatasetBrowser(t, sets)
	b.Open("/datasets")
	b.enter("from", "/no/such.npz")
	b.Wait(`document.getElementById("from-error")?.textContent`, "There is no file or folder /no/such.npz on this machine.")
	b.Wait(`document.getElementById("from")?.value`, "/no/such.npz")
	b.enter("from", path)
	b.Wait(`document.querySelector("#own h2 a")?.textContent`, "own")
	b.Eval(`document.querySelector("#own h2 a")?.click()`) // the list may be redrawn at any moment
	b.ready()
	b.Wait(`document.querySelector('[data-testid="incomplete"]') !== null`, "true")
	b.Wait(`document.querySelectorAll('[data-testid="strip-factor_1"] a[aria-disabled]').length`, "1")
	b.Eval(`window.loadedOnce = true`)
	b.enter("index", "3")
	b.Wait(shownImage, "3.png")
	b.Wait(`document.getElementById("tuple").value`, "1.0")

	b.Focus(part("range-factor_1"))
	b.Keys(kb.ArrowRight) // 1.1 has no image: stays, because 0 and 2 are equally near
	b.Keys(kb.End)
	b.Wait(`document.getElementById("tuple").value`, "1.2")
	b.Wait(shownImage, "4.png")
	b.enter("tuple", "1.1")
	b.Wait(`document.getElementById("tuple-error").textContent`, "Own has no image with factor_0 1, factor_1 1.")
	b.Wait(`document.querySelector('[data-testid="strip-factor_1"] a[aria-current]').getAttribute("aria-label")`, "factor 1 2")
	b.Wait(`window.loadedOnce`, "true")

	b.enter("select", "factor_0=0")
	b.Wait(`document.querySelector('[data-testid="rest"]')?.textContent`, "own[not(factor_0=0)]")
	b.enter("part-name", "zeros")
	b.Wait(`document.querySelector("#zeros h2 a")?.textContent`, "zeros")
}

// TestPreviewByKeyboard previews an ambiguous file, chooses its arrays, and adds it, by keyboard alone.
func TestPreviewByKeyboard(t *testing.T) {
	sets := builtIn(t)
	path := npzFile(t, map[string]string{"a": "(1, 64, 64)", "b": "(1, 64, 64)"}, map[string][]byte{"a": make([]byte, 64*64), "b": bytes.Repeat([]byte{200}, 64*64)})
	b := openDatasetBrowser(t, sets)
	b.Open("/datasets")
	b.Focus("#from")
	b.Keys(path)
	b.Focus(part("preview"))
	b.Keys(kb.Enter)
	b.Wait(`document.getElementById("images-error")?.textContent.includes("2 arrays")`, "true")
	b.Wait(`location.hash`, "#add")
	b.Focus("#images")
	b.Keys("b")
	b.Focus(part("preview"))
	b.Keys(kb.Enter)
	b.Wait(`document.querySelector('[data-testid="preview-images"]')?.naturalWidth`, "64")
	b.Wait(`document.querySelector('[data-testid="preview-used"]').innerText`, "images: b, 1 × 64 × 64 of uint8")
	b.enter("as", "bright")
	b.Wait(`document.querySelector("#bright h2 a")?.textContent`, "bright")
}
