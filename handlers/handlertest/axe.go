package handlertest

import (
	"os"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Accessible fails the test if axe-core finds serious or critical violations on the open page, or if the page is wider than its window,
// at desktop and phone width, in light and dark mode.
func (b Browser) Accessible() {
	b.T.Helper()
	axe, err := os.ReadFile("../e2e/testdata/axe/axe.min.js") // tests run in their package's directory
	if err != nil {
		b.T.Fatal(err)
	}
	if b.Eval(`typeof window.axe`) == "undefined" {
		b.Eval(`(() => { ` + string(axe) + `; return 1; })()`)
	}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.Do(chromedp.EmulateViewport(width, 900))
			if _, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
				b.T.Fatal(err)
			}
			b.Wait(`document.getAnimations().some((a) => a instanceof CSSTransition && a.playState === 'running')`, "false") // wait for colour transitions
			b.Eval(`(() => { window.axeSays = null; window.axe.run().then((r) => { window.axeSays = r.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => v.id + ': ' + v.nodes.length + ' times: ' + v.nodes[0].html.slice(0, 200) + ' ' + v.nodes[0].failureSummary).join('\n') || 'nothing'; }); })()`)
			b.Wait(`window.axeSays !== null`, "true")
			if says := b.Eval(`window.axeSays`); says != "nothing" {
				b.T.Errorf("%d px, %s: %s", width, scheme, says)
			}
			if over := b.Eval(`Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)`); over != "0" {
				b.T.Errorf("at %d px the page is %s px wider than its window", width, over)
			}
		}
	}
}
