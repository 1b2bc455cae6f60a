package jobs

import "slotscope/model"

// evidence holds the facts about a run from one visit: the state that it recorded, and what confirms or contradicts it.
type evidence struct {
	said     model.State // in state.json; "" if there is none
	external bool        // another program logs it
	locked   bool        // a process holds its lock
	child    bool        // the process started here has not ended yet
	exited   bool        // it has ended, and this was not evaluated yet
	failed   bool        // it exited by itself, and wrote the last state or none at all
	asked    bool        // the current process was asked to stop
	forced   bool        // it was then killed
	young    bool        // the folder was created a moment ago

	job       bool            // it is a job of a cluster that can be queried
	task      model.TaskState // the last known state of the job on the cluster
	calledOff bool            // the job must not be requeued
}

// deed is the action that follows from a visit.
type deed int

const (
	list     deed = iota // list the run with the returned state
	pass                 // too early to tell: check again
	conclude             // no process has it although it did not record its end: record how it ended, by end
)

// judge determines the state of a run. The first matching line decides; "–" matches anything.
//
//	                  said                 further                      result
//	locked            none, queued         –                            running
//	locked            running              asked                        stopping
//	locked            –                    –                            as recorded
//	external          –                    –                            as recorded
//	job               finished             –                            finished
//	job               ended                called off                   as recorded
//	job               –                    the job is queued            queued
//	job               not ended            the job has ended            concluded
//	job               none, queued         –                            queued
//	job               running, stopping    the job runs, asked          stopping
//	job               –                    –                            as recorded
//	child             running, stopping    –                            passed: it was killed a moment ago
//	child             not ended            asked                        stopping
//	child             –                    –                            as recorded
//	no process        running, stopping    –                            concluded
//	no process        not ended            exited                       concluded
//	no process        none                 young                        passed
//	no process        none                 –                            concluded
//	no process        –                    –                            as recorded
func (e evidence) judge() (deed, model.State) {
	switch {
	case e.locked && (e.said == "" || e.said == model.Queued):
		return list, model.Running
	case e.locked && e.said == model.Running && e.asked:
		return list, model.Stopping
	case e.locked, e.external:
		return list, e.said
	case e.job:
		return e.judgeJob()
	case e.child && e.said.Live():
		return pass, ""
	case e.child && e.asked && !e.said.Ended():
		return list, model.Stopping
	case e.child:
		return list, e.said
	case e.said.Live(), e.exited && !e.said.Ended():
		return conclude, ""
	case e.said == "" && e.young:
		return pass, ""
	case e.said == "":
		return conclude, ""
	}
	return list, e.said
}

func (e evidence) judgeJob() (deed, model.State) {
	switch {
	case e.said == model.Finished, e.calledOff && e.said.Ended():
		return list, e.said
	case e.task == model.TaskWaits:
		return list, model.Queued
	case e.task == model.TaskOver && !e.said.Ended():
		return conclude, ""
	case e.said == "", e.said == model.Queued:
		return list, model.Queued
	case e.task == model.TaskRuns && e.said.Live() && e.asked:
		return list, model.Stopping
	}
	return list, e.said
}

// ending is how a run ended that did not record its end.
type ending int

const (
	byForce    ending = iota // killed after it did not respond to a stop request
	unbegun                  // stopped before it started
	midStop                  // exited while it was stopping
	byItself                 // its process ended with a known exit status
	jobOver                  // its job ended; the cluster has the reason
	neverSpoke               // it has no state.json
	silent                   // exited without any trace
)

// state returns the state to record for an ending.
func (n ending) state() model.State {
	switch n {
	case unbegun:
		return model.Stopped
	case byItself:
		return model.Failed
	}
	return model.Interrupted
}

// end determines how a run ended for which judge returns conclude. The first matching line decides.
//
//	job           asked or called off, said queued    unbegun
//	job           asked or called off                 midStop
//	job           –                                   jobOver
//	no process    forced                              byForce
//	no process    asked, said queued                  unbegun
//	no process    asked                               midStop
//	no process    failed                              byItself
//	no process    said none                           neverSpoke
//	no process    –                                   silent
func (e evidence) end() ending {
	stopped := e.asked || e.job && e.calledOff
	switch {
	case e.forced && !e.job:
		return byForce
	case stopped && e.said == model.Queued:
		return unbegun
	case stopped:
		return midStop
	case e.job:
		return jobOver
	case e.failed:
		return byItself
	case e.said == "":
		return neverSpoke
	}
	return silent
}
