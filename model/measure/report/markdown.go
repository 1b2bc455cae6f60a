package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Markdown writes report.md: the tables, the published values, the excluded runs, and the notes.
func (r *Report) Markdown(w io.Writer) error {
	var l lines
	l.add("# %s\n", mdText(r.Title))
	for _, s := range r.Sections {
		s.markdown(&l)
	}
	r.mdSelections(&l)
	if left := r.Left(); len(left) > 0 {
		l.add("## Excluded runs\n")
		for _, e := range left {
			l.add("- `%s` (%s, seed %d): %s", e.Run.ID, ModelLabel(e.Run.Config.Model), e.Run.Config.Seed, mdText(e.Why))
		}
		l.add("")
	}
	l.add("## Notes on the tables\n")
	for _, note := range r.Notes() {
		l.add("- %s", note)
	}
	return l.to(w)
}

func (s Section) markdown(l *lines) {
	if s.Name != "" {
		l.add("## %s\n", mdText(s.Name))
	}
	if s.About != "" {
		l.add("%s\n", mdText(s.About))
	}
	if !s.Scored() {
		l.add("None of these runs has scores yet.\n")
		return
	}
	metrics := slices.Concat(columns, further)
	for _, t := range slices.Concat(s.Tables(metrics), s.FieldTables()) {
		l.add("### %s\n", mdText(t.Title))
		t.markdown(l)
		for _, why := range t.Withheld() {
			l.add("%s\n", mdText(why))
		}
		t.mdPublished(l)
	}
	s.mdAblations(l)
	s.mdSlots(l)
	for _, g := range s.Grids(s.Measured(metrics)) {
		g.markdown(l)
	}
}

func (s Section) mdSlots(l *lines) {
	choices := s.SlotChoices()
	if len(choices) == 0 {
		return
	}
	l.add("### How many slots?\n\n%s\n", slotsAbout)
	l.add("| %s |\n|%s", strings.Join(slotHeads, " | "), strings.Repeat(" --- |", len(slotHeads)))
	for _, c := range choices {
		cells := c.cells()
		for i := range cells {
			cells[i] = mdText(cells[i])
		}
		l.add("| %s |", strings.Join(cells, " | "))
	}
	l.add("")
}

func (t Table) markdown(l *lines) {
	head, rule := []string{"Model", "n"}, []string{"---", "--:"}
	for _, m := range t.Metrics {
		head, rule = append(head, mdHead(m)), append(rule, "--:")
	}
	l.add("| %s |\n| %s |", strings.Join(head, " | "), strings.Join(rule, " | "))
	for _, row := range t.Rows {
		l.add("| %s | %s | %s |", mdText(row.Label), row.Seeds(), strings.Join(cellTexts(row.Cells, Cell.markdown), " | "))
	}
	l.add("")
}

// Seeds is the number of seeds of a row: one number, or "3 to 5" if metrics differ.
func (r Row) Seeds() string {
	least, most := Table{Rows: []Row{r}}.Seeds()
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func cellTexts(cells []Cell, text func(Cell) string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = text(c)
	}
	return out
}

func (c Cell) markdown() string {
	text := c.Text(c.Metric.Decimals)
	if c.Bold {
		return "**" + text + "**"
	}
	return text
}

func mdHead(m Metric) string {
	head := m.Label
	if m.Unit != "" {
		head += ", " + m.Unit
	}
	if m.Neutral {
		return head
	}
	return head + " ↑"
}

// mdPublished lists the paper's values next to ours, the difference, and whether the two are equivalent.
func (t Table) mdPublished(l *lines) {
	first := true
	for _, row := range t.Rows {
		for _, c := range row.Cells {
			if c.Published == nil || c.N == 0 {
				continue
			}
			if first {
				l.add("| Compared with the paper | ours | published | difference | equivalent |\n| --- | --: | --: | --: | --- |")
				first = false
			}
			l.add("| %s, %s | %s | %s | %s | %s |", mdText(row.Label), c.Metric.Label, c.Text(c.Metric.Decimals), *c.Published, signed(c.Difference(), c.Metric.Decimals), c.equivalence())
		}
	}
	if !first {
		l.add("")
	}
}

