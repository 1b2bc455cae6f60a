package exchange

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
	"slotscope/model/format/tensorboard"
	"slotscope/model/format/wandb"
)

// Tools are the names of the supported programs.
func Tools() []string { return []string{"tensorboard", "mlflow", "wandb"} }

// Imported is the result of importing one foreign run.
type Imported struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Added int    `json:"added"` // steps that are new
	Steps int    `json:"steps"` // total steps
	Note  string `json:"note,omitempty"`
}

// sample is one value of one series.
type sample struct {
	step  int
	name  int // index in foreign.names
	value float64
	at    time.Time
}

// foreign is a run of another program.
type foreign struct {
	tool, place string // place identifies a run of a tool: its folder or file
	name        string
	state       model.State
	hparams     map[string]any
	names       []string
	samples     []sample
	note        string // what could not be read

	numbers map[string]int // index in names by original name
}

// add appends one value; it ignores negative steps.
func (r *foreign) add(name string, step int, value float64, at time.Time) {
	if step < 0 {
		return
	}
	number, ok := r.numbers[name]
	if !ok {
		if r.numbers == nil {
			r.numbers = map[string]int{}
		}
		number = len(r.names)
		r.numbers[name], r.names = number, append(r.names, seriesName(name))
	}
	r.samples = append(r.samples, sample{step, number, value, at})
}

// longestName is the maximum length of series names in bytes.
const longestName = 200

// seriesName makes a name valid in a comma-separated list.
func seriesName(name string) string {
	name = strings.Map(func(c rune) rune {
		switch {
		case c == ',':
			return ';'
		case c < ' ' || c == 0x7f:
			return '_'
		}
		return c
	}, strings.TrimSpace(name))
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	return cmp.Or(name, "unnamed")
}

// order sorts samples by step and keeps the last sample of each series and step. If steps start at 0, all steps increase by one, because
// ours start at 1.
func (r *foreign) order() {
	least := math.MaxInt
	for _, s := range r.samples {
		least = min(least, s.step)
	}
	if least == 0 {
		for i := range r.samples {
			r.samples[i].step++
		}
	}
	slices.SortStableFunc(r.samples, func(a, b sample) int { return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.name, b.name)) })
	kept := r.samples[:0]
	for i, s := range r.samples {
		if i+1 < len(r.samples) && r.samples[i+1].step == s.step && r.samples[i+1].name == s.name {
			continue
		}
		kept = append(kept, s)
	}
	r.samples = kept
}

// point returns the point that starts at sample i, and the index of the next point's first sample.
func (r *foreign) point(i int) (p model.Point, next int) {
	p = model.Point{Step: r.samples[i].step, Values: map[string]float64{}}
	for next = i; next < len(r.samples) && r.samples[next].step == p.Step; next++ {
		s := r.samples[next]
		p.Values[r.names[s.name]] = s.value
		if s.at.After(p.Time) {
			p.Time = s.at
		}
	}
	return p, next
}

// id is derived from the place, so that a second import updates the same run.
func (r *foreign) id() string {
	var slug strings.Builder
	for _, c := range strings.ToLower(r.name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			slug.WriteRune(c)
		} else if text := slug.String(); text != "" && !strings.HasSuffix(text, "-") {
			slug.WriteByte('-')
		}
	}
	name := slug.String()
	name = strings.Trim(name[:min(len(name), 30)], "-")
	sum := sha256.Sum256([]byte(r.tool + "\x00" + r.place))
	return strings.Trim(r.tool+"-"+name, "-") + fmt.Sprintf("-%x", sum[:5])
}

// Import reads the runs of another program below a path and stores each as a run in the data folder. Existing runs get the new points.
// The error names runs that could not be read or stored; all others are still stored.
func Import(ctx context.Context, dataDir, tool, path string) ([]Imported, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	read, ok := map[string]func(string) ([]*foreign, error){"tensorboard": readTensorBoard, "mlflow": readMLflow, "wandb": readWandb}[tool]
	if !ok {
		return nil, model.Invalid{"tool": fmt.Sprintf("unknown tool %q; choose one of %s", tool, strings.Join(Tools(), ", "))}
	}
	runs, readErr := read(path)
	if len(runs) == 0 && readErr == nil {
		return nil, fmt.Errorf("no %s runs in %s: %w", tool, path, model.ErrNotFound)
	}
	root, err := folder.Root(dataDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var all []Imported
	failures := []error{readErr}
	for _, r := range runs {
		if err := ctx.Err(); err != nil {
			return all, fmt.Errorf("import of %s: %w", path, err)
		}
		if r.note != "" && len(r.samples) == 0 {
			continue // nothing could be read; readErr has the reason
		}
		one, err := r.keep(root)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", r.place, err))
			continue
		}
		all = append(all, one)
	}
	return all, errors.Join(failures...)
}

