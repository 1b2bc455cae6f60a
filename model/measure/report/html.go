package report

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"slotscope/model/measure/figure"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var page = template.Must(template.New("report").Parse(pageText))

// pageView is the data of page.html.
type pageView struct {
	Title, Counted string
	Style          template.CSS
	Sections       []sectionView
	Left           []Left
	Notes          []string
	Runs           []Entry
}

type sectionView struct {
	Name, About string
	Tables      []tableView
	Lists       []listView
	Figures     []figureView
	Sheets      []sheetView
}

type figureView struct {
	Drawing template.HTML
	Wide    bool // too wide for two columns in print
}

type tableView struct {
	Title    string
	Heads    []headView
	Rows     []rowView
	Withheld []string
}

type headView struct{ Text, About string }

type rowView struct {
	Label, Seeds string
	Chance       bool
	Cells        []cellView
}

type cellView struct {
	Text, Published, Why string
	Bold, Equivalent     bool
}

type listView struct {
	Title string
	Heads []string
	Rows  [][]string
}

type sheetView struct {
	Caption       string
	Data          template.URL
	Width, Height int
}

// HTML writes report.html: one self-contained page without external resources.
func (r *Report) HTML(w io.Writer) error {
	v := pageView{Title: r.Title, Counted: r.counted(), Style: template.CSS(pageStyle + figure.CSS()), Left: r.Left(), Notes: r.Notes(), Runs: r.Runs}
	figures, err := r.draw()
	if err != nil {
		return err
	}
	for i, s := range r.Sections {
		section, err := s.view(figures[i])
		if err != nil {
			return err
		}
		v.Sections = append(v.Sections, section)
	}
	if len(r.Selections) > 0 {
		v.Sections = append(v.Sections, sectionView{Name: "Selected hyperparameters", About: "Selected by the highest mean InfoM over separate seeds.", Tables: []tableView{}, Lists: []listView{r.selectionList()}})
	}
	return page.Execute(w, v)
}

// counted summarizes how many runs have scores, and explains the small print.
func (r *Report) counted() string {
	scored := 0
	for _, e := range r.Runs {
		if e.Scores != nil {
			scored++
		}
	}
	return fmt.Sprintf("%d of %d runs have scores. Small print below a score is the paper's value, with ✓ if ours is equivalent.", scored, len(r.Runs))
}

func (s Section) view(figures []figure.Figure) (sectionView, error) {
	v := sectionView{Name: s.Name, About: s.About}
	if s.Scored() {
		for _, t := range slices.Concat(s.Tables(slices.Concat(columns, further)), s.FieldTables()) {
			v.Tables = append(v.Tables, t.view())
		}
		if list, ok := s.ablationList(); ok {
			v.Lists = append(v.Lists, list)
		}
		if choices := s.SlotChoices(); len(choices) > 0 {
			list := listView{Title: "How many slots?", Heads: slotHeads}
			for _, c := range choices {
				list.Rows = append(list.Rows, c.cells())
			}
			v.Lists = append(v.Lists, list)
		}
	}
	for _, f := range figures {
		v.Figures = append(v.Figures, figureView{template.HTML(f.Inline()), f.Width > chartWidth}) // package figure escapes its text
	}
	for _, d := range s.Datasets() {
		sheets, err := s.Sheets(d)
		if err != nil {
			return v, err
		}
		for _, sheet := range sheets {
			size := sheet.Size()
			v.Sheets = append(v.Sheets, sheetView{
				Caption: fmt.Sprintf("%s on %s, seed %d: images (top), reconstructions (bottom).", sheet.Label, DatasetLabel(d), sheet.Seed),
				Data:    template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(sheet.PNG)), Width: size.X, Height: size.Y})
		}
	}
	return v, nil
}

func (t Table) view() tableView {
	v := tableView{Title: t.Title, Withheld: t.Withheld()}
	for _, m := range t.Metrics {
		v.Heads = append(v.Heads, headView{mdHead(m), m.About})
	}
	for _, row := range t.Rows {
		out := rowView{Label: row.Label, Seeds: row.Seeds(), Chance: row.Chance}
		for _, c := range row.Cells {
			cell := cellView{Text: c.Text(c.Metric.Decimals), Bold: c.Bold}
			if c.Published != nil && c.N > 0 {
				cell.Published = c.Published.String()
				cell.Equivalent, cell.Why = c.Match()
				cell.Why = strings.TrimSpace("Published value; difference " + signed(c.Difference(), c.Metric.Decimals) + ". " + cell.Why)
			}
			out.Cells = append(out.Cells, cell)
		}
		v.Rows = append(v.Rows, out)
	}
	return v
}

func (s Section) ablationList() (listView, bool) {
	all := s.Ablations()
	v := listView{Title: "Ablations: difference from the unmodified model, with Welch's 95% interval", Heads: []string{"Change", "Dataset"}}
	metrics := s.Measured(columns)
	for _, m := range metrics {
		v.Heads = append(v.Heads, mdHead(m))
	}
	for _, a := range all {
		row := []string{a.Change, DatasetLabel(a.Variant.Dataset)}
		for i, m := range columns {
			if slices.ContainsFunc(metrics, func(o Metric) bool { return o.Key == m.Key }) {
				row = append(row, a.Text(i))
			}
		}
		v.Rows = append(v.Rows, row)
	}
	return v, len(all) > 0
}

func (r *Report) selectionList() listView {
	v := listView{Title: "Selected by InfoM", Heads: []string{"Model", "Dataset", "Hyperparameter", "Selected", "Mean InfoM by value"}}
	for _, s := range r.Selections {
		tried := ""
		for i, o := range s.Options {
			if i > 0 {
				tried += "; "
			}
			tried += o.Value + ": " + o.Text()
		}
		v.Rows = append(v.Rows, []string{ModelLabel(s.Model), DatasetLabel(s.Dataset), s.Field, orDash(s.Chosen), tried})
	}
	return v
}
