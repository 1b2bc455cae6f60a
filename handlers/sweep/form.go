package sweep

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/measure/report"
	"slotscope/model/sweep"
	ui "slotscope/views/sweep"
)

// sweepForm holds the form's fields as typed.
type sweepForm struct {
	kind, name, preset, steps, seeds, set string
	fields, values                        []string // hyperparameters, line by line
	search, draws, drawSeed               string
	race                                  string // seeds before the first round of the race; empty if none
	models, datasets, parts, fieldParts   []string
	place                                 url.Values
}

func (h Sweeps) form(w http.ResponseWriter, r *http.Request) error {
	return h.drawForm(w, r, sweepForm{kind: cmp.Or(r.URL.Query().Get("kind"), "paper"), name: "my sweep", preset: "tiny", seeds: "3", parts: []string{"main"}, fieldParts: []string{"models"}, models: []string{"hrr"}, search: "grid", draws: "20", drawSeed: "0"}, nil, nil)
}

// readSweepForm reads the form's fields.
func readSweepForm(q url.Values) sweepForm {
	text := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	f := sweepForm{kind: q.Get("kind"), name: text("name"), preset: q.Get("preset"), steps: text("steps"), seeds: text("seeds"), set: q.Get("set"),
		search: q.Get("search"), draws: text("draws"), drawSeed: text("draw-seed"), models: q["models"], datasets: q["datasets"], parts: q["parts"], fieldParts: q["field-parts"], place: q}
	if q.Get("race") != "" {
		f.race = text("race-least")
	}
	for i, field := range q["field"] {
		value := ""
		if i < len(q["values"]) {
			value = q["values"][i]
		}
		if field != "" || strings.TrimSpace(value) != "" {
			f.fields, f.values = append(f.fields, field), append(f.values, value)
		}
	}
	return f
}

// leastLines is the least number of lines for hyperparameters in the form. One more than the filled ones is shown.
const leastLines = 2

func (h Sweeps) drawForm(w http.ResponseWriter, r *http.Request, f sweepForm, bad model.Invalid, e *sweep.Estimate) error {
	view := ui.SweepFormView{Place: handlers.PlaceView(h.Places, f.place, bad), Kind: f.kind, Name: f.name, Preset: f.preset, Steps: f.steps, Seeds: f.seeds, Set: f.set,
		Search: f.search, Draws: f.draws, DrawSeed: f.drawSeed, Race: f.race, Bad: bad, Presets: model.PresetNames(), Estimate: e}
	for _, name := range model.ModelNames() {
		view.Models = append(view.Models, ui.Choosable{Key: name, Label: report.ModelLabel(name), Chosen: slices.Contains(f.models, name)})
	}
	for i, info := range h.Datasets.List(r.Context()) {
		view.Datasets = append(view.Datasets, ui.Choosable{Key: info.Name, Label: info.Name, Chosen: slices.Contains(f.datasets, info.Name) || len(f.datasets) == 0 && i == 0})
	}
	view.Parts, view.FieldParts = ui.PartsOf(f.parts), ui.FieldPartsOf(f.fieldParts)
	for i := range max(leastLines, len(f.fields)+1) {
		line := ui.VaryLine{Problem: bad[fmt.Sprintf("vary[%d]", i)]}
		if i < len(f.fields) {
			line.Field, line.Values = f.fields[i], f.values[i]
		}
		view.Vary = append(view.Vary, line)
	}
	for _, field := range model.Fields() {
		if !slices.Contains([]string{"model", "dataset", "seed", "preset"}, field.Name) && !field.Computing() && field.Group != "cadence" {
			view.FieldNames = append(view.FieldNames, ui.Choosable{Key: field.Name, Label: field.Label})
		}
	}
	status := http.StatusOK
	if len(bad) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return handlers.DrawStatus(w, r, status, ui.SweepForm(view))
}

// create starts the sweep described by the form; with do=estimate it only shows an estimate of the work.
func (h Sweeps) create(w http.ResponseWriter, r *http.Request) error {
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	f := readSweepForm(r.PostForm)
	at, bad := handlers.Placed(r.PostForm), model.Invalid{}
	if err := handlers.CheckPlace(h.Places, at, bad); err != nil {
		return err
	}
	plan, err := f.plan()
	if err == nil && len(bad) == 0 {
		if r.PostForm.Get("do") == "estimate" {
			var e sweep.Estimate
			if e, err = h.estimate(r.Context(), plan); err == nil {
				return h.drawForm(w, r, f, nil, &e)
			}
		} else {
			var s sweep.Status
			if s, err = h.begin(r.Context(), plan, at); err == nil {
				http.Redirect(w, r, "/sweeps/"+s.ID, http.StatusSeeOther)
				return nil
			}
		}
	}
	if err := handlers.Collect(bad, err); err != nil {
		return err
	}
	return h.drawForm(w, r, f, f.inPlace(bad), nil)
}

