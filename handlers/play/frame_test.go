package play_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
)

// The page itself draws a table of swaps that is fast to decode, in the frame of the edit; a slower one is left to workers.
func TestTableIsDrawnWithTheEdit(t *testing.T) {
	handlertest.NeedsBrowser(t)
	p := newPlayground(t)
	for _, c := range []struct {
		name    string
		picture int // ms, as reported by the worker
		here    bool
	}{{"quick", 1, true}, {"slow", 20, false}} {
		t.Run(c.name, func(t *testing.T) {
			p := p
			p.t = t
			b := browse(t, p, 1280, 800)
			b.waitFor("usage")
			b.BeforePages(fmt.Sprintf(`{
				const { get } = Object.getOwnPropertyDescriptor(MessageEvent.prototype, 'data');
				Object.defineProperty(MessageEvent.prototype, 'data', { get() {
					const data = get.call(this);
					if (data?.ready) data.ready.picture = %d;
					return data;
				} });
				const post = Worker.prototype.postMessage;
				const { Instance } = WebAssembly;
				WebAssembly.Instance = function (...args) { window.held = true; return new Instance(...args); };
				window.tables = 0;
				Worker.prototype.postMessage = function (m, ...more) {
					if (m.lane === 'strip' && m.jobs.length) window.tables++;
					return post.call(this, m, ...more);
				};
			}`, c.picture))
			b.Do(chromedp.Navigate(p.url + "/play/" + p.key + "?" + playState))
			b.decodes()
			b.Wait(`document.getElementById('grid').hasAttribute('data-waiting')`, "false")
			b.Wait(`window.held === undefined`, "true") // the first view is left to workers
			b.Eval(`void dispatchEvent(new PointerEvent('pointermove'))`)
			if c.here {
				b.Wait(`window.held`, "true")
			}
			b.Eval(`window.tables = 0`)
			b.Eval(`(() => { window.before = document.querySelector('[data-testid="play-slot-a-0"]').dataset.code;
				document.querySelector('.swaps .shot').click();
				requestAnimationFrame(() => { window.late = document.getElementById('grid').hasAttribute('data-waiting'); }); })()`)
			b.Wait(`window.late !== undefined && !document.getElementById('grid').hasAttribute('data-waiting')`, "true")
			b.Wait(`document.querySelector('[data-testid="play-slot-a-0"]').dataset.code !== window.before`, "true")
			if c.here {
				b.Wait(`[window.tables, window.late].join()`, "0,false")
			} else {
				b.Wait(`window.tables > 0`, "true")
			}
		})
	}
}
