package docs_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// gone are phrases that readers stumbled over, each with its replacement.
var gone = map[string]string{
	`ended without a word`:                                 "exited unexpectedly",
	`[Ll]ast heard of`:                                     "last update",
	`is one argument too many`:                             "unexpected argument",
	`are not told apart`:                                   "lose precision as float64",
	`it is no (HDF5|Parquet|zip|gzip|MATLAB)`:              "not a … file",
	`, the (least|most) allowed`:                           "below the minimum, above the maximum",
	`codes? come back`:                                     "codes are preserved",
	`the same command goes on`:                             "run the same command to resume",
	`as far as they are here`:                              "the ones that are installed",
	`[Ww]hat was sent`:                                     "the request, the file",
	`This does not work as it stands`:                      "Some entries are invalid",
	`[Nn]ot in the present state`:                          "Conflict",
	`[Nn]ot this way`:                                      "Method not allowed",
	`is a websocket: it answers`:                           "is a WebSocket endpoint",
	`[Ss]hips with Slotscope`:                              "Demo model",
	`says no configuration`:                                "has no configuration",
	`Something went wrong here`:                            "Internal error",
	`their own factor alone`:                               "only the slot's own factor",
	`(not|is not|are not) there any more`:                  "no longer exists",
	`must be got by hand`:                                  "must be downloaded by hand",
	`How much noise does it bear`:                          "How robust is it to noise?",
	`autoencoders that keep an image`:                      "autoencoders that pack an image",
	`(did not|without) say(ing)? why`:                      "without a message",
	`is no (set of|tensor|comparison|name of)`:             "is not a …",
	`of no format that is read`:                            "unsupported format",
	`(does|do|did) not answer`:                             "does not respond, did not respond",
	`was not reached`:                                      "could not be reached",
	`(says?|tells?|knows) (whether|if)\b`:                  "reports whether",
	`(nil|empty) (where|for none)\b`:                       "nil if, empty if",
	`(is|are|stays?) in (the|its) (error's )?chain`:        "the error wraps …",
	`in the error's chain`:                                 "an error that wraps …",
	`\bRoutes enters`:                                      "Routes registers",
	`neither true nor false`:                               "is not a boolean",
	`may be given again`:                                   "(repeatable)",
	`\bone's own\b`:                                        "your own",
	`question of your own`:                                 "your own",
	`\banew\b`:                                             "again, re-rendered, starts over",
	`[Hh]eld against`:                                      "compared with",
	`\b(stands?|stood) beside`:                             "is shown next to",
	`beside one another`:                                   "next to each other",
	`\bat work\b`:                                          "running",
	`\bunder way\b`:                                        "running",
	`puts? itself back into the queue`:                     "requeues itself",
	`exclude each other`:                                   "cannot be combined",
	`query chooses`:                                        "query matches",
	`Runs that are not counted`:                            "Excluded runs",
	`[Ff]orget the sweep`:                                  "Delete sweep",
	`Report, files`:                                        "Report",
	`in the place of`:                                      "instead of",
	`\bgone on with\b`:                                     "resumed",
	`\bfor want of\b`:                                      "for lack of",
	`\b[Ll]ikewise\b`:                                      "also, the same",
	`\band the like\b`:                                     "and so on",
	`\b[Ww]hoever\b`:                                       "everyone who",
	`\bheed\b`:                                             "respect",
	`where there (is|are) no\b`:                            "if there is no",
	`(what|which) (is|was) asked for`:                      "the request",
	`the least and the (greatest|most)`:                    "the minimum and maximum",
	`(Its|their|the) (runs|datasets) (stay|are) where`:     "Nothing was changed",
	`\b[Ww]hat (helps|comes of it|came of it|it is about)`: "what to do, the result, the subject",
}

// senses has one word for one thing: the pattern finds another word for it, and the value is the word that this program uses.
var senses = map[string]string{
	`\b[Vv]isitors?\b`:                        "user, or client for an HTTP client",
	`\b([Ll]atest|[Mm]ost recent) checkpoint`: "newest checkpoint",
	`[\w,;:] pictures?\b`:                     "image",
	`\b[Cc]odebook rows?\b`:                   "entry",
	`training left out`:                       "held out",
	`left out of training`:                    "held out",
	`\b[Hh]yper-parameters?\b`:                "hyperparameter",
	`metaparameter`:                           "hyperparameter",
	`\b[Dd]ata(-| )sets?\b`:                   "dataset",
	`\b[Cc]ode(-| )books?\b`:                  "codebook",
	`\b[Cc]heck(-| )points?\b`:                "checkpoint",
	`\b[Aa]uto(-| )encoders?\b`:               "autoencoder",
	`\b(images|steps|runs) a second\b`:        "per second",
	`\b[Aa]ims? of \d`:                        "target",
	`\b([Ll]earnt|[Mm]ended)\b`:               "learned, fixed",
}

