package command

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress shows the progress of long work: one line that is updated in place on a terminal, otherwise a line every ten seconds. It is
// safe for concurrent use.
type progress struct {
	w        io.Writer
	terminal bool

	mu          sync.Mutex
	stage       string
	start, last time.Time
	drawn       bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), last: time.Now()}
}

// show prints that done out of a stage's work is finished. unit names what is counted, e.g. "images"; empty for a share of the work.
func (p *progress) show(stage, unit string, done, of float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if stage != p.stage {
		p.stage, p.start = stage, now
	}
	every := 10 * time.Second
	if p.terminal {
		every = 100 * time.Millisecond
	}
	if now.Sub(p.last) < every && done < of || of <= 0 {
		return
	}
	p.last, p.drawn = now, true
	line := stageLine(stage, unit, done, of)
	if spent := now.Sub(p.start).Seconds(); spent > 0.5 && done > 0 {
		if unit != "" {
			line += fmt.Sprintf("  %.3g %s/s", done/spent, unit)
		}
		line += "  " + (time.Duration(spent*(of-done)/done) * time.Second).String() + " left"
	}
	if p.terminal {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// stageLine formats how much of a stage's work is finished.
func stageLine(stage, unit string, done, of float64) string {
	switch {
	case unit != "":
		return fmt.Sprintf("%s  %.0f of %.0f %s", stage, done, of, unit)
	case of > 0:
		return fmt.Sprintf("%s  %.0f%%", stage, 100*done/of)
	}
	return stage
}

// end clears the line on a terminal before results are printed.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
