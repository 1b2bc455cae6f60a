package sweep

import "slotscope/model"

// Action is what a worker does next for an item.
type Action string

const (
	Wait     Action = "wait"     // nothing: it is over, another works on it, or somebody else must decide
	Begin    Action = "begin"    // make its run and start it
	Continue Action = "continue" // start its run again, from its newest checkpoint
	Measure  Action = "evaluate" // evaluate its finished run
)

// Worker is who works through a sweep: the server, a shell, or a shell that submits to SLURM.
type Worker struct {
	Stopped bool // go on with runs that were stopped; the server leaves these to the visitor who stopped them
	Retry   bool // go on with runs that failed, once
	Orphans bool // take over runs that nobody works on although they are queued: their worker ended first
	Most    int  // how often a run that ends early is started, so that one cancelled again and again stays so; 0 for no limit
}

// Next decides what a worker does for an item. busy says that a process trains or evaluates it, tries how often this worker has
// started it. The server, shells and SLURM decide by this table:
//
//	stage       run          condition                        action
//	planned     none         tries < Most                     begin
//	halted      interrupted  not busy, tries < Most           continue
//	halted      stopped      Stopped, not busy, tries < Most  continue
//	live        queued       Orphans, not busy, tries = 0     continue
//	failed      failed       Retry, not busy, tries = 0       continue
//	to evaluate finished     not busy                         evaluate
//
// and wait for all else. A run is never started while a process works on it. A race holds back runs of seeds that it has not come to, and
// runs of settings that have lost it are out: neither begins nor goes on.
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
