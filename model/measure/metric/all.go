package metric

import (
	"context"
	"fmt"

	"slotscope/model"
)

// TableScores is every score of a table: InfoMEC, DCI and the scores of other papers.
type TableScores struct {
	model.Metrics
	Field model.FieldScores `json:"field"`
}

// MeasureAll computes all scores. If Measure rejects the table, the other scores are still computed and the reason is stored in
// Problems. tell, which may be nil, is called with the progress of each stage.
func MeasureAll(ctx context.Context, table Table, extra Extra, o Options, tell func(stage string, done, of float64)) (s TableScores, err error) {
	if err := Measurable(table); err != nil {
		return s, err
	}
	stage := func(name string) Options {
		o := o
		if tell != nil {
			o.Progress = func(done, of float64) { tell(name, done, of) }
		}
		return o
	}
	metrics, refused := Measure(ctx, table, stage("measuring"))
	if refused != nil && ctx.Err() != nil {
		return s, refused
	}
	s.Field, err = Field(ctx, table, extra, stage("measuring other metrics"))
	s.Metrics = metrics
	if refused != nil && err == nil {
		s.Metrics, s.Field.Problems["infomec"] = Unmeasured(table), fmt.Sprintf("InfoMEC and DCI: %v", refused)
	}
	return s, err
}
