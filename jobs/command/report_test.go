package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model"
)

// TestReportWithDamagedPoints checks that a report of a run with a damaged line is written and mentions it.
func TestReportWithDamagedPoints(t *testing.T) {
	dataDir, f := smallRun(t)
	points, err := f.Points()
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 4; step++ {
		if err := points.Append(model.Point{Step: step, Values: map[string]float64{"total": 0.25}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := points.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir(), "points.jsonl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(content, []byte("\n")) // the first is the header
	lines[2][2] ^= 1
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "report")
	if code, _, stderr := called(t, "report", "small", "--data", dataDir, "--out", out); code != done {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	text, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil || !strings.Contains(string(text), "1 damaged line") {
		t.Errorf("the report does not mention the damaged line: %v", err)
	}
}
