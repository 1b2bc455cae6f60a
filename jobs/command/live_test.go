package command

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"slotscope/model"
)

func trainStatus(state model.State, step int) (model.Status, model.Config) {
	return model.Status{State: state, Step: step, ImagesPerSecond: 310.4, SecondsLeft: 754}, model.Config{Steps: 20_000}
}

var newestValues = map[string]float64{"total": 0.33124, "psnr/eval": 21.34, "perplexity/window": 66.4, "infom/eval": 0.614, "vq": 3}

// TestLiveLine checks that on a terminal one line is updated in place, stays below the log and never reaches the edge.
func TestLiveLine(t *testing.T) {
	var out bytes.Buffer
	width := 200
	l := &liveLine{w: &out, width: func() int { return width }}
	log := slog.New(slog.NewTextHandler(l, nil))
	s, cfg := trainStatus(model.Running, 1200)
	l.show(s, cfg, newestValues)
	const full = "running  step 1,200 of 20,000  loss 0.3312  PSNR 21.3 dB  perplexity 66  InfoM 0.61  12m34s left  310 images/s"
	if got := out.String(); got != "\r\x1b[K"+full {
		t.Errorf("%q", got)
	}
	out.Reset()
	log.Info("a word")
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[Ktime=") || !strings.HasSuffix(got, "a word\"\n"+full) {
		t.Errorf("%q", got)
	}
	for width = range 130 {
		out.Reset()
		l.show(s, cfg, newestValues)
		line := strings.TrimPrefix(out.String(), "\r\x1b[K")
		if len(line) >= max(1, width) || !strings.HasPrefix(full, line) {
			t.Fatalf("%d characters: %q", width, line)
		}
	}
	out.Reset()
	s, cfg = trainStatus(model.Finished, 20_000)
	width = 200
	l.show(s, cfg, map[string]float64{"total": math.NaN()})
	if got := out.String(); got != "\r\x1b[Kfinished  step 20,000 of 20,000  loss NaN  310 images/s\n" {
		t.Errorf("%q", got)
	}
	out.Reset()
	log.Info("after")
	if got := out.String(); strings.Contains(got, "\x1b") {
		t.Errorf("a log line after the end is %q", got)
	}
}

// TestPlainLines checks that without a terminal lines are printed every ten seconds and at the end, without control characters.
func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	l := newLiveLine(&out)
	for step := range 50 {
		s, cfg := trainStatus(model.Running, step)
		l.show(s, cfg, newestValues)
	}
	s, cfg := trainStatus(model.Stopped, 50)
	l.show(s, cfg, nil)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "running  step 0 of 20,000  loss") || lines[1] != "stopped  step 50 of 20,000  310 images/s" || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", lines)
	}
}
