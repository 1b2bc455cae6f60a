package jobs

import "slotscope/model"

// evidence is what one look shows of a run: what it says of itself, and what speaks for or against it.
type evidence struct {
	said     model.State // by state.json; "" where there is none
	external bool        // another program logs it
	locked   bool        // a process works on it
	child    bool        // the process that was started here has not been seen to end
	exited   bool        // it has, and nothing was concluded from it yet
	failed   bool        // it ended by itself, and was the one that said so last or had not begun to speak
	asked    bool        // the present process was asked to stop
	forced   bool        // it was then killed
	young    bool        // the folder was made a moment ago

	job       bool            // it is a job of a cluster that can be asked
	task      model.TaskState // what the cluster said of the job last
	calledOff bool            // the job is not to go back into the queue
}

// deed is what a look leads to.
type deed int

const (
	list     deed = iota // the run stands as State says
	pass                 // too early to say: look again
	conclude             // nobody works on it although it has not said that it ended: write how it ended, by end
)

// judge says how a run stands. The first line that fits decides; "–" is anything.
//
//	                  said                 further                      so it is
//	locked            none, queued         –                            running
//	locked            running              asked                        stopping
//	locked            –                    –                            as it says
//	external          –                    –                            as it says
//	job               finished             –                            finished
//	job               ended                called off                   as it says
//	job               –                    the cluster has it waiting   queued
//	job               not ended            the job is over              concluded
//	job               none, queued         –                            queued
//	job               running, stopping    the job runs, asked          stopping
//	job               –                    –                            as it says
//	child             running, stopping    –                            passed: it was killed a moment ago
//	child             not ended            asked                        stopping
//	child             –                    –                            as it says
//	nobody            running, stopping    –                            concluded
//	nobody            not ended            exited                       concluded
//	nobody            none                 young                        passed
//	nobody            none                 –                            concluded
//	nobody            –                    –                            as it says
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

// ending is how a run ended that did not say so itself.
type ending int

const (
	byForce    ending = iota // killed after it did not respond to a stop request
	unbegun                  // stopped before it began
	midStop                  // gone while it was stopping
	byItself                 // its process ended with a status that tells why
	jobOver                  // its job is over; the cluster says why
	neverSpoke               // it has no state.json
	silent                   // gone without a word
)

// state is the state that a run is given for its ending.
func (n ending) state() model.State {
	switch n {
	case unbegun:
		return model.Stopped
	case byItself:
		return model.Failed
	}
	return model.Interrupted
}

// end says how a run ended that judge concludes. The first line that fits decides.
//
//	job       asked or called off, said queued    unbegun
//	job       asked or called off                 midStop
//	job       –                                   jobOver
//	nobody    forced                              byForce
//	nobody    asked, said queued                  unbegun
//	nobody    asked                               midStop
//	nobody    failed                              byItself
//	nobody    said none                           neverSpoke
//	nobody    –                                   silent
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
