package train

import (
	"fmt"
	"math"
	"os"

	"github.com/dustin/go-humanize"

	"slotscope/model"
	"slotscope/model/verdict"
)

// judgeEvery is how many steps pass between looks at the verdict; limits of series are looked at whenever they are measured.
const judgeEvery = 25

// early ends a run once a condition of its configuration holds.
type early struct {
	conditions []model.Condition
	track      *verdict.Track
	why        string // the condition that holds, and what it found; empty while none does
	holds      string // the condition as written
}

// openEarly reads the conditions, and what the run measured before it was resumed.
func (s *session) openEarly() error {
	conditions, err := model.ParseConditions(s.cfg.StopWhen)
	if err != nil {
		return fmt.Errorf("stop_when: %w", err)
	}
	if len(conditions) > 0 && s.status.Early != "" {
		s.Log.Info("conditions that stop the run early are passed over, because one of them has stopped it and it was resumed", "condition", s.status.Early)
		conditions = nil
	}
	if s.early.conditions = conditions; len(conditions) > 0 {
		s.early.track = verdict.NewTrack(s.cfg, conditions)
	}
	best := s.cfg.BestSeries()
	if s.early.track == nil && best == "" {
		return nil
	}
	s.status.Best, s.status.BestValue = 0, 0
	for offset := int64(0); ; {
		points, next, _ := s.Folder.Tail(offset) // lines that are damaged were told of
		for _, p := range points {
			if s.early.track != nil {
				s.early.track.Add(p.Step, p.Values)
			}
			if s.isBest(p.Values) && s.hasCheckpoint(p.Step) {
				s.status.Best, s.status.BestValue = p.Step, p.Values[best]
			}
		}
		if next == offset {
			return nil
		}
		offset = next
	}
}

func (s *session) hasCheckpoint(step int) bool {
	_, err := s.Folder.Checkpoint(step)
	return err == nil
}

// isBest says whether what a step measured is better than the best checkpoint.
func (s *session) isBest(values map[string]float64) bool {
	v, measured := values[s.cfg.BestSeries()]
	return measured && !math.IsNaN(v) && !math.IsInf(v, 0) && (s.status.Best == 0 || v > s.status.BestValue)
}

// judgeEarly takes what a step measured and says whether a condition holds since.
func (s *session) judgeEarly(step int, values map[string]float64) {
	e := &s.early
	if e.track == nil || e.why != "" {
		return
	}
	e.track.Add(step, values)
	evaluated := step%s.cfg.EvalEvery == 0
	for _, c := range e.conditions {
		if _, measured := values[c.Series]; !measured && !(c.Verdict != "" && (evaluated || step%judgeEvery == 0)) {
			if evaluated && c.Verdict == "" && step == s.cfg.EvalEvery && !e.track.Has(c.Series) {
				s.Log.Warn("stop_when names a series that is not measured", "series", c.Series, "step", step)
			}
			continue
		}
		if _, why, holds := e.track.Progress().Holds(c); holds {
			e.holds, e.why = c.String(), why
			if c.Verdict != "" {
				e.why = c.Verdict + ": " + why
			}
			return
		}
	}
}

// earlyReason is why the run ended early, as a sentence.
func (s *session) earlyReason() string {
	return fmt.Sprintf("Stopped early after step %s of %s, because of stop_when %s: %s.", humanize.Comma(int64(s.status.Step)), humanize.Comma(int64(s.cfg.Steps)), s.early.holds, s.early.why)
}

// chooseBest has the checkpoint of a step saved if it is better than the best so far, once a better one that is being written is known.
func (s *session) chooseBest(step int, values map[string]float64) error {
	if !s.isBest(values) {
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	if s.isBest(values) {
		s.better = better{step, values[s.cfg.BestSeries()]}
	}
	return nil
}

// settleBest makes a checkpoint that is on the disk the best, and removes the one before unless it is due anyway.
func (s *session) settleBest(step int) {
	if step != s.better.step {
		return
	}
	old := s.status.Best
	s.status.Best, s.status.BestValue = step, s.better.value
	if old != 0 && old != step && old%s.cfg.CheckpointEvery != 0 {
		os.Remove(s.Folder.CheckpointPath(old)) // what cannot be removed stays
		os.Remove(s.Folder.OptimizerPath(old))
	}
}

// better is a step whose checkpoint is to be the best once it is on the disk.
type better struct {
	step  int
	value float64
}
