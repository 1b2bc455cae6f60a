package report

import (
	"encoding/json"
	"io"
	"time"

	"slotscope/model"
)

// Schema is the version of Results.
const Schema = 2

// Results is the content of results.json. Undefined numbers are null.
type Results struct {
	Schema     int               `json:"schema"`
	Title      string            `json:"title"`
	Rule       Rule              `json:"bold_rule"`
	Metrics    []MetricRecord    `json:"metrics"`
	Runs       []RunRecord       `json:"runs"`
	Sections   []SectionRecord   `json:"sections"`
	Selections []SelectionRecord `json:"selections,omitempty"`
	Left       []LeftRecord      `json:"left_out"`
	Notes      []string          `json:"notes"`
}

// MetricRecord explains a key under "scores".
type MetricRecord struct {
	Key     string `json:"key"`
	Label   string `json:"label"`
	Unit    string `json:"unit,omitempty"`
	About   string `json:"about"`
	Neutral bool   `json:"neutral,omitempty"` // neither direction is better
}

// RunRecord is one run with its configuration and scores.
type RunRecord struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Notes      string        `json:"notes,omitempty"`
	State      model.State   `json:"state"`
	Reason     string        `json:"reason,omitempty"`
	Step       int           `json:"step"`
	Config     model.Config  `json:"config"`
	Parameters int           `json:"parameters"`
	Engine     string        `json:"engine"`
	Revision   string        `json:"revision"`
	Created    time.Time     `json:"created"`
	Seconds    float64       `json:"seconds"` // from the first start to the end
	Scores     *model.Scores `json:"scores"`  // null if not yet scored
}

// SectionRecord is a part with its groups and its aggregated rows.
type SectionRecord struct {
	Name       string        `json:"name"`
	About      string        `json:"about,omitempty"`
	Groups     []GroupRecord `json:"groups"`
	Aggregated []GroupRecord `json:"aggregated"`
}

// GroupRecord is a set of runs that differ only in their seed.
type GroupRecord struct {
	Label   string                 `json:"label"`
	Model   string                 `json:"model,omitempty"`
	Dataset string                 `json:"dataset,omitempty"`
	Runs    []string               `json:"runs,omitempty"`
	Departs []string               `json:"departs,omitempty"` // how its runs differ from the published ones; if not empty, no claims are made
	Scores  map[string]ScoreRecord `json:"scores"`
}

// ScoreRecord is one metric of a group.
type ScoreRecord struct {
	Seeds     []int64          `json:"seeds"`
	Values    []model.Score    `json:"values"` // by seed
	N         int              `json:"n"`
	Mean      model.Score      `json:"mean"`
	SD        model.Score      `json:"sd"` // with Bessel's correction
	T         model.Score      `json:"t"`  // t(0.975, n − 1)
	Low       model.Score      `json:"ci95_low"`
	High      model.Score      `json:"ci95_high"`
	Bold      map[Rule]bool    `json:"bold"`
	Published *PublishedRecord `json:"published,omitempty"`
	Within    *model.Interval  `json:"own_ci95,omitempty"` // of a single seed's value, over the rows or votes it was measured on
	Chance    *model.Score     `json:"chance,omitempty"`   // mean over seeds of the same score with the factors' rows shuffled
}

// PublishedRecord is the paper's value compared with ours.
type PublishedRecord struct {
	Mean       float64     `json:"mean"`
	Half       float64     `json:"half"`
	Images     string      `json:"images,omitempty"` // "other images" if ours differ from those of the paper's value
	Difference model.Score `json:"difference"`       // ours minus the paper's
	Equivalent bool        `json:"equivalent"`       // see Cell.Match
	Why        string      `json:"why,omitempty"`    // the reason if not equivalent or if no claim is made
}

// SelectionRecord is the JSON form of Selection.
type SelectionRecord struct {
	Model   string         `json:"model"`
	Dataset string         `json:"dataset"`
	Field   string         `json:"field"`
	Chosen  string         `json:"chosen"`
	Options []OptionRecord `json:"options"`
}

// OptionRecord is the JSON form of Option.
type OptionRecord struct {
	Value string      `json:"value"`
	InfoM model.Score `json:"infom"`
	N     int         `json:"n"`
	Runs  []string    `json:"runs"`
}

// LeftRecord is an excluded run.
type LeftRecord struct {
	Run  string `json:"run"`
	Seed int64  `json:"seed"`
	Why  string `json:"why"`
}