// formNames maps keys of a plan's problems to names of form fields.
var formNames = map[string]string{"parts[0].random.draws": "draws", "parts[0].random": "draws", "parts[0].race.least": "race", "parts[0].models": "models", "parts[0].datasets": "datasets"}

// inPlace renames the keys of a plan's problems to the form fields that show them.
func (f sweepForm) inPlace(bad model.Invalid) model.Invalid {
	out := model.Invalid{}
	for key, why := range bad {
		switch {
		case key == "parts" && f.kind == "field":
			key = "field-parts"
		case key == "parts" && f.kind != "paper": // a custom sweep has no such field
			key = ""
		}
		out[cmp.Or(formNames[key], key)] = why
	}
	return out
}

// settled returns the plan with the number of factors of its datasets; an unknown dataset is an error.
func (h Sweeps) settled(ctx context.Context, p sweep.Plan) (sweep.Plan, error) {
	return p.Settle(func(dataset string) (int, error) {
		info, err := handlers.InfoOf(ctx, h.Datasets, dataset)
		return len(info.Factors), err
	})
}

// begin creates a sweep after checking that all its datasets exist.
func (h Sweeps) begin(ctx context.Context, p sweep.Plan, at model.Placement) (sweep.Status, error) {
	p, err := h.settled(ctx, p)
	if err != nil {
		return sweep.Status{}, err
	}
	return h.Service.CreateAt(ctx, p, at)
}

// estimate returns how much work a plan is, after checking that all its datasets exist.
func (h Sweeps) estimate(ctx context.Context, p sweep.Plan) (sweep.Estimate, error) {
	p, err := h.settled(ctx, p)
	if err != nil {
		return sweep.Estimate{}, err
	}
	return h.Service.Estimate(ctx, p)
}

// plan returns the plan described by the form: the paper's or the field's protocol, scaled, or a custom one.
func (f sweepForm) plan() (sweep.Plan, error) {
	bad := model.Invalid{}
	steps, err := handlers.StepsOf(f.steps)
	if err != nil {
		bad["steps"] = fmt.Sprintf("%q is not a number of steps", f.steps)
	}
	whole := func(name, text string, least, most int) int {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			bad[name] = fmt.Sprintf("%q is not a whole number from %d to %d", text, least, most)
		}
		return n
	}
	n := whole("seeds", f.seeds, 1, 100)
	if len(f.datasets) == 0 {
		bad["datasets"] = "choose at least one dataset"
	}
	if f.kind == "field" {
		if len(bad) > 0 {
			return sweep.Plan{}, bad
		}
		return sweep.Field(sweep.Scale{Preset: f.preset, Steps: steps, Seeds: n, Datasets: f.datasets, Parts: f.fieldParts})
	}
	if f.kind == "paper" {
		if len(bad) > 0 {
			return sweep.Plan{}, bad
		}
		return sweep.Paper(sweep.Scale{Preset: f.preset, Steps: steps, Seeds: n, Datasets: f.datasets, Parts: f.parts})
	}
	o := sweep.Own{Name: f.name, Preset: f.preset, Steps: steps, Seeds: n, Models: f.models, Datasets: f.datasets}
	if len(f.models) == 0 {
		bad["models"] = "choose at least one model"
	}
	if f.search == "random" {
		o.Draws = whole("draws", f.draws, 1, 5000)
		o.DrawSeed = int64(whole("draw-seed", f.drawSeed, 0, 1<<31-1))
	}
	if f.race != "" {
		o.Race = whole("race", f.race, 2, 100)
	}
	for i := range f.fields {
		o.Vary = append(o.Vary, sweep.Line{Name: f.fields[i], Value: f.values[i]})
	}
	for text := range strings.Lines(f.set) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		line, err := sweep.ParseLine(text)
		if err != nil {
			bad["set"] = err.Error()
		}
		o.Set = append(o.Set, line)
	}
	if len(bad) > 0 {
		return sweep.Plan{}, bad
	}
	return o.Plan()
}
