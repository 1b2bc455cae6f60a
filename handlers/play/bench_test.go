package play_test

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/model/expect"
	"slotscope/model/format/checkpoint"
	"slotscope/model/shipped"
)

var figures = flag.Bool("figures", false, "also benchmark the playground with a small model")

// The benchmark measures every path in the playground page. With -v it prints the results, with -figures also those of a small model. Their
// values are not tested, because they depend on the machine's load.
func TestBenchmark(t *testing.T) {
	if !*figures {
		expect.Long(t)
	}
	handlertest.NeedsBrowser(t)
	t.Run("tiny", func(t *testing.T) {
		dir := t.TempDir()
		benchmark(t, dir, handlertest.WriteTiny(t, dir))
	})
	if !*figures {
		return
	}
	t.Run("small", func(t *testing.T) {
		dir := t.TempDir()
		benchmark(t, dir, placeShipped(t, dir))
	})
}

// placeShipped copies the first shipped run to a data folder and returns the key of its checkpoint.
func placeShipped(t *testing.T, dir string) (key string) {
	t.Helper()
	run := shipped.Runs()[0]
	folder := filepath.Join(dir, "runs", run.ID)
	if err := os.CopyFS(folder, run.Files); err != nil {
		t.Fatal(err)
	}
	name, err := run.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := checkpoint.Hash(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return sum[:16]
}

func benchmark(t *testing.T, dir, key string) {
	p := playgroundIn(t, dir, "hrr")
	p.key = key
	b := browse(t, p, 1280, 800)
	b.waitFor("usage")
	b.Do(chromedp.Navigate(p.url + "/play/" + key + "?bench"))
	b.WaitWithin(4*time.Minute, `document.querySelector('[data-testid=play-bench]')?.dataset.ready`, "yes")
	rows := `[...document.querySelectorAll('[data-testid=play-bench] tr')].slice(1)`
	b.Wait(rows+`.filter((r) => /^[0-9.]+ ms$/.test(r.cells[2].textContent) && Number(r.cells[3].textContent) >= 24).length >= 1`, "true")
	t.Log(b.Eval(`document.querySelector('[data-testid=play-bench]').innerText`))
}

// The layout does not shift while the playground loads, with or without a warm browser cache.
func TestNothingShifts(t *testing.T) {
	expect.Long(t)
	handlertest.NeedsBrowser(t)
	dir := t.TempDir()
	key := handlertest.WriteTiny(t, dir)
	p := playgroundIn(t, dir, "hrr")
	b := browse(t, p, 1280, 800)
	b.key = key
	b.waitFor("usage")
	b.BeforePages(`window.shift = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) if (!e.hadRecentInput) window.shift += e.value; }).observe({ type: 'layout-shift', buffered: true });`)
	for range 2 {
		b.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+"/play/"+key+"?a=171626&b=309998"))
		b.decodes()
		b.Wait(`[...document.querySelectorAll('.groupswaps .fact')].filter((e) => /hit/.test(e.textContent)).length`, "6")
		b.Wait(`window.shift < 0.01 || window.shift`, "true") // up to 0.1 is considered good
	}
}

var (
	loaded   = regexp.MustCompile(`(?:src|href)="(/static/[^"]+\.(?:js|css))"`)
	imports  = regexp.MustCompile(`(?:^|\n)(?:import|export) [^;]*?from '([^']+)'`)
	sizeMost = 120_000
)

// The first view of the playground, without the model's weights and images, is small.
func TestFirstViewIsSmall(t *testing.T) {
	p := newPlayground(t)
	total, seen := 0, map[string]bool{}
	var take func(address string)
	take = func(address string) {
		if seen[address] {
			return
		}
		seen[address] = true
		small, text := p.compressed(address)
		total += small
		for _, m := range loaded.FindAllStringSubmatch(text, -1) {
			take(m[1])
		}
		for _, m := range imports.FindAllStringSubmatch(text, -1) {
			take(path.Join(path.Dir(address), m[1]))
		}
	}
	take("/play/" + p.key + "?" + playState)
	if len(seen) < 20 {
		t.Errorf("found only %d files", len(seen))
	}
	t.Logf("%d files of %d bytes, compressed", len(seen), total)
	if total > sizeMost {
		t.Errorf("total size is %d bytes, want at most %d", total, sizeMost)
	}
}

// compressed returns the gzipped size of a reply in bytes, and its text.
func (p playground) compressed(address string) (int, string) {
	p.t.Helper()
	sizes := map[string][]byte{}
	for _, encoding := range []string{"gzip", "identity"} {
		req, err := http.NewRequestWithContext(p.t.Context(), "GET", p.url+address, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", encoding)
		reply, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			p.t.Fatal(err)
		}
		defer reply.Body.Close()
		if sizes[encoding], err = io.ReadAll(reply.Body); err != nil || reply.StatusCode != http.StatusOK {
			p.t.Fatalf("%s: %s, %v", address, reply.Status, err)
		}
	}
	return len(sizes["gzip"]), strings.TrimSpace(string(sizes["identity"]))
}
