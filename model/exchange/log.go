package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"slotscope/model"
	"slotscope/model/folder"
)

// Limits of a batch of points.
const (
	MostPoints = 10_000
	mostSeries = 1000 // per point
)

// Store creates runs that other programs log over HTTP.
type Store struct{ Data string } // the data folder

// Begin creates a run for logging; hparams are strings, numbers and booleans. The name may be empty.
func (s Store) Begin(name string, hparams map[string]any) (model.Run, error) {
	name, err := model.CleanName(name)
	if err != nil {
		return model.Run{}, err
	}
	for key, v := range hparams {
		switch v.(type) {
		case string, float64, bool:
		default:
			return model.Run{}, model.Invalid{"external": fmt.Sprintf("%q is not text, a number, true or false", key)}
		}
	}
	root, err := folder.Root(s.Data)
	if err != nil {
		return model.Run{}, err
	}
	defer root.Close()
	r := foreign{tool: "api", place: "POST /api/runs", name: name, state: model.Running, hparams: hparams}
	f, err := folder.Create(root.RunDir(model.NewID(time.Now())), r.config(), name)
	if err != nil {
		return model.Run{}, err
	}
	defer f.Close()
	lock, err := f.Lock()
	if err != nil {
		return model.Run{}, err
	}
	defer lock.Unlock()
	if err := r.tell(f, 0); err != nil {
		return model.Run{}, err
	}
	return f.Run()
}

// Logged is the result of logging a batch.
type Logged struct {
	Added   int `json:"added"`   // points added
	Skipped int `json:"skipped"` // points at or before the last stored step: repeated or too late
	Last    int `json:"last"`    // last step stored
}

// Log appends points to a run created by Begin. Sending a batch twice is safe: steps up to the last stored step are skipped.
func Log(f *folder.Folder, points []model.Point) (out Logged, err error) {
	if f.Config().Model != model.External {
		return out, fmt.Errorf("run %s is trained by Slotscope; points can be logged only to runs of other programs: %w", f.ID(), model.ErrConflict)
	}
	if err := checkPoints(points); err != nil {
		return out, err
	}
	lock, err := f.Lock()
	if err != nil {
		return out, err
	}
	defer lock.Unlock()
	status, err := f.Status()
	if err != nil {
		return out, err
	}
	if status.State != model.Running {
		return out, fmt.Errorf("run %s has ended; start a new run: %w", f.ID(), model.ErrConflict)
	}
	stored, err := f.LastPoint() // may exceed status.Step if the last batch failed on a full disk or was killed
	if err != nil {
		return out, err
	}
	appender, err := f.Points()
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(points, func(a, b model.Point) int { return cmp.Compare(a.Step, b.Step) })
	out.Last = max(status.Step, stored)
	for i, p := range points {
		if p.Step <= out.Last {
			out.Skipped++
			continue
		}
		if p.Time.IsZero() {
			points[i].Time = time.Now().UTC()
		}
		if err := appender.Append(points[i]); err != nil {
			return out, fmt.Errorf("logging run %s: %w", f.ID(), errors.Join(err, appender.Close()))
		}
		out.Added, out.Last = out.Added+1, p.Step
	}
	if err := appender.Close(); err != nil {
		return out, fmt.Errorf("logging run %s: %w", f.ID(), err)
	}
	if out.Last == status.Step {
		return out, nil
	}
	status.Step = out.Last
	if cfg := f.Config(); cfg.Steps < out.Last {
		cfg.Steps = out.Last
		if err := f.SetConfig(cfg); err != nil {
			return out, err
		}
	}
	return out, f.SetStatus(status)
}

func checkPoints(points []model.Point) error {
	if len(points) == 0 || len(points) > MostPoints {
		return model.Invalid{"points": fmt.Sprintf("got %d points; a batch has 1 to %d", len(points), MostPoints)}
	}
	for _, p := range points {
		if len(p.Values) == 0 || len(p.Values) > mostSeries {
			return model.Invalid{"points": fmt.Sprintf("step %d has %d values; a point has 1 to %d", p.Step, len(p.Values), mostSeries)}
		}
		for _, name := range slices.Sorted(maps.Keys(p.Values)) {
			if name != seriesName(name) {
				return model.Invalid{"points": fmt.Sprintf("step %d: %q cannot name a series; use at most %d characters without commas", p.Step, name, longestName)}
			}
		}
	}
	return nil
}
