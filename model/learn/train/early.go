package train

import (
	"fmt"
	"math"
	"os"

	"github.com/dustin/go-humanize"

	"slotscope/model"
	"slotscope/model/verdict"
)

// judgeEvery is the number of steps between checks of the verdict; limits on series are checked whenever they are measured.
const judgeEvery = 25

// early tracks the conditions that end a run early.
type early struct {
	conditions []model.Condition
	track      *verdict.Track
	why        string // the reason why a condition holds; empty while none does
	holds      string // the condition that holds, as written
}

// openEarly parses the conditions and reads the points from before a resume.
func (s *session) openEarly() error {
	conditions, err := model.ParseConditions(s.cfg.StopWhen)
	if err != nil {
		return fmt.Errorf("stop_when: %w", err)
	}
	if len(conditions) > 0 && s.status.Early != "" {
		s.Log.Info("ignoring stop_when: it already stopped this run, which was resumed", "condition", s.status.Early)
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
		points, next, _ := s.Folder.Tail(offset) // damaged lines were already reported
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

// isBest reports whether a step's values are better than the best checkpoint's.
func (s *session) isBest(values map[string]float64) bool {
	v, measured := values[s.cfg.BestSeries()]
	return measured && !math.IsNaN(v) && !math.IsInf(v, 0) && (s.status.Best == 0 || v > s.status.BestValue)
}

// judgeEarly adds a step's values and records the first condition that holds.
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

// earlyReason returns why the run ended early, as a sentence.
func (s *session) earlyReason() string {
	return fmt.Sprintf("Stopped early after step %s of %s by stop_when %s: %s.", humanize.Comma(int64(s.status.Step)), humanize.Comma(int64(s.cfg.Steps)), s.early.holds, s.early.why)
}

// chooseBest schedules a checkpoint of a step if it is better than the best so far. It first waits for a checkpoint that is being written,
// which may become the best.
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

// settleBest marks the saved checkpoint of a step as the best if it was chosen, and removes the previous best unless it is also a regular one.
func (s *session) settleBest(step int) {
	if step != s.better.step {
		return
	}
	old := s.status.Best
	s.status.Best, s.status.BestValue = step, s.better.value
	if old != 0 && old != step && old%s.cfg.CheckpointEvery != 0 {
		os.Remove(s.Folder.CheckpointPath(old)) // errors are ignored
		os.Remove(s.Folder.OptimizerPath(old))
	}
}

// better is a step whose checkpoint becomes the best once it is saved.
type better struct {
	step  int
	value float64
}
