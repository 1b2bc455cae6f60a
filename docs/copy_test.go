package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// mayHoldCopy are the files of handlers that may hold sentences, with the reason. Everything else that pages say belongs in views.
var mayHoldCopy = map[string]string{
	"handlers/handle.go":          "answers errors",
	"handlers/play/socket.go":     "answers invalid messages",
	"handlers/docs/docs.go":       "the OpenAPI document",
	"handlers/docs/operations.go": "the OpenAPI document",
}

// charts are the types of model/measure/figure that draw; views draw, handlers send.
var charts = []string{"LineChart", "BarChart", "HeatMap", "ImageGrid"}

// TestHandlersHoldNoCopy keeps sentences and figures out of handlers: a literal of at least three words that begins with a capital or ends
// with a full stop is copy. Errors of bad requests begin with a small letter and have no full stop, so they pass.
func TestHandlersHoldNoCopy(t *testing.T) {
	seen, excused := 0, map[string]bool{}
	walkGo(t, func(file string) {
		if !strings.HasPrefix(file, "handlers/") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "handlers/handlertest/") {
			return
		}
		seen++
		for _, found := range copyIn(t, file) {
			if mayHoldCopy[file] == "" {
				t.Errorf("%s holds %s; move it to views", file, found)
			}
			excused[file] = true
		}
	})
	if seen < 30 {
		t.Errorf("only %d files were looked at", seen)
	}
	for file := range mayHoldCopy {
		if !excused[file] {
			t.Errorf("%s holds no copy; take it off the list", file)
		}
	}
}

// copyIn returns the sentences and the charts in a file.
func copyIn(t *testing.T, file string) (found []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && isCopy(text) {
				found = append(found, n.Value)
			}
		case *ast.CompositeLit:
			if of, ok := n.Type.(*ast.SelectorExpr); ok && slices.Contains(charts, of.Sel.Name) {
				found = append(found, "a figure."+of.Sel.Name)
			}
		}
		return true
	})
	return found
}

// isCopy reports whether a literal reads as a sentence or heading of a page.
func isCopy(text string) bool {
	text = strings.TrimSpace(text)
	words := 0
	for _, w := range strings.Fields(text) {
		if strings.IndexFunc(w, unicode.IsLetter) >= 0 && !strings.ContainsAny(w, "<>{}=/\\%_") {
			words++
		}
	}
	if words < 3 {
		return false
	}
	first, _ := utf8.DecodeRuneInString(text)
	return unicode.IsUpper(first) || strings.ContainsAny(text[len(text)-1:], ".!?")
}

// TestIsCopy makes sure that the rule can say yes and no.
func TestIsCopy(t *testing.T) {
	for text, want := range map[string]bool{
		"The webhook accepted the test message.": true, "Images with this code": true, " edits of the pairs; lines are intervals.": true,
		"got %q; enter a whole number from 0 to %d": false, "unknown run %q: %w": false, "private, max-age=31536000, immutable": false,
		"Cache-Control": false, "slot names": false, "# %d damaged lines of points.jsonl are missing here\n": false,
	} {
		if isCopy(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}
