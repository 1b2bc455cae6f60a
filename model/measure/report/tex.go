package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"slotscope/model"
)

// TeX writes table.tex: for every section the paper's main table, if there are several datasets, a full table per dataset, and the
// ablations. The document needs only booktabs; each table can be copied into another document.
func (r *Report) TeX(w io.Writer) error {
	var l lines
	l.add(`%% %s`, texText(r.Title))
	l.add(`%% Each table environment can be copied into a document that loads booktabs.`)
	l.add("\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage[utf8]{inputenc}\n\\usepackage{booktabs}\n\\setlength{\\textwidth}{6.5in}\n\\setlength{\\oddsidemargin}{0pt}\n\\begin{document}")
	for _, s := range r.Sections {
		if !s.Scored() {
			continue
		}
		if len(s.Datasets()) > 1 {
			s.texMain(&l)
		}
		for _, t := range s.Tables(columns) {
			if t.Dataset != "" { // the main table holds the aggregated rows
				s.texFull(&l, t)
			}
		}
		s.texAblations(&l)
	}
	if left := r.Left(); len(left) > 0 {
		l.add("\n\\begin{itemize}")
		for _, e := range left {
			l.add(`  \item Excluded: %s, seed %d: %s`, texText(e.Run.ID), e.Run.Config.Seed, texText(e.Why))
		}
		l.add("\\end{itemize}")
	}
	l.add("\\end{document}")
	return l.to(w)
}

// blocks are the two halves of the paper's main table; the order of D, I and C matches the heading.
var blocks = []struct {
	head string
	keys []string
}{
	{`InfoMEC $:=$ (InfoM InfoE InfoC) $\uparrow$`, []string{"infom", "infoe", "infoc"}},
	{`DCI $:=$ (D I C) $\uparrow$`, []string{"d", "i", "c"}},
}

// texMain writes the main table: models by datasets, three scores to a cell.
func (s Section) texMain(l *lines) {
	datasets := s.Datasets()
	aggregated := s.Aggregated(columns)
	l.add("\n\\begin{table}[t]\n  \\centering\n  \\scriptsize\n  \\setlength{\\tabcolsep}{3pt}\n  \\caption{%s %s}", s.texCaption("Scores", datasets...), "Aggregated: the mean over all datasets for each seed.")
	l.add(`  \begin{tabular}{l%s}`, strings.Repeat("c", len(datasets)+1))
	l.add("    \\toprule")
	head := []string{"Model", "Aggregated"}
	for _, d := range datasets {
		head = append(head, texText(DatasetLabel(d)))
	}
	l.add(`    %s \\`, strings.Join(head, " & "))
	for _, b := range blocks {
		l.add(`    \midrule`)
		l.add(`    & \multicolumn{%d}{c}{%s} \\`, len(datasets)+1, b.head)
		l.add(`    \midrule`)
		metrics := metricsOf(b.keys)
		tables := []Table{s.Aggregated(metrics)}
		for _, d := range datasets {
			tables = append(tables, s.Table(d, metrics))
		}
		for _, label := range s.Labels() {
			cells := []string{texLabel(label)}
			for _, t := range tables {
				cells = append(cells, t.texTriple(label))
			}
			l.add(`    %s \\`, strings.Join(cells, " & "))
		}
	}
	l.add("    \\bottomrule\n  \\end{tabular}")
	aggregated.texWithheld(l)
	l.add("\\end{table}")
}

// texTriple is a row's three means in parentheses, to two decimals as in the paper.
func (t Table) texTriple(label string) string {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Label == label })
	if i < 0 {
		return "--"
	}
	var values []string
	some := false
	for _, c := range t.Rows[i].Cells {
		text := "\\mbox{--}"
		if c.N > 0 {
			text, some = texNumber(fixed(c.Mean, 2)), true
		}
		if c.Bold {
			text = `\mathbf{` + text + `}`
		}
		values = append(values, text)
	}
	if !some {
		return "--"
	}
	return "$(" + strings.Join(values, `\ `) + ")$"
}

// texFull writes the table of one dataset: the mean and interval of every measured metric.
func (s Section) texFull(l *lines, t Table) {
	l.add("\n\\begin{table}[t]\n  \\centering\n  \\scriptsize\n  \\setlength{\\tabcolsep}{3pt}\n  \\caption{%s}", s.texCaption("Full results for "+texText(t.Title), t.Dataset))
	l.add(`  \begin{tabular}{l%s}`, strings.Repeat("c", len(t.Metrics)))
	l.add("    \\toprule")
	head := []string{"model"}
	for _, m := range t.Metrics {
		head = append(head, texHead(m))
	}
	l.add(`    %s \\`, strings.Join(head, " & "))
	l.add("    \\midrule")
	for _, row := range t.Rows {
		cells := []string{texLabel(row.Label)}
		for _, c := range row.Cells {
			cells = append(cells, c.tex())
		}
		l.add(`    %s \\`, strings.Join(cells, " & "))
	}
	l.add("    \\bottomrule\n  \\end{tabular}")
	t.texWithheld(l)
	l.add("\\end{table}")
}

