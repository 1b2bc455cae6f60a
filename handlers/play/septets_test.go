package play

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slotscope/static"
)

// Septets encode any bytes, without characters that HTML would alter.
func TestSeptets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for length := range 300 {
		raw := make([]byte, length)
		for i := range raw {
			raw[i] = byte(rng.Uint32())
			if length%3 == 0 {
				for range 2 { // many zeros
					raw[i] &= byte(rng.Uint32())
				}
			}
		}
		text := septets(raw)
		if strings.ContainsAny(text, "\x00\n\r<") {
			t.Fatalf("the encoding of %d bytes has a forbidden character: %q", length, text)
		}
		if got := bytesOf(text, length); !bytes.Equal(got, raw) {
			t.Fatalf("%d bytes decode to %v, want %v", length, got, raw)
		}
	}
	if n := len(septets(bytes.Repeat([]byte{0x5a, 0xc3}, 5000))); n > 11800 {
		t.Errorf("10,000 bytes encode to %d", n)
	}
}

// bytesOf decodes septets like static/play/boot.js.
func bytesOf(text string, length int) []byte {
	out, bits, held := make([]byte, 0, length), uint32(0), 0
	put := func(v byte) {
		bits, held = bits<<7|uint32(v), held+7
		if held >= 8 && len(out) < length {
			held -= 8
			out = append(out, byte(bits>>held))
		}
	}
	for _, c := range text {
		if c < 128 {
			put(byte(c))
			continue
		}
		put(forbidden[(c-160)>>7])
		put(byte(c-160) & 127)
	}
	return out
}

// bare removes comments on lines of their own and indentation, and nothing else.
func TestBare(t *testing.T) {
	const source = "// first\nconst a = 'http://x'; // stays\n\n  /** of b\n   * in lines */\n  b(a /* stays */);\n/* all */\nc `\n\\`;\n"
	if got, want := bare(source), "const a = 'http://x'; // stays\n\nb(a /* stays */);\nc `\n\\`;\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	names, err := fs.Glob(static.Files(), "play/*.js")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		script, err := fs.ReadFile(static.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(script)) {
			if strings.Count(line, "`")%2 != 0 {
				t.Errorf("%s: frozen pages lose the indentation within a multi-line template literal: %s", name, line)
			}
		}
	}
}

// The page in docs has the scripts and the codec of this version.
func TestShippedPageIsCurrent(t *testing.T) {
	raw, err := os.ReadFile("../../docs/playground.html")
	if err != nil {
		t.Fatal(err)
	}
	blob := func(name string) []byte {
		_, rest, _ := strings.Cut(string(raw), fmt.Sprintf(`id="blob:%s" data-length="`, name))
		length, rest, _ := strings.Cut(rest, `">`)
		text, _, ok := strings.Cut(rest, "</script>")
		n, err := strconv.Atoi(length)
		if err != nil || !ok {
			t.Fatalf("no %s in the page: %v", name, err)
		}
		out, err := io.ReadAll(flate.NewReader(bytes.NewReader(bytesOf(text, n))))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	file := func(name string) string {
		raw, err := fs.ReadFile(static.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	var page struct{ Scripts map[string]string }
	if err := json.Unmarshal(blob("page"), &page); err != nil {
		t.Fatal(err)
	}
	want, err := (Freezer{Static: static.Files()}).scripts()
	if err != nil {
		t.Fatal(err)
	}
	var old []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if page.Scripts[name] != want[name] {
			old = append(old, name)
		}
	}
	if string(blob("codec.wasm")) != file("play/codec.wasm") {
		old = append(old, "play/codec.wasm")
	}
	if !strings.HasSuffix(string(raw), "<script>\n"+file("play/boot.js")+"</script>\n</body>\n</html>\n") {
		old = append(old, "play/boot.js")
	}
	if len(page.Scripts) != len(want) || len(old) > 0 {
		t.Errorf("docs/playground.html has %d scripts, and %d of this version; other versions of %v: run slotscope freeze --out docs/playground.html", len(page.Scripts), len(want), old)
	}
}
