package dataset

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/go-chi/chi/v5"

	"slotscope/static"
	"slotscope/views"
)

// datasetBrowser opens the datasets' pages in a real browser.
type datasetBrowser struct {
	t   *testing.T
	ctx context.Context
	url string
}

func openDatasetBrowser(t *testing.T, sets DatasetCatalogue) datasetBrowser {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("chromium is not installed here, so the page's script goes untested")
	}
	assets, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Get(static.Prefix+"*", assets.ServeHTTP)
	Datasets{Catalogue: sets}.Routes(r)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	before := views.ImportMap
	views.ImportMap = `{"imports":{}}`
	t.Cleanup(func() { views.ImportMap = before })
	ctx, stop := chromedp.NewExecAllocator(t.Context(), chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true), chromedp.WindowSize(1280, 900))
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, time.Minute)
	t.Cleanup(stop)
	return datasetBrowser{t, ctx, server.URL}
}

func (b datasetBrowser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b datasetBrowser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
	b.ready()
}

// ready waits for the script of a set's page: until it has run, a form there loads the page again.
func (b datasetBrowser) ready() {
	b.t.Helper()
	b.see(`document.querySelectorAll('#grid a[tabindex="0"]').length`, "1")
}

func (b datasetBrowser) eval(js string) string {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+js+")"))
	for range 20 { // while a page is left, nothing can be evaluated in it
		if err == nil || !strings.Contains(err.Error(), "-32000") {
			break
		}
		time.Sleep(50 * time.Millisecond)
		got, err = chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+js+")"))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return got
}

// see waits until an expression has a value.
func (b datasetBrowser) see(js, want string) {
	b.t.Helper()
	var got string
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if got = b.eval(js); got == want {
			return
		}
	}
	b.t.Fatalf("%s is %q, want %q", js, got, want)
}

func (b datasetBrowser) key(keys string) { b.t.Helper(); b.do(chromedp.KeyEvent(keys)) }

// enter replaces what a field holds and presses Enter.
func (b datasetBrowser) enter(id, text string) {
	b.t.Helper()
	b.eval(`document.getElementById("` + id + `").select()`)
	b.key(text + kb.Enter)
}

const (
	shownImage = `new URL(document.getElementById("image").src).pathname.split("/").pop()`
	focusLabel = `document.activeElement.getAttribute("aria-label")`
)

// TestDatasetByKeyboard reaches and works every control of the page without a pointer.
func TestDatasetByKeyboard(t *testing.T) {
	b := openDatasetBrowser(t, builtIn(t))
	b.open(theSet + "?index=123456&grid=5") // shape 2, orientation 6

	b.do(chromedp.Focus(chromedp.CSS(part("range-shape"))))
	b.key(kb.ArrowRight)
	b.see(shownImage, "123471.png")
	b.see(`location.search`, "?index=123471&grid=5")
	b.see(`document.querySelector('[data-testid="select-shape"]').value`, "3")
	b.see(`document.getElementById("tuple").value`, "2.5.7.1.3.6")

	b.key(kb.Tab) // on to the strip: one stop, at the value shown
	b.see(focusLabel, "shape capsule")
	b.key(kb.ArrowLeft)
	b.key(kb.ArrowLeft)
	b.see(focusLabel, "shape cylinder")
	b.key(kb.Enter)
	b.see(shownImage, "123441.png")
	b.key(kb.Tab) // past the rest of the strip
	b.see(`document.activeElement.id`, "f-orientation")

	b.do(chromedp.Focus(chromedp.CSS("#grid a")))
	b.key(kb.ArrowDown)
	b.key(kb.ArrowRight)
	tenth := b.eval(`document.querySelectorAll("#grid a")[9].getAttribute("aria-label").split(" ")[1]`)
	b.see(focusLabel, "Image "+tenth)
	b.key(kb.Enter)
	b.see(shownImage, tenth+".png")
	b.see(`document.getElementById("said").textContent.startsWith("Image `+tenth+`: floor hue ")`, "true")

	b.do(chromedp.Focus(chromedp.CSS("#reroll")))
	b.key(kb.Enter)
	b.see(`new URL(location.href).searchParams.get("grid")`, "6")
	b.see(`document.querySelector("#grid image").getAttribute("href")`, "/api/datasets/shapes3d-synthetic/grid.png?seed=6&n=64&columns=8")
	b.do(chromedp.NavigateBack(), chromedp.NavigateBack())
	b.see(shownImage, "123441.png")
	b.see(`document.getElementById("seed").value`, "5")

	b.see(`[...document.querySelectorAll("main a, main input:not([type=hidden]), main select, main button")].filter((e) => e.tabIndex >= 0).length < 35`, "true")
}