// keep stores the run, adding the new points.
func (r *foreign) keep(root *folder.Data) (Imported, error) {
	r.order()
	f, err := openOrCreate(root.RunDir(r.id()), r.config(), r.name)
	if err != nil {
		return Imported{}, err
	}
	defer f.Close()
	lock, err := f.Lock()
	if err != nil {
		return Imported{}, err
	}
	defer lock.Unlock()
	added, last, err := r.append(f)
	if err != nil {
		return Imported{}, err
	}
	out := Imported{ID: f.ID(), Name: r.name, Added: added, Steps: last, Note: r.note}
	if status, err := f.Status(); err == nil && added == 0 && status.State == r.state {
		return out, nil
	}
	return out, r.tell(f, last)
}

func openOrCreate(dir string, cfg model.Config, name string) (*folder.Folder, error) {
	f, err := folder.Open(dir)
	if errors.Is(err, model.ErrNotFound) {
		return folder.Create(dir, cfg, name)
	}
	return f, err
}

// append writes the points that the folder lacks. If stored points differ, those from the first difference on are replaced.
func (r *foreign) append(f *folder.Folder) (added, last int, err error) {
	next, same := 0, 0 // next sample; last step that matches
	differs := errors.New("differs")
	err = f.Each(func(p model.Point) error {
		if next >= len(r.samples) {
			return differs
		}
		want, after := r.point(next)
		if want.Step != p.Step || !maps.EqualFunc(want.Values, p.Values, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }) {
			return differs
		}
		next, same = after, p.Step
		return nil
	})
	if errors.Is(err, differs) {
		err = f.TruncatePoints(same)
	}
	if err != nil {
		return 0, 0, err
	}
	points, err := f.Points()
	if err != nil {
		return 0, 0, err
	}
	last = same
	for next < len(r.samples) {
		var p model.Point
		p, next = r.point(next)
		if err := points.Append(p); err != nil {
			return added, last, errors.Join(err, points.Close())
		}
		added, last = added+1, p.Step
	}
	return added, last, points.Close()
}

// tell writes the run's status, configuration and notes.
func (r *foreign) tell(f *folder.Folder, last int) error {
	s := model.Status{State: r.state, Step: last, Attempt: 1, Engine: r.tool, EngineWhy: "Imported from " + r.tool + ".", Reason: "Imported from " + r.place + "."}
	if len(r.samples) > 0 {
		s.Started, s.Ended = r.samples[0].at, r.samples[len(r.samples)-1].at
	}
	cfg := r.config()
	cfg.Steps = max(cfg.Steps, last)
	if err := f.SetConfig(cfg); err != nil {
		return err
	}
	notes := []string{"Imported from " + r.tool + ": " + r.place}
	for _, name := range slices.Sorted(maps.Keys(r.hparams)) {
		notes = append(notes, fmt.Sprintf("%s = %v", name, r.hparams[name]))
	}
	meta, err := f.Meta()
	if err == nil && (meta.Notes == "" || strings.HasPrefix(meta.Notes, "Imported from ")) {
		meta.Notes = strings.Join(notes, "\n")
		if len(meta.Notes) > 8000 {
			meta.Notes = strings.ToValidUTF8(meta.Notes[:8000], "")
		}
		err = f.SetMeta(meta)
	}
	return errors.Join(err, f.SetStatus(s))
}

// config translates the hyperparameters with known names.
func (r *foreign) config() model.Config {
	c := model.Config{Model: model.External, Preset: r.tool, Dataset: "unknown", Engine: "auto"}
	for name, v := range r.hparams {
		n, isNumber := v.(float64)
		if text, ok := v.(string); ok {
			var err error
			n, err = strconv.ParseFloat(text, 64)
			isNumber = err == nil
		}
		whole := isNumber && n >= 0 && n <= math.MaxInt32 && n == math.Trunc(n)
		switch strings.ToLower(name) {
		case "dataset", "data", "dataset_name":
			c.Dataset = seriesName(fmt.Sprint(v))
		case "batch", "batch_size", "train_batch_size":
			if whole {
				c.Batch = int(n)
			}
		case "seed":
			if whole {
				c.Seed = int64(n)
			}
		case "lr", "learning_rate":
			if isNumber && n >= 0 && n <= 10 {
				c.LR = n
			}
		case "steps", "max_steps", "num_steps":
			if whole {
				c.Steps = int(n)
			}
		}
	}
	return c
}

// readTensorBoard treats every folder with event files as a run, like TensorBoard.
func readTensorBoard(path string) ([]*foreign, error) {
	byDir := map[string][]string{}
	err := walkFiles(path, func(file string) {
		if strings.Contains(filepath.Base(file), "tfevents") {
			byDir[filepath.Dir(file)] = append(byDir[filepath.Dir(file)], file)
		}
	})
	var runs []*foreign
	failures := []error{err}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		r := &foreign{tool: "tensorboard", place: dir, name: nameBelow(path, dir), state: model.Finished, hparams: map[string]any{}}
		slices.Sort(byDir[dir]) // file names start with the time
		for _, file := range byDir[dir] {
			if _, err := tensorboard.Read(file, 0, r.event); err != nil {
				r.note = err.Error() // values before the damage are kept
				failures = append(failures, err)
			}
		}
		runs = append(runs, r)
	}
	return runs, errors.Join(failures...)
}

