// Package run draws the list of runs, the form that starts one, and the page of a run.
package run

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/views"
)

// RunView is the page of one run.
type RunView struct {
	Run         model.Run
	PSNR        model.Sample // newest, in dB; the zero Sample before the first evaluation
	Images      int          // of the dataset; 0 where it is not here
	Pixels      int          // of an image, times its channels; 0 where the dataset is not here
	Overview    Overview
	Trouble     Trouble  // what was refused last, if anything
	Checkpoints []int    // steps, ascending
	Damaged     int      // measured steps whose points are damaged
	Samples     []int    // steps that have reconstructions, ascending
	Series      []string // with points, sorted, of a run that another program trained; such a run has no other charts
	Log         string   // the last lines
	Now         time.Time
}

// Panel is one chart: which series it draws, what they mean, where they should go.
type Panel struct {
	Title  string    `json:"title"`
	Unit   string    `json:"unit"`
	Series []string  `json:"series"`
	Labels []string  `json:"labels"`          // of the series where there are several
	Target *float64  `json:"target"`          // a dashed line; nil for none
	Aim    string    `json:"aim,omitempty"`   // what the dashed line is, as in "m"
	Group  string    `json:"-"`               // heading that it stands under
	About  string    `json:"-"`               // one sentence
	Floor  *float64  `json:"floor,omitempty"` // the axis begins there at most
	Idle   bool      `json:"-"`               // a term of weight 0: folded away within its group
	Scale  []float64 `json:"scale,omitempty"` // that each series is multiplied by; nil for none
}

// RunData is what the page's modules need to know at the start.
type RunData struct {
	Run     model.Run `json:"run"`
	Panels  []Panel   `json:"panels"`
	Samples []int     `json:"samples"`
}

// testID names a panel's chart for tests and addresses: the first of its series, or "weighted" where they are scaled.
func (p Panel) testID() string {
	if p.Scale != nil {
		return "chart-weighted"
	}
	return "chart-" + p.Series[0]
}

func (v RunView) data() RunData {
	return RunData{Run: v.Run, Panels: v.panels(), Samples: append([]int{}, v.Samples...)}
}

// mostReferences is how many earlier runs are offered to be drawn behind this one's curves.
const mostReferences = 12

// references are the earlier runs that can be drawn behind this one's curves.
func (v RunView) references() []model.Run {
	return v.Overview.Earlier[:min(mostReferences, len(v.Overview.Earlier))]
}

// referenceText names an earlier run by what tells it from the others.
func referenceText(r model.Run) string {
	return fmt.Sprintf("%s, seed %d, %s steps", views.RunName(r), r.Config.Seed, views.Count(r.Step))
}

// numbered is a panel with its place among all.
type numbered struct {
	Panel
	At int
}

// panelGroup is a heading with its charts; Idle are those of terms with weight 0.
type panelGroup struct {
	Title        string
	Panels, Idle []numbered
}

// groups are the panels under their headings; the decisive ones stand under none, and come first.
func (v RunView) groups() []panelGroup {
	var all []panelGroup
	for i, p := range v.panels() {
		if len(all) == 0 || all[len(all)-1].Title != p.Group {
			all = append(all, panelGroup{Title: p.Group})
		}
		g := &all[len(all)-1]
		if p.Idle {
			g.Idle = append(g.Idle, numbered{p, i})
		} else {
			g.Panels = append(g.Panels, numbered{p, i})
		}
	}
	return all
}

// key is a group's name in addresses.
func (g panelGroup) key() string {
	return strings.Trim(strings.ToLower(strings.Join(strings.FieldsFunc(g.Title, func(r rune) bool { return r == ' ' || r == ',' }), "-")), "-")
}

func (v RunView) canStop() bool { return v.Run.State == model.Running || v.Run.State == model.Queued }

// external says whether another program trained the run, so that nothing here can repeat it.
func (v RunView) external() bool { return v.Run.Config.Model == model.External }

// adopted says whether another program holds the run's model and serves it here.
func (v RunView) adopted() bool { return v.external() && v.Run.Checkpoint > 0 }

func (v RunView) canResume() bool { return v.Run.State.Ended() }

// resumeSteps proposes how far to go: to the end as configured, or for a finished run half as far again.
func (v RunView) resumeSteps() string {
	if v.Trouble.Dialog == "resume" {
		return v.Trouble.Steps
	}
	if v.Run.State != model.Finished || v.Run.Step < v.Run.Config.Steps {
		return strconv.Itoa(v.Run.Config.Steps)
	}
	return strconv.Itoa(v.Run.Config.Steps + max(1, v.Run.Config.Steps/2))
}

// psnr writes the newest PSNR, with the step that it was measured at.
func (v RunView) psnr() string {
	if v.PSNR.Step == 0 {
		return "–"
	}
	return views.Decibels(&v.PSNR.Value)
}

func (v RunView) psnrStep() string {
	if v.PSNR.Step == 0 {
		return ""
	}
	return "at step " + views.Count(v.PSNR.Step)
}

