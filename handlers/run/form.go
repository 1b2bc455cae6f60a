package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"slotscope/handlers"
	"slotscope/model"
	"slotscope/model/paper/ae"
	"slotscope/views"
	ui "slotscope/views/run"
)

// kept are the fields that keep their values when the preset changes.
var kept = []string{"engine", "seed"}

// form renders the form of a new run. ?from=ID starts from another run's configuration; ?dataset=, ?model= and ?preset= decide the
// defaults. The query may set any other field, except with ?apply=defaults, which the button "Apply defaults" sends.
func (h Runs) form(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	typed, name, err := h.startingPoint(r.Context(), q)
	if err != nil {
		return err
	}
	bad, status := h.unknown(r.Context(), typed["model"], typed["dataset"]), http.StatusOK
	view, err := h.formView(r.Context(), typed, name, handlers.PlaceEntries(q), bad)
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		status = http.StatusUnprocessableEntity
	}
	return handlers.DrawStatus(w, r, status, ui.RunForm(view))
}

// unknown reports an unknown model or dataset, which the other defaults depend on.
func (h Runs) unknown(ctx context.Context, name, dataset string) model.Invalid {
	bad := model.Invalid{}
	if why := (model.Config{Model: name}).Validate()["model"]; why != "" {
		bad["model"] = why
	}
	h.checkData(ctx, model.Config{Dataset: dataset}, bad)
	return bad
}

// startingPoint returns the initial values of the form's fields, and the run's name.
func (h Runs) startingPoint(ctx context.Context, q url.Values) (typed map[string]string, name string, err error) {
	name = q.Get("name")
	cfg, defaultsErr := model.Config{}, error(nil)
	if from := q.Get("from"); from != "" {
		run, err := h.Service.Get(ctx, from)
		if err != nil {
			return nil, "", err
		}
		cfg = run.Config
		if name == "" && run.Name != "" {
			name = run.Name + " copy"
		}
	} else {
		cfg, defaultsErr = h.defaults(ctx, q.Get)
	}
	if defaultsErr != nil {
		return nil, "", defaultsErr
	}
	typed = textOf(cfg)
	override := slices.Collect(maps.Keys(q))
	if q.Has("apply") {
		override = kept
	}
	for _, entry := range override {
		if _, known := typed[entry]; known && q.Has(entry) {
			typed[entry] = q.Get(entry)
		}
	}
	return typed, name, nil
}

// defaults returns the default configuration of the dataset, model and preset that get returns; by default the first dataset, hrr and tiny.
func (h Runs) defaults(ctx context.Context, get func(string) string) (model.Config, error) {
	pick := func(name, otherwise string) string {
		if v := strings.TrimSpace(get(name)); v != "" {
			return v
		}
		return otherwise
	}
	first, infos := "", h.Datasets.List(ctx)
	if len(infos) > 0 {
		first = infos[0].Name
	}
	cfg, err := model.Default(pick("model", "hrr"), pick("preset", "tiny"), pick("dataset", first))
	if info, unknown := handlers.InfoOf(ctx, h.Datasets, cfg.Dataset); unknown == nil {
		cfg = cfg.WithFactors(len(info.Factors))
		cfg.Batch, cfg.EvalImages = min(cfg.Batch, info.Len), min(cfg.EvalImages, info.Len) // a user's dataset may be small
	}
	return cfg, err
}

func textOf(cfg model.Config) map[string]string {
	typed := map[string]string{}
	for _, f := range model.Fields() {
		typed[f.Name] = f.Get(cfg)
	}
	return typed
}

// create starts a run from the form, or shows the form again with the input and the errors.
func (h Runs) create(w http.ResponseWriter, r *http.Request) error {
	if err := handlers.ReadForm(w, r); err != nil {
		return err
	}
	typed, name := typedIn(r.PostForm), strings.TrimSpace(r.PostFormValue("name"))
	if !hasFields(r.PostForm) {
		return h.formAgain(w, r, map[string]string{}, name, model.Invalid{"": "the form has no hyperparameters; check the values below and start the run again"})
	}
	run, err := h.start(r.Context(), typed, name, handlers.Placed(r.PostForm))
	var invalid model.Invalid
	if errors.As(err, &invalid) {
		return h.formAgain(w, r, typed, name, invalid)
	}
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/runs/"+run.ID, http.StatusSeeOther)
	return nil
}