func (r *foreign) event(e tensorboard.Event) {
	switch {
	case e.Restart:
		r.samples = slices.DeleteFunc(r.samples, func(s sample) bool { return s.step >= e.Step })
	case e.HParams != nil:
		maps.Copy(r.hparams, e.HParams)
	default:
		r.add(e.Tag, e.Step, e.Value, e.Time)
	}
}

// nameBelow names a run by its folder, relative to the given path.
func nameBelow(path, dir string) string {
	rel, err := filepath.Rel(path, dir)
	if err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return filepath.Base(dir)
	}
	return filepath.ToSlash(rel)
}

// walkFiles visits the regular files below a path; it does not follow links.
func walkFiles(path string, visit func(file string)) error {
	return filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() {
			visit(file)
		}
		return nil
	})
}

// readMLflow treats every folder with meta.yaml and metrics or params as a run.
func readMLflow(path string) ([]*foreign, error) {
	var dirs []string
	err := walkFiles(path, func(file string) {
		if filepath.Base(file) != "meta.yaml" {
			return
		}
		dir := filepath.Dir(file)
		for _, sub := range []string{"metrics", "params"} {
			if info, err := os.Stat(filepath.Join(dir, sub)); err == nil && info.IsDir() {
				dirs = append(dirs, dir)
				return
			}
		}
	})
	var runs []*foreign
	failures := []error{err}
	for _, dir := range dirs {
		r := &foreign{tool: "mlflow", place: dir, name: filepath.Base(dir), state: model.Finished, hparams: map[string]any{}}
		if err := r.mlflow(dir); err != nil {
			r.note = err.Error()
			failures = append(failures, err)
		}
		runs = append(runs, r)
	}
	return runs, errors.Join(failures...)
}

// maxText is the maximum number of bytes read from a small file.
const maxText = 1 << 20

func (r *foreign) mlflow(dir string) error {
	if name := smallText(filepath.Join(dir, "tags", "mlflow.runName")); name != "" {
		r.name = name
	}
	for line := range strings.Lines(smallText(filepath.Join(dir, "meta.yaml"))) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && key == "status" && (value == "4" || value == "FAILED") {
			r.state = model.Failed
		}
	}
	params := filepath.Join(dir, "params")
	failures := []error{optional(walkFiles(params, func(file string) { r.hparams[nameBelow(params, file)] = smallText(file) }))}
	metrics := filepath.Join(dir, "metrics")
	err := optional(walkFiles(metrics, func(file string) {
		failures = append(failures, r.metric(nameBelow(metrics, file), file))
	}))
	return errors.Join(append(failures, err)...)
}

func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// metric parses lines of milliseconds, value and step.
func (r *foreign) metric(name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		step, bad := 0, len(words) < 2 || len(words) > 3
		var at int64
		var value float64
		if !bad {
			var errs [3]error
			at, errs[0] = strconv.ParseInt(words[0], 10, 64)
			value, errs[1] = strconv.ParseFloat(words[1], 64)
			if len(words) == 3 {
				step, errs[2] = strconv.Atoi(words[2])
			}
			bad = errors.Join(errs[:]...) != nil
		}
		if bad {
			return fmt.Errorf("%s, line %d is not milliseconds, value and step", file, n)
		}
		r.add(name, step, value, time.UnixMilli(at).UTC())
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func smallText(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(raw)), "\uFFFD")
}

// readWandb treats every .wandb file as a run.
func readWandb(path string) ([]*foreign, error) {
	var files []string
	err := walkFiles(path, func(file string) {
		if strings.HasSuffix(file, ".wandb") {
			files = append(files, file)
		}
	})
	var runs []*foreign
	failures := []error{err}
	for _, file := range files {
		r := &foreign{tool: "wandb", place: file, state: model.Finished}
		log, err := wandb.Read(file, func(row wandb.Row) {
			at := time.Time{}
			if row.Seconds > 0 && row.Seconds < 1e11 {
				at = time.UnixMicro(int64(row.Seconds * 1e6)).UTC()
			}
			for name, v := range row.Values {
				r.add(name, row.Step, v, at)
			}
		})
		if err != nil {
			r.note = err.Error()
			failures = append(failures, err)
		}
		r.hparams = log.Config
		r.name = cmp.Or(log.Name, log.ID, strings.TrimSuffix(filepath.Base(file), ".wandb"))
		if log.Failed {
			r.state = model.Failed
		}
		runs = append(runs, r)
	}
	return runs, errors.Join(failures...)
}
