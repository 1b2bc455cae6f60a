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

// uncounted is a playground of the trained model in a folder of its own, where nothing is counted yet.
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

// While codes of a run are counted for the first time the playground begins with one pair, and says when from then on it begins with another.
func TestFirstPairStaysUntilAnotherIsSaid(t *testing.T) {
	handlertest.NeedsBrowser(t)
	p := uncounted(t)
	b := browse(t, p, 1280, 900)
	b.open("/play/" + p.key)
	first := b.Eval(pairOfThePage)
	again := p.begins()
	if status, _ := p.counted(); status == http.StatusAccepted && again != first {
		t.Errorf("while codes are counted the playground begins with %s, and at the first visit with %s", again, first)
	}
	b.waitFor("usage")
	_, pair := p.counted()
	truest := fmt.Sprint(pair.A, " ", pair.B)
	if truest == first {
		t.Fatalf("the pair %s is also the one with most hits, so nothing is tested", first)
	}
	b.Wait(`document.getElementById('truest').innerText`, fmt.Sprintf("From now on the playground begins with images %d and %d: swapping gives the true picture for %d of their %d groups.", pair.A, pair.B, pair.Hits, pair.Groups))
	if got := b.Eval(pairOfThePage); got != first {
		t.Errorf("the count put %s in the place of %s", got, first)
	}
	b.Eval(`void document.querySelector('#truest a').click()`)
	b.Wait(`document.getElementById('truest').hidden && `+pairOfThePage, truest)
	if got := p.begins(); got != truest {
		t.Errorf("after the count the playground begins with %s, want %s", got, truest)
	}
}

// A visitor who leaves before the first count ends is told on return that the playground begins with another pair, and only once.
func TestPairOfTheLastVisit(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	p := uncounted(t)
	b := browse(t, p, 1280, 900)
	b.BeforePages(`const plain = fetch; window.fetch = (address, ...rest) => (String(address).endsWith('/usage') ? new Promise(() => {}) : plain(address, ...rest));`) // it leaves before it is told
	b.open("/play?checkpoint=" + p.key)
	first := b.Eval(pairOfThePage)
	b.Do(chromedp.Navigate("about:blank"))
	b.waitFor("usage")
	_, pair := p.counted()
	b.open("/play?checkpoint=" + p.key)
	b.Wait(pairOfThePage, fmt.Sprint(pair.A, " ", pair.B))
	b.Wait(`document.getElementById('truest').innerText`, "All codes have been counted since your last visit. The playground now begins with this pair, whose swaps give the true picture most often; before, it began with images "+strings.Replace(first, " ", " and ", 1)+".")
	b.Eval(`void document.querySelector('#truest a').click()`)
	b.Wait(pairOfThePage+` + document.getElementById('truest')?.hidden`, first+"true")
	b.open("/play?checkpoint=" + p.key)
	b.Wait(`document.getElementById('truest').hidden`, "true")
}

// pairOfThePage are the images that a page shows.
const pairOfThePage = `((q) => q.get('a') + ' ' + q.get('b'))(new URLSearchParams(location.search))`

// begins is the pair that the playground begins with.
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

// counted is the status of the count, and once it is done its pair.
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