// TestDatasetByPointer clicks, types and sends; the page is never loaded again on the way.
func TestDatasetByPointer(t *testing.T) {
	b := openDatasetBrowser(t, builtIn(t))
	b.open(theSet + "?index=123456")
	b.eval(`window.loadedOnce = true`)

	b.do(chromedp.Click(chromedp.CSS(part("strip-wall_hue") + " li:nth-child(1) a")))
	b.see(shownImage, "99456.png") // 5 · 4800 less
	b.do(chromedp.Click(chromedp.CSS("#random")))
	b.see(shownImage+` !== "99456.png"`, "true")

	b.enter("tuple", "1.2.3.9.1.1")
	b.see(`document.getElementById("tuple-error").textContent`, "There is no class 9 of scale; its classes are 0 to 7.")
	b.see(`document.getElementById("tuple").value`, "1.2.3.9.1.1")
	b.see(`document.getElementById("tuple").getAttribute("aria-invalid")`, "true")
	b.enter("index", "42")
	b.see(shownImage, "42.png")
	b.see(`document.getElementById("tuple-error").textContent`, "")
	b.see(`window.loadedOnce`, "true")

	// A sent first is still A when B is sent: this tab remembers the pair.
	b.eval(`(document.getElementById("send-a").addEventListener("click", (e) => e.preventDefault()), document.getElementById("send-a").click())`)
	b.do(chromedp.Click(chromedp.CSS(part("strip-shape") + " li:nth-child(1) a")))
	b.see(`document.querySelector("#send-b").getAttribute("href")`, "/play?a=42&dataset=shapes3d-synthetic&b=12")
}

// TestAddInBrowser adds a visitor's own file through the form, sees it become ready, and browses it: some combinations have no image.
func TestAddInBrowser(t *testing.T) {
	sets := builtIn(t)
	path := ownFile(t)
	b := openDatasetBrowser(t, sets)
	b.do(chromedp.Navigate(b.url + "/datasets"))
	b.enter("from", "/no/such.npz")
	b.see(`document.getElementById("from-error")?.textContent`, "There is no file or folder /no/such.npz on this machine.")
	b.see(`document.getElementById("from")?.value`, "/no/such.npz")
	b.enter("from", path)
	b.see(`document.querySelector("#own h2 a")?.textContent`, "own")
	b.eval(`document.querySelector("#own h2 a")?.click()`) // the list may be drawn anew at any moment
	b.ready()
	b.see(`document.querySelector('[data-testid="incomplete"]') !== null`, "true")
	b.see(`document.querySelectorAll('[data-testid="strip-factor_1"] a[aria-disabled]').length`, "1")
	b.eval(`window.loadedOnce = true`)
	b.enter("index", "3")
	b.see(shownImage, "3.png")
	b.see(`document.getElementById("tuple").value`, "1.0")

	b.do(chromedp.Focus(chromedp.CSS(part("range-factor_1"))))
	b.key(kb.ArrowRight) // 1.1 is not there: stays, for 0 and 2 are as near
	b.key(kb.End)
	b.see(`document.getElementById("tuple").value`, "1.2")
	b.see(shownImage, "4.png")
	b.enter("tuple", "1.1")
	b.see(`document.getElementById("tuple-error").textContent`, "Own has no image with factor_0 1, factor_1 1.")
	b.see(`document.querySelector('[data-testid="strip-factor_1"] a[aria-current]').getAttribute("aria-label")`, "factor 1 2")
	b.see(`window.loadedOnce`, "true")

	b.enter("select", "factor_0=0")
	b.see(`document.querySelector('[data-testid="rest"]')?.textContent`, "own[not(factor_0=0)]")
	b.enter("part-name", "zeros")
	b.see(`document.querySelector("#zeros h2 a")?.textContent`, "zeros")
}
