package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Tables writes the tables for a terminal: columns aligned, an asterisk for bold.
func (r *Report) Tables(w io.Writer) error {
	var l lines
	for _, s := range r.Sections {
		if s.Name != "" {
			l.add("%s", s.Name)
		}
		if !s.Scored() {
			l.add("None of these runs has scores yet.\n")
			continue
		}
		for _, t := range s.Tables(columns) {
			t.text(&l)
		}
	}
	return l.to(w)
}

func (t Table) text(l *lines) {
	rows := [][]string{{t.Title, "n"}}
	for _, m := range t.Metrics {
		rows[0] = append(rows[0], strings.TrimSpace(m.Label+" "+m.Unit))
	}
	for _, row := range t.Rows {
		cells := []string{row.Label, row.Seeds()}
		for _, c := range row.Cells {
			mark := " "
			if c.Bold {
				mark = "*"
			}
			cells = append(cells, c.Text(c.Metric.Decimals)+mark)
		}
		rows = append(rows, cells)
	}
	width := make([]int, len(rows[0]))
	for _, cells := range rows {
		for j, c := range cells {
			width[j] = max(width[j], utf8.RuneCountInString(c))
		}
	}
	for _, cells := range rows {
		var b strings.Builder
		for j, c := range cells {
			pad := strings.Repeat(" ", width[j]-utf8.RuneCountInString(c))
			if j == 0 {
				fmt.Fprintf(&b, "%s%s", c, pad)
			} else {
				fmt.Fprintf(&b, "  %s%s", pad, c)
			}
		}
		l.add("%s", strings.TrimRight(b.String(), " "))
	}
	for _, why := range t.Withheld() {
		l.add("%s", why)
	}
	l.add("")
}
