package command

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"slotscope/model"
)

// liveLine shows the progress of training: on a terminal one line below the log that is updated in place, otherwise a plain line every ten
// seconds and at the end. The log is written through Write.
type liveLine struct {
	w     io.Writer
	width func() int // of the terminal in characters; nil if w is not a terminal

	mu   sync.Mutex
	line string
	last time.Time
}

func newLiveLine(w io.Writer) *liveLine {
	l := &liveLine{w: w}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		l.width = func() int {
			if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
				return width
			}
			return 80
		}
	}
	return l
}

// Write prints log lines above the live line.
func (l *liveLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width == nil || l.line == "" {
		return l.w.Write(p)
	}
	_, err := fmt.Fprintf(l.w, "\r\x1b[K%s%s", p, l.line)
	return len(p), err
}

// show prints the state of a run; newest holds the last values of its series.
func (l *liveLine) show(s model.Status, cfg model.Config, newest map[string]float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := s.State.Ended()
	switch parts := trainLine(s, cfg, newest); {
	case l.width != nil:
		l.line = fitting(parts, l.width()-1)
		fmt.Fprintf(l.w, "\r\x1b[K%s", l.line)
		if ended {
			fmt.Fprintln(l.w)
			l.line = ""
		}
	case ended || time.Since(l.last) >= 10*time.Second:
		l.last = time.Now()
		fmt.Fprintln(l.w, strings.Join(parts, "  "))
	}
}

// trainLine returns the parts of the line, most important first: a narrow terminal shows fewer parts.
func trainLine(s model.Status, cfg model.Config, newest map[string]float64) []string {
	parts := []string{fmt.Sprintf("%s  step %s of %s", s.State, grouped(s.Step), grouped(cfg.Steps))}
	for _, v := range []struct {
		series, label, unit string
		digits              int
	}{{"total", "loss", "", 4}, {"psnr/eval", "PSNR", " dB", 1}, {"perplexity/window", "perplexity", "", 0}, {"infom/eval", "InfoM", "", 2}} {
		x, ok := newest[v.series]
		switch {
		case !ok:
		case math.IsNaN(x) || math.IsInf(x, 0):
			parts = append(parts, fmt.Sprintf("%s %v", v.label, x))
		default:
			parts = append(parts, v.label+" "+strconv.FormatFloat(x, 'f', v.digits, 64)+v.unit)
		}
	}
	if s.State.Live() {
		parts = append(parts, left(s)+" left")
	}
	if s.ImagesPerSecond > 0 {
		parts = append(parts, fmt.Sprintf("%.0f images/s", s.ImagesPerSecond))
	}
	return parts
}

// fitting joins as many parts as fit into a width; it cuts the first part if that is too long.
func fitting(parts []string, width int) string {
	line := parts[0]
	if n := []rune(line); len(n) > width {
		return string(n[:max(0, width)])
	}
	for _, p := range parts[1:] {
		if len([]rune(line))+2+len([]rune(p)) > width {
			break
		}
		line += "  " + p
	}
	return line
}

// grouped formats a non-negative integer with thousands separators.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func left(s model.Status) string {
	if s.SecondsLeft == 0 {
		return "unknown time"
	}
	return (time.Duration(s.SecondsLeft) * time.Second).String()
}
