package play_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
)

// atlasSite is a site with a small trained model whose run has two checkpoints with the same weights.
func atlasSite(t *testing.T) playground {
	t.Helper()
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	var about struct{ Checkpoint struct{ Run string } }
	p.getJSON("/api/play/"+key, &about)
	folder := filepath.Join(dir, "runs", about.Checkpoint.Run, "checkpoints")
	raw, err := os.ReadFile(filepath.Join(folder, "step-000020000.safetensors"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "step-000010000.safetensors"), raw, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.key = key
	return p
}

// waitFor polls an API until its background work is complete.
func (p playground) waitFor(what string) {
	for status := 0; status != http.StatusOK; time.Sleep(20 * time.Millisecond) {
		reply, _ := p.get("/api/play/" + p.key + "/" + what)
		status = reply.StatusCode
	}
}

func TestAtlas(t *testing.T) {
	p := atlasSite(t)
	p.waitFor("atlas/0")
	var slot struct {
		Images  int
		Entries []struct{ Code, Count int }
		Slot    struct{ Name string }
	}
	p.getJSON("/api/play/"+p.key+"/atlas/8", &slot)
	total := 0
	for _, e := range slot.Entries {
		total += e.Count
	}
	if slot.Images != 4096 || total != slot.Images || len(slot.Entries) < 2 || slot.Entries[0].Count < slot.Entries[1].Count {
		t.Fatalf("%d images, %d counted: %+v", slot.Images, total, slot.Entries)
	}
	code := slot.Entries[0]
	at := "/atlas/8/" + strconv.Itoa(code.Code)
	var reply struct {
		Carriers []int
		Values   []struct {
			Values []struct{ Value, Low, High float64 }
		}
		Neighbours []struct{ Distance float64 }
		Life       []struct{ Share float64 }
	}
	p.getJSON("/api/play/"+p.key+at, &reply)
	if len(reply.Carriers) != code.Count || len(reply.Values) != 6 || len(reply.Neighbours) != 8 || len(reply.Life) != 2 || reply.Life[0] != reply.Life[1] {
		t.Errorf("%d carriers, %d factors, %d neighbours, life %v", len(reply.Carriers), len(reply.Values), len(reply.Neighbours), reply.Life)
	}
	for _, f := range reply.Values {
		sum := 0.0
		for _, v := range f.Values {
			if sum += v.Value; v.Low > v.Value || v.High < v.Value {
				t.Errorf("%+v", v)
			}
		}
		if sum < 0.999 || sum > 1.001 {
			t.Errorf("probabilities add up to %v", sum)
		}
	}
	var usage struct {
		Usage struct{ Counts [][]int }
	}
	p.waitFor("usage")
	p.getJSON("/api/play/"+p.key+"/usage", &usage)
	if got := usage.Usage.Counts[8][code.Code]; got != code.Count {
		t.Errorf("%d images counted, but %d in the atlas", got, code.Count)
	}

	form := url.Values{"name": {"<i>big</i>"}}
	if reply, raw := p.ask("POST", "/play/"+p.key+at, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, strings.NewReader(form.Encode())); reply.StatusCode != http.StatusSeeOther {
		t.Fatalf("naming: %s %s", reply.Status, raw)
	}
	doc := p.page("/play/" + p.key + at)
	if got := doc.Find("h1").Text(); !strings.Contains(got, "<i>big</i>") {
		t.Errorf("the code's heading is %q", got)
	}
	if n := doc.Find(testID("atlas-images") + " img").Length(); n != min(24, code.Count) {
		t.Errorf("%d images", n)
	}
	if doc.Find(testID("atlas-meaning")+" tr[data-own]").Length() == 0 || doc.Find("figure svg").Length() < 2 || doc.Find(testID("atlas-neighbours")+" li").Length() != 8 {
		t.Errorf("the page is incomplete: %s", doc.Find(".atlas").Text())
	}
	if got := doc.Find(testID("atlas-born")).Text(); got != "First used at step 10,000, still used at step 20,000 (2 checkpoints, 512 images each)." {
		t.Errorf("born: %q", got)
	}
	form.Set("name", strings.Repeat("x", 61))
	if reply, raw := p.ask("POST", "/play/"+p.key+at, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, strings.NewReader(form.Encode())); reply.StatusCode != http.StatusOK || !strings.Contains(string(raw), "use at most 60") {
		t.Errorf("a long name: %s", reply.Status)
	}
	for path, status := range map[string]int{"/atlas/9": 404, "/atlas/0/100000": 404, "/atlas/x": 404, "/atlas/0/-1": 404, "/atlas": 200} {
		if reply, _ := p.get("/play/" + p.key + path); reply.StatusCode != status {
			t.Errorf("%s: %s", path, reply.Status)
		}
	}
	reply2, _ := p.get("/play/" + handlertest.RunID + "/atlas/1/2")
	if to := reply2.Header.Get("Location"); !strings.HasSuffix(to, "/atlas/1/2") || strings.Contains(to, handlertest.RunID) {
		t.Errorf("a run's atlas redirects to %q", to)
	}
}

// For a model with only one checkpoint, the atlas explains why a code's history is unknown.
func TestAtlasOfOneCheckpoint(t *testing.T) {
	p := newPlayground(t)
	const sentence = "This model has only one checkpoint (step 250), so its history over training is unknown."
	p.waitFor("atlas/0")
	if got := p.page("/play/" + p.key + "/atlas/0/1").Find(testID("atlas-born")).Text(); got != sentence {
		t.Errorf("%q", got)
	}
}

// The page updates while images are encoded, and the palette links to it.
func TestAtlasFillsItself(t *testing.T) {
	p := newPlayground(t)
	b := browse(t, p, 1280, 900)
	b.Do(chromedp.Navigate(p.url + "/play/" + p.key + "/atlas/1"))
	b.Wait(`document.querySelector('.atlas:not([data-waiting])') && document.querySelectorAll('[data-testid=atlas-codes] li').length > 0`, "true")
	b.open("/play/" + p.key + "?" + playState)
	b.Wait(`document.querySelector('[data-testid=play-atlas]').getAttribute('href')`, "/play/"+p.key+"/atlas/0/1")
	b.click("play-atlas")
	b.Wait(`location.pathname + ' ' + document.querySelectorAll('[data-testid=atlas-neighbours] li').length`, "/play/"+p.key+"/atlas/0/1 8")
}