// hasFields reports whether a posted form has a hyperparameter. One without, e.g. an empty request, starts no run.
func hasFields(form url.Values) bool {
	return slices.ContainsFunc(model.Fields(), func(f model.Field) bool { return form.Has(f.Name) })
}

// typedIn returns the fields of a posted form; a missing checkbox counts as false. Fields that the chosen model does not have are ignored:
// browsers without scripts send them after a change of the model.
func typedIn(form url.Values) map[string]string {
	typed := map[string]string{}
	for _, f := range model.FieldsOf(form.Get("model")) {
		if form.Has(f.Name) {
			typed[f.Name] = form.Get(f.Name)
		} else if f.Kind == model.Bool {
			typed[f.Name] = "false"
		}
	}
	return typed
}

// start creates a run from field values; missing fields use their defaults. All errors are returned in one model.Invalid.
func (h Runs) start(ctx context.Context, typed map[string]string, name string, at model.Placement) (model.Run, error) {
	bad := model.Invalid{}
	if err := handlers.CheckPlace(h.Places, at, bad); err != nil {
		return model.Run{}, err
	}
	cfg, err := h.defaults(ctx, func(entry string) string { return typed[entry] })
	if err != nil { // other fields cannot be checked without the defaults
		return model.Run{}, err
	}
	for entry, text := range typed {
		if err := handlers.Collect(bad, cfg.Set(entry, text)); err != nil {
			return model.Run{}, err
		}
	}
	for entry, why := range cfg.Validate() {
		if bad[entry] == "" {
			bad[entry] = why
		}
	}
	h.checkData(ctx, cfg, bad)
	if len(name) > nameSize {
		bad["name"] = fmt.Sprintf("has %d bytes; the limit is %d", len(name), nameSize)
	}
	if err := bad.OrNil(); err != nil {
		return model.Run{}, err
	}
	return h.Service.CreateAt(ctx, cfg, name, at)
}

// checkData adds errors of a configuration that depend on its dataset.
func (h Runs) checkData(ctx context.Context, cfg model.Config, bad model.Invalid) {
	info, err := handlers.InfoOf(ctx, h.Datasets, cfg.Dataset)
	if err == nil {
		if cfg.Batch > info.Len && bad["batch"] == "" {
			bad["batch"] = fmt.Sprintf("%s is more than the %s images of %s", views.Count(cfg.Batch), views.Count(info.Len), info.Name)
		}
		if cfg.EvalImages > info.Len && bad["eval_images"] == "" {
			bad["eval_images"] = fmt.Sprintf("%s is more than the %s images of %s", views.Count(cfg.EvalImages), views.Count(info.Len), info.Name)
		}
		return
	}
	if bad["dataset"] == "" {
		bad["dataset"] = err.Error()
		if invalid := (model.Invalid{}); errors.As(err, &invalid) && invalid["dataset"] != "" {
			bad["dataset"] = invalid["dataset"]
		}
	}
}

// formAgain renders the form with the user's input and an error at each invalid field.
func (h Runs) formAgain(w http.ResponseWriter, r *http.Request, typed map[string]string, name string, bad model.Invalid) error {
	view, err := h.formView(r.Context(), typed, name, r.PostForm, bad)
	if err != nil {
		return err
	}
	return handlers.DrawStatus(w, r, http.StatusUnprocessableEntity, ui.RunForm(view))
}

func (h Runs) formView(ctx context.Context, typed map[string]string, name string, place url.Values, bad model.Invalid) (ui.RunFormView, error) {
	view := ui.RunFormView{Place: handlers.PlaceView(h.Places, place, bad), Name: name, NameError: bad["name"], Whole: handlers.Sentence(bad[""]), Problems: len(bad)}
	defaults, err := h.defaults(ctx, func(entry string) string { return typed[entry] })
	if err != nil { // unknown preset: show the form with the defaults of another one
		defaults, _ = h.defaults(ctx, func(string) string { return "" })
	}
	hints := hintsOf(defaults, typed)
	byGroup := map[string][]ui.FormField{}
	for _, f := range model.FieldsOf(defaults.Model) {
		field := ui.FormField{Field: f, Value: typed[f.Name], Default: f.Get(defaults), Source: f.SourceIn(defaults), Error: bad[f.Name], Hint: hints[f.Name]}
		if _, given := typed[f.Name]; !given {
			field.Value = field.Default
		}
		field.Options = h.options(ctx, f, field.Value)
		byGroup[f.Group] = append(byGroup[f.Group], field)
	}
	for _, g := range model.Groups {
		if len(byGroup[g]) > 0 {
			view.Groups = append(view.Groups, ui.NewFormGroup(g, byGroup[g]))
		}
	}
	view.Parameters, view.Networks = h.parameters(ctx, defaults, typed)
	view.Rate, view.RateFrom = h.measuredRate(ctx, typed)
	return view, nil
}