// equivalence is Match as a word or short phrase; the reason for making no claim is given below the table.
func (c Cell) equivalence() string {
	equivalent, why := c.Match()
	switch {
	case equivalent:
		return "✓"
	case c.Withheld() != "":
		return "no claim"
	}
	return why
}

// signed writes a difference with its sign.
func signed(v float64, decimals int) string {
	text := fixed(v, decimals)
	if v > 0 && strings.Trim(text, "0.") != "" {
		return "+" + text
	}
	return text
}

func (s Section) mdAblations(l *lines) {
	all := s.Ablations()
	if len(all) == 0 {
		return
	}
	metrics := s.Measured(columns)
	head, rule := []string{"Change", "Dataset"}, []string{"---", "---"}
	for _, m := range metrics {
		head, rule = append(head, mdHead(m)), append(rule, "--:")
	}
	l.add("### Ablations\n\nDifference from the unmodified model, with Welch's 95%% interval.\n")
	l.add("| %s |\n| %s |", strings.Join(head, " | "), strings.Join(rule, " | "))
	for _, a := range all {
		cells := []string{mdText(a.Change), mdText(DatasetLabel(a.Variant.Dataset))}
		for i, m := range columns {
			if slices.ContainsFunc(metrics, func(o Metric) bool { return o.Key == m.Key }) {
				cells = append(cells, a.Text(i))
			}
		}
		l.add("| %s |", strings.Join(cells, " | "))
	}
	l.add("")
}

// Text is the difference in the i-th of Columns, with its sign.
func (a Ablation) Text(i int) string {
	d := a.Differences[i]
	text := d.Text(columns[i].Decimals)
	if mean, _ := d.Rounded(columns[i].Decimals); d.Mean > 0 && strings.Trim(mean, "0.") != "" {
		return "+" + text
	}
	return text
}

func (g Grid) markdown(l *lines) {
	l.add("### %s of %s on %s\n\nRows: %s %s. Columns: %s %s.\n", g.Metric.Label, ModelLabel(g.Model), mdText(DatasetLabel(g.Dataset)),
		strings.ToLower(g.RowField.Label), g.RowField.Symbol, strings.ToLower(g.ColumnField.Label), g.ColumnField.Symbol)
	l.add("| %s \\ %s | %s |\n| --- |%s", g.RowField.Symbol, g.ColumnField.Symbol, strings.Join(g.Columns, " | "), strings.Repeat(" --: |", len(g.Columns)))
	for i, v := range g.Rows {
		cells := make([]string, len(g.Columns))
		for j, c := range g.Cells[i] {
			cells[j] = c.Text(g.Metric.Decimals)
		}
		l.add("| %s | %s |", v, strings.Join(cells, " | "))
	}
	l.add("")
}

func (r *Report) mdSelections(l *lines) {
	if len(r.Selections) == 0 {
		return
	}
	l.add("## Selected hyperparameters\n\nSelected by the highest mean InfoM over separate seeds.\n")
	l.add("| Model | Dataset | Hyperparameter | Selected | Mean InfoM by value |\n| --- | --- | --- | --- | --- |")
	for _, s := range r.Selections {
		var tried []string
		for _, o := range s.Options {
			tried = append(tried, fmt.Sprintf("%s: %s", o.Value, o.Text()))
		}
		l.add("| %s | %s | %s | %s | %s |", ModelLabel(s.Model), mdText(DatasetLabel(s.Dataset)), s.Field, orDash(s.Chosen), strings.Join(tried, "; "))
	}
	l.add("")
}

// Text is the mean InfoM of an option and its number of seeds; "no score" if none.
func (o Option) Text() string {
	if o.InfoM.N == 0 {
		return "no score"
	}
	return fmt.Sprintf("%s (n = %d)", fixed(o.InfoM.Mean, 3), o.InfoM.N)
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// mdText escapes characters that are markup in Markdown.
func mdText(text string) string { return mdEscapes.Replace(text) }

var mdEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`, "\n", " ", "\r", " ")

// mdCode formats text as code inside a table cell.
func mdCode(text string) string { return "`" + mdInCode.Replace(text) + "`" }

var mdInCode = strings.NewReplacer("|", `\|`, "`", "'", "\n", " ", "\r", " ")
