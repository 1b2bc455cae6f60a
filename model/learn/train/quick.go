package train

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/measure/metric"
)

// quickRows is how many images of the evaluation set InfoMEC is measured on while training, or EvalImages if fewer. InfoE of so
// few rows is higher than that of an evaluation's 10,000, the more so the more codes are in use: hold it against itself alone.
const quickRows = 2000

// quick is what InfoMEC is measured on every EvalEvery steps: the first images of the run's evaluation set.
type quick struct {
	index []int         // [n] of the dataset's images
	table metric.Table  // their factors
	spent time.Duration // that this process has measured for, samples and PSNR included
	since time.Time     // when it began to train
}

// openQuick reads the factors of the images measured; where none vary, nothing but PSNR is measured.
func (s *session) openQuick() error {
	s.quick = quick{since: time.Now()}
	info := s.set.Info()
	if !slices.ContainsFunc(info.Sizes(), func(k int) bool { return k > 1 }) {
		return nil
	}
	index, err := data.Draw(s.cfg.Seed, min(quickRows, s.cfg.EvalImages, info.Len), info.Len)
	if err != nil || len(index) < 2 {
		return err
	}
	classes := make([]int, len(index)*len(info.Factors))
	if err := s.set.Classes(classes, index); err != nil {
		return fmt.Errorf("reading the factors of the evaluation set: %w", err)
	}
	s.quick.index = index
	for i, f := range info.Factors {
		s.quick.table.Names = append(s.quick.table.Names, f.Name)
		s.quick.table.Factors = append(s.quick.table.Factors, columnOf(classes, i, len(info.Factors), func(v int) int { return v }))
	}
	return nil
}

// evaluate adds to a point what is measured every EvalEvery steps, and the seconds that this took.
func (s *session) evaluate(values map[string]float64) (err error) {
	began := time.Now()
	if values["psnr/eval"], err = s.psnr(context.Background(), min(quickImages, s.cfg.EvalImages), nil); err != nil {
		return err
	}
	if s.quick.index != nil {
		if err := s.measureSlots(values); err != nil {
			return err
		}
	}
	took := time.Since(began)
	s.quick.spent += took
	values["eval_seconds"] = took.Seconds()
	return nil
}

// measureSlots adds InfoM, InfoE and InfoC of the present model, as an evaluation has them but for the number of rows. What is
// undefined is left out.
func (s *session) measureSlots(values map[string]float64) error {
	t, err := s.represent()
	if err != nil {
		return err
	}
	info, err := metric.MeasureInfo(context.Background(), t, metric.Options{Seed: s.cfg.Seed})
	if err != nil {
		s.Log.Warn("InfoMEC is not measured while training", "why", err) // a dataset of numbers, say; it would be so at every step
		s.quick.index = nil
		return nil
	}
	for name, score := range map[string]model.Score{"infom/eval": info.M, "infoe/eval": info.E, "infoc/eval": info.C} {
		if score.Defined() {
			values[name] = float64(score)
		}
	}
	return nil
}

// represent is the slots that the present model gives the images measured, beside their factors.
func (s *session) represent() (metric.Table, error) {
	t, m := s.quick.table, s.cfg.M
	var all Slots
	for part := range slices.Chunk(s.quick.index, evalBatch) {
		x, err := s.evalImages(part)
		if err != nil {
			return t, err
		}
		slots, err := s.trainer.Represent(x)
		if err != nil {
			return t, err
		}
		all.Codes = append(all.Codes, slots.Codes[:min(len(slots.Codes), len(part)*m)]...)
		all.Numbers = append(all.Numbers, slots.Numbers[:min(len(slots.Numbers), len(part)*m)]...)
	}
	for j := range m {
		if all.Codes != nil {
			t.Codes = append(t.Codes, columnOf(all.Codes, j, m, func(v int32) int { return int(v) }))
		} else {
			t.Values = append(t.Values, columnOf(all.Numbers, j, m, func(v float32) float64 { return float64(v) }))
		}
	}
	return t, nil
}

// columnOf is column j of rows of a width.
func columnOf[A, B any](rows []A, j, width int, convert func(A) B) []B {
	out := make([]B, len(rows)/width)
	for r := range out {
		out[r] = convert(rows[r*width+j])
	}
	return out
}

// share is how much of the time since training began went into measuring, 0 to 1.
func (q quick) share() float64 {
	if all := time.Since(q.since); !q.since.IsZero() && all > 0 {
		return float64(q.spent) / float64(all)
	}
	return 0
}
