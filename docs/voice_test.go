package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// gone are turns of phrase that readers stumbled over, each with what the program says instead.
var gone = map[string]string{
	`ended without a word`:                       "exited unexpectedly",
	`[Ll]ast heard of`:                           "last update",
	`is one argument too many`:                   "unexpected argument",
	`are not told apart`:                         "lose precision as float64",
	`it is no (HDF5|Parquet|zip|gzip|MATLAB)`:    "not a … file",
	`, the (least|most) allowed`:                 "below the minimum, above the maximum",
	`codes? come back`:                           "codes are preserved",
	`the same command goes on`:                   "run the same command to resume",
	`as far as they are here`:                    "the ones that are installed",
	`[Ww]hat was sent`:                           "the request, the file",
	`This does not work as it stands`:            "Some entries are invalid",
	`[Nn]ot in the present state`:                "Conflict",
	`is a websocket: it answers`:                 "is a WebSocket endpoint",
	`[Ss]hips with Slotscope`:                    "Demo model",
	`says no configuration`:                      "has no configuration",
	`Something went wrong here`:                  "Internal error",
	`their own factor alone`:                     "only the slot's own factor",
	`(not|is not|are not) there any more`:        "no longer exists",
	`must be got by hand`:                        "must be downloaded by hand",
	`How much noise does it bear`:                "How robust is it to noise?",
	`autoencoders that keep an image`:            "autoencoders that pack an image",
	`(did not|without) say(ing)? why`:            "without a message",
	`is no (set of|tensor|comparison|name of)`:   "is not a …",
	`of no format that is read`:                  "unsupported format",
	`for it did not answer|does not answer (it)`: "did not respond",
}

// TestVoice: no page, message, help text or document says what is gone.
func TestVoice(t *testing.T) {
	spoken := map[string]bool{".go": true, ".templ": true, ".js": true, ".md": true, ".c": true, ".h": true, ".sh": true, ".css": true}
	phrases := map[*regexp.Regexp]string{}
	for phrase, instead := range gone {
		phrases[regexp.MustCompile(phrase)] = instead
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "vendor" || e.Name() == "node_modules" || e.Name() == "testdata" || path == "docs/measurements"):
			return filepath.SkipDir
		case e.IsDir() || !spoken[filepath.Ext(path)] || strings.HasSuffix(path, "_templ.go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for phrase, instead := range phrases {
			for _, at := range phrase.FindAllIndex(text, -1) {
				t.Errorf("%s:%d: %q: say %q", path, 1+strings.Count(string(text[:at[0]]), "\n"), text[at[0]:at[1]], instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
