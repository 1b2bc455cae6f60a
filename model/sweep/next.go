package sweep

import "slotscope/model"

// Action is a worker's next action for an item.
type Action string

const (
	Wait     Action = "wait"     // do nothing: it has ended, another process works on it, or a user must decide
	Begin    Action = "begin"    // create and start its run
	Continue Action = "continue" // resume its run from the newest checkpoint
	Measure  Action = "evaluate" // evaluate its finished run
)

// Worker describes a process that works on a sweep: the server, a shell, or a shell that submits to SLURM.
type Worker struct {
	Stopped bool // resume stopped runs; the server leaves these to the user who stopped them
	Retry   bool // resume failed runs, once
	Orphans bool // take over queued runs without a process, whose worker has ended
	Most    int  // maximum number of starts of a run, so that one cancelled repeatedly stays cancelled; 0 for no limit
}

// Next returns a worker's next action for an item. busy is whether a process trains or evaluates it, tries how often this worker has
// started it. The server, shells and SLURM all use this table:
//
//	stage       run          condition                        action
//	planned     none         tries < Most                     begin
//	halted      interrupted  not busy, tries < Most           continue
//	halted      stopped      Stopped, not busy, tries < Most  continue
//	live        queued       Orphans, not busy, tries = 0     continue
//	failed      failed       Retry, not busy, tries = 0       continue
//	to evaluate finished     not busy                         evaluate
//
// and wait in all other cases. A run is never started while a process works on it. Runs whose seed a race has not reached, and runs of
// settings that have lost it, are neither started nor resumed.
func (s Standing) Next(w Worker, busy bool, tries int) Action {
	may := w.Most == 0 || tries < w.Most
	switch {
	case s.Stage == Out || s.Later && (s.Stage == Planned || s.Stage == Halted):
		return Wait
	case s.Stage == Planned && may:
		return Begin
	case busy:
		return Wait
	case s.Stage == Unmeasured:
		return Measure
	case s.Stage == Halted && may && (w.Stopped || s.Run.State == model.Interrupted):
		return Continue
	case s.Stage == Live && w.Orphans && tries == 0 && (s.Run.State == "" || s.Run.State == model.Queued):
		return Continue
	case s.Stage == Failed && w.Retry && tries == 0 && s.Run.State == model.Failed:
		return Continue
	}
	return Wait
}