// options returns the options of a select field, including the current value even if it is invalid.
func (h Runs) options(ctx context.Context, f model.Field, value string) []ui.Option {
	if f.Kind != model.Choice {
		return nil
	}
	var all []ui.Option
	switch f.Name {
	case "dataset":
		for _, info := range h.Datasets.List(ctx) {
			all = append(all, ui.Option{Value: info.Name, Label: info.Name})
		}
	case "model":
		for _, name := range f.Choices {
			all = append(all, ui.Option{Value: name, Label: model.ModelTitle(name)})
		}
	default:
		for _, name := range f.Choices {
			all = append(all, ui.Option{Value: name, Label: name})
		}
	}
	if !slices.ContainsFunc(all, func(o ui.Option) bool { return o.Value == value }) {
		all = append(all, ui.Option{Value: value, Label: value})
	}
	return all
}

// parameters returns the number of trainable parameters in total and in encoder and decoder; 0 if the fields are invalid.
func (h Runs) parameters(ctx context.Context, cfg model.Config, typed map[string]string) (all, networks int) {
	for _, f := range model.FieldsOf(cfg.Model) {
		if text, given := typed[f.Name]; given && f.Set(&cfg, text) != nil {
			return 0, 0
		}
	}
	if info, err := handlers.InfoOf(ctx, h.Datasets, cfg.Dataset); err == nil {
		if net, err := ae.New(cfg, ae.Image{H: info.H, W: info.W, C: info.C}); err == nil {
			return net.Parameters()
		}
	}
	return 0, 0
}

// measuredRate returns the images per second of the newest run of the same model and preset, and the run's name; 0 if none was measured.
func (h Runs) measuredRate(ctx context.Context, typed map[string]string) (float64, string) {
	runs, err := h.Service.List(ctx)
	if err != nil {
		return 0, "" // only the estimate is lost
	}
	slices.SortFunc(runs, func(a, b model.Run) int { return b.Created.Compare(a.Created) })
	for _, run := range runs {
		if run.ImagesPerSecond > 0 && run.Config.Model == typed["model"] && run.Config.Preset == typed["preset"] {
			return run.ImagesPerSecond, views.RunName(run)
		}
	}
	return 0, ""
}

// typedJSON converts a JSON configuration to field values; widths may be a list.
func typedJSON(config map[string]json.RawMessage) (map[string]string, error) {
	typed, bad := map[string]string{}, model.Invalid{}
	for entry, raw := range config {
		field, known := model.FieldByName(entry)
		if !known {
			bad[entry] = "unknown hyperparameter"
			continue
		}
		text, err := entryText(field.Kind, raw)
		if err != nil {
			bad[entry] = err.Error()
		}
		typed[entry] = text
	}
	return typed, bad.OrNil()
}

func entryText(kind model.Kind, raw json.RawMessage) (string, error) {
	var text string
	var list []json.Number
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text, nil
	case kind == model.Widths && json.Unmarshal(raw, &list) == nil:
		parts := make([]string, len(list))
		for i, n := range list {
			parts[i] = n.String()
		}
		return strings.Join(parts, ","), nil
	case len(raw) > 0 && (raw[0] == '{' || raw[0] == '['):
		return "", errors.New("expected a value, not an object or a list")
	}
	return string(raw), nil // a number, true, false
}

// hintsOf returns the hints for the field values; invalid fields use their defaults.
func hintsOf(c model.Config, typed map[string]string) map[string]string {
	for _, f := range model.FieldsOf(c.Model) {
		if text, given := typed[f.Name]; given {
			_ = f.Set(&c, text) // errors are shown at the field
		}
	}
	return c.Hints()
}
