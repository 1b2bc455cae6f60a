package play_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
	"slotscope/model/play"
)

// uncounted returns a playground of the trained model with a separate cache, where nothing is counted yet.
func uncounted(t *testing.T) playground {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	p.key = key
	return p
}

// While codes are first being counted, the playground opens with one pair. It shows a message once it opens with another.
func TestFirstPairStaysUntilAnotherIsSaid(t *testing.T) {
	handlertest.NeedsBrowser(t)
	p := uncounted(t)
	b := browse(t, p, 1280, 900)
	b.open("/play/" + p.key)
	first := b.Eval(pairOfThePage)
	again := p.begins()
	if status, _ := p.counted(); status == http.StatusAccepted && again != first {
		t.Errorf("while codes are counted, the playground opens with %s, but on the first visit with %s", again, first)
	}
	b.waitFor("usage")
	_, pair := p.counted()
	truest := fmt.Sprint(pair.A, " ", pair.B)
	if truest == first {
		t.Fatalf("the pair %s is already the one with the most hits, so the test checks nothing", first)
	}
	b.Wait(`document.getElementById('truest').innerText`, fmt.Sprintf("The playground now opens with images %d and %d: %d of their %d group swaps are hits.", pair.A, pair.B, pair.Hits, pair.Groups))
	if got := b.Eval(pairOfThePage); got != first {
		t.Errorf("counting replaced %[2]s by %[1]s", got, first)
	}
	b.Eval(`void document.querySelector('#truest a').click()`)
	b.Wait(`document.getElementById('truest').hidden && `+pairOfThePage, truest)
	if got := p.begins(); got != truest {
		t.Errorf("after counting, the playground opens with %s, want %s", got, truest)
	}
}

// A user who leaves before the first count is complete is told once on return that the playground opens with another pair.
func TestPairOfTheLastVisit(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	p := uncounted(t)
	b := browse(t, p, 1280, 900)
	b.BeforePages(`const plain = fetch; window.fetch = (address, ...rest) => (String(address).endsWith('/usage') ? new Promise(() => {}) : plain(address, ...rest));`) // usage never arrives before the user leaves
	b.open("/play?checkpoint=" + p.key)
	first := b.Eval(pairOfThePage)
	b.Do(chromedp.Navigate("about:blank"))
	b.waitFor("usage")
	_, pair := p.counted()
	b.open("/play?checkpoint=" + p.key)
	b.Wait(pairOfThePage, fmt.Sprint(pair.A, " ", pair.B))
	b.Wait(`document.getElementById('truest').innerText`, "Counting has finished since your last visit. The playground now opens with this pair, which has the most swap hits; before, it opened with images "+strings.Replace(first, " ", " and ", 1)+".")
	b.Eval(`void document.querySelector('#truest a').click()`)
	b.Wait(pairOfThePage+` + document.getElementById('truest')?.hidden`, first+"true")
	b.open("/play?checkpoint=" + p.key)
	b.Wait(`document.getElementById('truest').hidden`, "true")
}

// pairOfThePage evaluates to the images that the page shows.
const pairOfThePage = `((q) => q.get('a') + ' ' + q.get('b'))(new URLSearchParams(location.search))`

// begins returns the pair that the playground opens with.
func (p playground) begins() string {
	p.t.Helper()
	reply, err := http.Get(p.url + "/play?checkpoint=" + p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	defer reply.Body.Close()
	q := reply.Request.URL.Query()
	return q.Get("a") + " " + q.Get("b")
}

// counted returns the status of counting and, once complete, its pair.
func (p playground) counted() (status int, pair play.TruePair) {
	p.t.Helper()
	reply, err := http.Get(p.url + "/api/play/" + p.key + "/usage")
	if err != nil {
		p.t.Fatal(err)
	}
	defer reply.Body.Close()
	body := struct{ Usage struct{ Pair *play.TruePair } }{}
	body.Usage.Pair = &pair
	if err := json.NewDecoder(reply.Body).Decode(&body); err != nil {
		p.t.Fatal(err)
	}
	return reply.StatusCode, pair
}