// hint is what a reader of this run's curves must know.
func (v RunView) hint() string {
	if v.Run.Config.Model != "betatcvae" || v.Run.Config.Batch < 1 {
		return ""
	}
	return fmt.Sprintf("The mutual information of β-TCVAE is estimated within a batch: it cannot exceed log(batch) = log(%d) = %.2f nats, whatever the latents hold.",
		v.Run.Config.Batch, math.Log(float64(v.Run.Config.Batch)))
}

// pairs are the images whose slots are swapped at each checkpoint, by their place in the dataset, as JSON.
func (v RunView) pairs() string {
	n := v.Images
	if n < 2 {
		return "[]"
	}
	return fmt.Sprintf("[[%d,%d],[%d,%d]]", 0, n/2, n/3, n-1)
}

// bestText is what the best checkpoint was chosen by.
func (v RunView) bestText() string {
	return fmt.Sprintf("best %s: %s", bestTitles[v.Run.Config.BestBy], strconv.FormatFloat(v.Run.BestValue, 'g', 4, 64))
}

var bestTitles = map[string]string{"psnr": "PSNR in dB", "infom": "InfoM", "infoe": "InfoE", "infoc": "InfoC", "owned": "count of owned factors"}

// kept says what a stop, crash or failure left behind.
func (v RunView) kept() string {
	switch {
	case !v.Run.State.Ended() || v.external():
		return ""
	case v.Run.Checkpoint > 0:
		return fmt.Sprintf("The checkpoint of step %s and the series up to step %s are kept.", views.Count(v.Run.Checkpoint), views.Count(v.Run.Step))
	case v.Run.Step > 0:
		return fmt.Sprintf("No checkpoint is kept; the series up to step %s is.", views.Count(v.Run.Step))
	}
	return "It had not made its first step."
}

// reasonTone is the look of the notice that says why the run ended.
func (v RunView) reasonTone() string {
	switch v.Run.State {
	case model.Failed:
		return "bad"
	case model.Interrupted:
		return "warn"
	}
	return ""
}

// tellsReason says whether there is a reason to show: why the run ended, or what it waits for.
func (v RunView) tellsReason() bool {
	return v.Run.Reason != "" && (v.Run.State.Ended() || v.Run.State == model.Queued)
}

// noSamples says when the first reconstructions come, or that none did.
func (v RunView) noSamples() string {
	if v.external() {
		return "Another program trained this run; it brought no reconstructions."
	}
	switch {
	case !v.Run.State.Ended():
	case v.Run.Step == 0:
		return "The run has no reconstructions: it ended before its first step."
	default:
		return "The run's folder has no reconstructions any more."
	}
	return "The first reconstructions come after step 1, then every " + views.Plural(v.Run.Config.SampleEvery, "step", "steps") + "."
}

// noCheckpoints says when the first checkpoint comes, or that none did.
func (v RunView) noCheckpoints() string {
	if v.Run.State.Ended() {
		return "The run has no checkpoints: it ended before the first, or their files were removed."
	}
	return "The first is saved at step " + views.Count(v.Run.Config.CheckpointEvery) + ", or when the run is stopped."
}

func (v RunView) newestSample() int {
	if len(v.Samples) == 0 {
		return 0
	}
	return v.Samples[len(v.Samples)-1]
}

func (v RunView) sampleURL() string {
	return fmt.Sprintf("/api/runs/%s/samples/%d.png?a=%d", v.Run.ID, v.newestSample(), v.Run.Attempt)
}

// configRow is one line of the configuration table.
type configRow struct {
	Field   model.Field
	Value   string
	Default string
	Changed bool // differs from the preset's default
}

// configGroup is a heading with its lines.
type configGroup struct {
	Title string
	Rows  []configRow
}

func (v RunView) config() []configGroup {
	c := v.Run.Config
	def, err := model.Default(c.Model, c.Preset, c.Dataset)
	byGroup := map[string][]configRow{}
	for _, f := range model.FieldsOf(c.Model) {
		if v.external() && f.Get(c) == f.Get(model.Config{}) { // no hyperparameter that it told
			continue
		}
		row := configRow{Field: f, Value: f.Get(c)}
		if err == nil && f.Name != "engine" && f.Name != "seed" {
			row.Default = f.Get(def)
			row.Changed = row.Default != row.Value
		}
		byGroup[f.Group] = append(byGroup[f.Group], row)
	}
	var all []configGroup
	for _, g := range model.Groups {
		if len(byGroup[g]) > 0 {
			all = append(all, configGroup{groupTexts[g][0], byGroup[g]})
		}
	}
	return all
}

// parameters writes a count of learned numbers: 15.4 M.
func parameters(n int) string {
	switch {
	case n <= 0:
		return "–"
	case n < 1000:
		return strconv.Itoa(n)
	case n < 1e6:
		return strings.TrimSuffix(strconv.FormatFloat(math.Round(float64(n)/100)/10, 'f', 1, 64), ".0") + " k"
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + " M"
}
