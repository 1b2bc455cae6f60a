package train

import (
	"context"
	"fmt"
	"maps"
	"time"

	"slotscope/model"
	"slotscope/model/data"
	"slotscope/model/learn/evaluate"
	"slotscope/model/measure/metric"
	"slotscope/model/paper/ae"
)

// quick measures faithfulness, owned factors and InfoMEC besides PSNR every EvalEvery steps, on the first images of the run's evaluation
// set. InfoE on so few rows is higher than on an evaluation's 10,000, and more so the more codes are in use, so compare it only with
// itself.
type quick struct {
	encoder *evaluate.Encoder
	index   []int         // [n] dataset indices of the images
	noInfo  bool          // InfoMEC cannot be measured on this dataset
	spent   time.Duration // time that this process has spent measuring
	since   time.Time     // when training began
}

// openQuick selects the images and prepares the encoder.
func (s *session) openQuick() (err error) {
	s.quick.since = time.Now()
	info := s.set.Info()
	if s.quick.index, err = data.Draw(s.cfg.Seed, min(evaluate.QuickImages, s.cfg.EvalImages, info.Len), info.Len); err != nil {
		return err
	}
	s.quick.noInfo = len(s.quick.index) < 2
	s.quick.encoder, err = s.trainer.encoder(ae.Image{H: info.H, W: info.W, C: info.C})
	return err
}

// encoder returns an encoder with the model in training.
func (t *Trainer) encoder(image ae.Image) (*evaluate.Encoder, error) {
	return evaluate.NewEncoder(t.backend, t.net, t.store, t.scope, image)
}

// evaluate adds the measurements due every EvalEvery steps to a point, and their duration in seconds. It does not affect training.
func (s *session) evaluate(values map[string]float64) (err error) {
	began := time.Now()
	if values["psnr/eval"], err = s.psnr(context.Background(), min(quickImages, s.cfg.EvalImages), nil); err != nil {
		return err
	}
	if err := s.measureSlots(values); err != nil {
		return err
	}
	took := time.Since(began)
	s.quick.spent += took
	values["eval_seconds"] = took.Seconds()
	return nil
}

// measureSlots adds the series measured on slots, without undefined values.
func (s *session) measureSlots(values map[string]float64) error {
	encoded, err := s.quick.encoder.Encode(context.Background(), s.set, s.quick.index)
	if err != nil {
		return err
	}
	series, err := encoded.Series(s.set, s.cfg.Seed)
	if err != nil {
		return fmt.Errorf("measuring the slots: %w", err)
	}
	info, err := s.infoMEC(encoded)
	if err != nil {
		return err
	}
	maps.Copy(series, info)
	for name, v := range series {
		if model.Score(v).Defined() {
			values[name] = v
		}
	}
	return nil
}

// infoMEC returns InfoM, InfoE and InfoC as in an evaluation, but on fewer rows; nil if no factor varies.
func (s *session) infoMEC(encoded evaluate.Encoded) (map[string]float64, error) {
	if s.quick.noInfo {
		return nil, nil
	}
	table, ok, err := encoded.Table(s.set)
	if err != nil || !ok {
		s.quick.noInfo = true
		return nil, err
	}
	info, err := metric.MeasureInfo(context.Background(), table, metric.Options{Seed: s.cfg.Seed})
	if err != nil {
		s.Log.Warn("InfoMEC is not measured during training", "why", err) // for example, factors that are not classes; every step would fail
		s.quick.noInfo = true
		return nil, nil
	}
	return map[string]float64{"infom/eval": float64(info.M), "infoe/eval": float64(info.E), "infoc/eval": float64(info.C)}, nil
}

func (q quick) close() {
	if q.encoder != nil {
		q.encoder.Finalize()
	}
}

// share returns the fraction of the time since training began that was spent measuring, 0 to 1.
func (q quick) share() float64 {
	if all := time.Since(q.since); !q.since.IsZero() && all > 0 {
		return float64(q.spent) / float64(all)
	}
	return 0
}