// texWithheld writes, below a table, why rows make no claim.
func (t Table) texWithheld(l *lines) {
	for _, why := range t.Withheld() {
		l.add(`  \par\smallskip %s`, texText(why))
	}
}

func texHead(m Metric) string {
	head := m.Label
	if m.Unit != "" {
		head += " (" + m.Unit + ")"
	}
	if m.Neutral {
		return head
	}
	return head + ` $\uparrow$`
}

func (c Cell) tex() string {
	mean, half := c.Rounded(c.Metric.Decimals)
	if mean == "" {
		return "--"
	}
	text := texNumber(mean)
	if half != "" {
		text += ` \pm ` + half
	}
	if c.Bold {
		text = `\mathbf{` + text + `}`
	}
	return "$" + text + "$"
}

// texCaption describes a table: its content, the number of seeds, and the bold rule.
func (s Section) texCaption(what string, datasets ...string) string {
	var least, most int
	bold := s.Aggregated(columns).anyBold()
	for _, d := range datasets {
		t := s.Table(d, columns)
		bold = bold || t.anyBold()
		a, b := t.Seeds()
		if least == 0 || a > 0 && a < least {
			least = a
		}
		most = max(most, b)
	}
	n := fmt.Sprintf("$n=%d$ seeds", most)
	if least != most {
		n = fmt.Sprintf("$n=%d$ to $%d$ seeds", least, most)
	} else if most == 1 {
		n = "one seed, without intervals"
	}
	if s.Name != "" {
		what += ", " + texText(s.Name)
	}
	text := fmt.Sprintf("%s, over %s; mean $\\pm$ 95\\%% interval by Student's $t$.", what, n)
	if bold {
		text += " " + texText(s.Rule.About())
	}
	return text
}

func (s Section) texAblations(l *lines) {
	all := s.Ablations()
	if len(all) == 0 {
		return
	}
	l.add("\n\\begin{table}[t]\n  \\centering\n  \\scriptsize\n  \\setlength{\\tabcolsep}{3pt}\n  \\caption{Ablations: difference from the unmodified model, with Welch's 95\\%% interval.}")
	metrics := s.Measured(columns)
	head := []string{"change"}
	several := len(s.Datasets()) > 1
	if several {
		head = append(head, "dataset")
	}
	l.add(`  \begin{tabular}{%s%s}`, strings.Repeat("l", len(head)), strings.Repeat("c", len(metrics)))
	l.add("    \\toprule")
	for _, m := range metrics {
		head = append(head, texHead(m))
	}
	l.add("    %s \\\\\n    \\midrule", strings.Join(head, " & "))
	for _, a := range all {
		cells := []string{texText(a.Change)}
		if several {
			cells = append(cells, texText(DatasetLabel(a.Variant.Dataset)))
		}
		for i, m := range columns {
			if slices.ContainsFunc(metrics, func(o Metric) bool { return o.Key == m.Key }) {
				cells = append(cells, Cell{Scored: Scored{Metric: m, Summary: a.Differences[i]}}.tex())
			}
		}
		l.add(`    %s \\`, strings.Join(cells, " & "))
	}
	l.add("    \\bottomrule\n  \\end{tabular}\n\\end{table}")
}

func metricsOf(keys []string) []Metric {
	var list []Metric
	for _, k := range keys {
		if m, ok := MetricByKey(k); ok {
			list = append(list, m)
		}
	}
	return list
}

// texLabel writes a label with the paper's symbols as mathematics.
func texLabel(label string) string {
	for _, name := range model.ModelNames() {
		n := modelNames[name]
		if rest, ok := strings.CutPrefix(label, n.label); ok && (rest == "" || rest[0] == ',') {
			return n.tex + texText(rest)
		}
	}
	return texText(label)
}

func texNumber(text string) string { return strings.ReplaceAll(text, "−", "-") }

// texText escapes TeX's special characters and writes the symbols of hyperparameters as mathematics. Letters without a glyph in
// plain LaTeX become question marks, and line breaks become spaces.
func texText(text string) string { return strings.Map(texRune, texEscapes.Replace(text)) }

func texRune(r rune) rune {
	switch {
	case unicode.IsControl(r):
		return ' '
	case r > unicode.MaxASCII && (r > unicode.MaxLatin1 || !unicode.IsLetter(r) || unicode.Is(unicode.Lo, r)):
		return '?'
	}
	return r
}

var texEscapes = strings.NewReplacer(
	`\`, `\textbackslash{}`, `{`, `\{`, `}`, `\}`, `$`, `\$`, `&`, `\&`, `#`, `\#`, `%`, `\%`, `_`, `\_`, `^`, `\textasciicircum{}`, `~`, `\textasciitilde{}`,
	"β₁", `$\beta_1$`, "β₂", `$\beta_2$`, "β", `$\beta$`, "λ", `$\lambda$`, "η", `$\eta$`, "ε", `$\varepsilon$`, "†", `$^\dagger$`, "×", `$\times$`,
	"±", `$\pm$`, "−", `$-$`, "–", "--", "“", "``", "”", "''", "’", "'", "…", `\ldots{}`, "²", `$^2$`,
)