// Results builds the record.
func (r *Report) Results() Results {
	out := Results{Schema: Schema, Title: r.Title, Rule: r.Rule, Notes: r.Notes(), Left: []LeftRecord{}}
	for _, m := range recorded() {
		out.Metrics = append(out.Metrics, MetricRecord{m.Key, m.Label, m.Unit, m.About, m.Neutral})
	}
	for _, e := range r.Runs {
		out.Runs = append(out.Runs, e.record())
	}
	for _, s := range r.Sections {
		out.Sections = append(out.Sections, s.record())
	}
	for _, s := range r.Selections {
		out.Selections = append(out.Selections, s.record())
	}
	for _, l := range r.Left() {
		out.Left = append(out.Left, LeftRecord{l.Run.ID, l.Run.Config.Seed, l.Why})
	}
	return out
}

// JSON writes results.json.
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r.Results())
}

func (e Entry) record() RunRecord {
	r := RunRecord{ID: e.Run.ID, Name: e.Run.Name, Notes: e.Run.Notes, State: e.Run.State, Reason: e.Run.Reason, Step: e.Run.Step, Config: e.Run.Config,
		Parameters: e.Run.Parameters, Engine: e.Run.Engine, Revision: e.Run.Revision, Created: e.Run.Created.UTC(), Seconds: e.seconds(), Scores: e.Scores}
	if e.Scores != nil && !finite(e.Scores.PSNR) {
		s := *e.Scores
		s.PSNR = 0 // this record cannot hold null; the groups' scores omit the value
		r.Scores = &s
	}
	return r
}

// seconds is the time from the first start to the end; 0 if the run has not ended or the times are unknown.
func (e Entry) seconds() float64 {
	if e.Run.Started.IsZero() || e.Run.Ended.IsZero() {
		return 0
	}
	return e.Run.Ended.Sub(e.Run.Started).Seconds()
}

func (s Section) record() SectionRecord {
	out := SectionRecord{Name: s.Name, About: s.About, Groups: []GroupRecord{}, Aggregated: []GroupRecord{}}
	all := recorded()
	for _, d := range s.Datasets() {
		out.Groups = append(out.Groups, s.rows(func(s Section) Table { return s.Table(d, all) })...)
	}
	out.Aggregated = append(out.Aggregated, s.rows(func(s Section) Table { return s.Aggregated(all) })...)
	return out
}

// rows are the records of a table, with the bold entries of both rules.
func (s Section) rows(table func(Section) Table) []GroupRecord {
	byRule := map[Rule]Table{}
	for _, rule := range []Rule{PaperRule, OverlapRule} {
		s.Rule = rule
		byRule[rule] = table(s)
	}
	var out []GroupRecord
	for i, row := range byRule[PaperRule].Rows {
		g := GroupRecord{Label: row.Label, Departs: row.Departs, Scores: map[string]ScoreRecord{}}
		if row.Group != nil {
			g.Model, g.Dataset, g.Runs = row.Group.Model, row.Group.Dataset, row.Group.ids()
		}
		for j, c := range row.Cells {
			record := c.record()
			for rule, t := range byRule {
				record.Bold[rule] = t.Rows[i].Cells[j].Bold
			}
			g.Scores[c.Metric.Key] = record
		}
		out = append(out, g)
	}
	return out
}

func (g Group) ids() []string {
	ids := []string{}
	for _, e := range g.Entries {
		ids = append(ids, e.Run.ID)
	}
	return ids
}

func (c Cell) record() ScoreRecord {
	r := ScoreRecord{Seeds: append([]int64{}, c.Seeds...), Values: []model.Score{}, N: c.N, Mean: model.Score(c.Mean), SD: model.Score(c.SD), T: model.Score(c.T),
		Low: model.Score(c.Lo), High: model.Score(c.Hi), Bold: map[Rule]bool{}}
	for _, v := range c.Values {
		r.Values = append(r.Values, model.Score(v))
	}
	r.Within = c.Within
	if c.Chance.N > 0 {
		chance := model.Score(c.Chance.Mean)
		r.Chance = &chance
	}
	if p := c.Published; p != nil {
		r.Published = &PublishedRecord{Mean: p.Mean(), Half: p.Half(), Images: p.Images, Difference: model.Score(c.Difference())}
		r.Published.Equivalent, r.Published.Why = c.Match()
	}
	return r
}

func (s Selection) record() SelectionRecord {
	r := SelectionRecord{s.Model, s.Dataset, s.Field, s.Chosen, []OptionRecord{}}
	for _, o := range s.Options {
		r.Options = append(r.Options, OptionRecord{o.Value, model.Score(o.InfoM.Mean), o.InfoM.N, append([]string{}, o.Runs...)})
	}
	return r
}