// spared are files whose wording is not checked yet, with everything below them.
var spared = []string{"docs/measurements/study", "docs/measurements/field-tiny/report.md"}

// TestVoice checks that no page, message, help text, comment or document contains a phrase that is gone.
func TestVoice(t *testing.T) {
	phrases := compiled(gone)
	walkText(t, []string{".go", ".templ", ".js", ".md", ".c", ".h", ".sh", ".css"}, func(path string, text []byte) {
		reportPhrases(t, path, string(text), phrases)
	})
}

// TestSenses checks that documents, and comments and sentences of Go files, use one word for one thing.
func TestSenses(t *testing.T) {
	words := compiled(senses)
	walkText(t, []string{".go", ".md"}, func(path string, text []byte) {
		prose := string(text)
		if filepath.Ext(path) == ".go" {
			prose = goProse(path, text)
		}
		reportPhrases(t, path, prose, words)
	})
}

// TestGoProse checks that code is blanked and that comments and sentences keep their line.
func TestGoProse(t *testing.T) {
	got := goProse("a.go", []byte("package a\n\n// See picture.\nvar picture = \"a picture\" + \"picture\"\n"))
	if want := "         \n\n// See picture.\n              \"a picture\"            \n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// phrase is a compiled row of a table.
type phrase struct {
	pattern *regexp.Regexp
	literal string // part of every match in lower case: searching for it first is much faster
	instead string
}

func compiled(table map[string]string) (phrases []phrase) {
	for pattern, instead := range table {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			panic(err)
		}
		phrases = append(phrases, phrase{regexp.MustCompile(pattern), longestLiteral(parsed), instead})
	}
	return phrases
}

// longestLiteral returns the longest text, in lower case, that every match of a pattern contains; empty if there is none.
func longestLiteral(r *syntax.Regexp) (longest string) {
	switch r.Op {
	case syntax.OpLiteral:
		return strings.ToLower(string(r.Rune))
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range r.Sub {
			if text := longestLiteral(sub); len(text) > len(longest) {
				longest = text
			}
		}
	}
	return longest
}

func TestLongestLiteral(t *testing.T) {
	for pattern, want := range map[string]string{`\b(stands?|stood) beside`: " beside", `[Nn]ot this way`: "ot this way", `Report, files`: "report, files", `aa|b`: ""} {
		if got := compiled(map[string]string{pattern: ""})[0].literal; got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// reportPhrases fails for every phrase in a text.
func reportPhrases(t *testing.T, path, text string, phrases []phrase) {
	t.Helper()
	lower := strings.ToLower(text)
	for _, p := range phrases {
		if !strings.Contains(lower, p.literal) {
			continue
		}
		for _, at := range p.pattern.FindAllStringIndex(text, -1) {
			t.Errorf("%s:%d: %q: write %q", path, 1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], p.instead)
		}
	}
}

// walkText calls fn with every file that has one of the extensions, except generated files, vendored files, tests and spared ones.
func walkText(t *testing.T, extensions []string, fn func(path string, text []byte)) {
	t.Helper()
	wanted := map[string]bool{}
	for _, extension := range extensions {
		wanted[extension] = true
	}
	skipped := map[string]bool{".git": true, "vendor": true, "node_modules": true, "testdata": true}
	for _, path := range spared {
		skipped[path] = true
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (skipped[e.Name()] || skipped[path]):
			return filepath.SkipDir
		case e.IsDir() || !wanted[filepath.Ext(path)] || skipped[path] || strings.HasSuffix(path, "_templ.go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			fn(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goProse returns a Go file with everything but comments and string literals that contain a space replaced by spaces.
func goProse(path string, text []byte) string {
	prose := make([]byte, len(text))
	for i, b := range text {
		if prose[i] = ' '; b == '\n' {
			prose[i] = b
		}
	}
	file := token.NewFileSet().AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	for {
		switch pos, tok, lit := s.Scan(); {
		case tok == token.EOF:
			return string(prose)
		case tok == token.COMMENT, tok == token.STRING && lit[0] == '"' && strings.Contains(lit, " "):
			copy(prose[file.Offset(pos):], lit)
		}
	}
}
