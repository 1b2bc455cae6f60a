//go:build linux

package jobs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"slotscope/model"
)

var everyState = []model.State{"", model.Queued, model.Running, model.Stopping, model.Stopped, model.Finished, model.Failed, model.Interrupted}

// everyEvidence yields every combination of evidence, including impossible ones.
func everyEvidence(yield func(evidence)) {
	for _, said := range everyState {
		for _, task := range []model.TaskState{model.TaskUnknown, model.TaskWaits, model.TaskRuns, model.TaskOver} {
			for bits := range 1 << 10 {
				on := func(n int) bool { return bits>>n&1 == 1 }
				yield(evidence{said: said, task: task, external: on(0), locked: on(1), child: on(2), exited: on(3), failed: on(4),
					asked: on(5), forced: on(6), young: on(7), job: on(8), calledOff: on(9)})
			}
		}
	}
}

// TestJudge checks the invariants of judge for every combination of evidence.
func TestJudge(t *testing.T) {
	everyEvidence(func(e evidence) {
		do, state := e.judge()
		worked := e.locked || e.child
		mayCome := e.job && e.task != model.TaskOver
		nobody := !worked && !mayCome && !e.external
		wrong := ""
		switch {
		case do == conclude && (e.locked || e.external || mayCome || e.child && !e.job):
			wrong = "concluded although a process or job has it"
		case do == conclude && e.said.Ended():
			wrong = "concluded twice"
		case do == conclude && !e.end().state().Ended():
			wrong = "concluded with a state that is not final"
		case do == list && e.said == model.Finished && state != model.Finished:
			wrong = "no longer finished"
		case do == list && e.said.Ended() && state != e.said && !(e.job && e.task == model.TaskWaits && !e.calledOff):
			wrong = "ended with a state other than recorded"
		case do == list && nobody && e.said.Live():
			wrong = "live although no process has it"
		case do == list && nobody && e.said == "":
			wrong = "listed without a state"
		case do == list && e.external && state != e.said && !e.locked:
			wrong = "judged although another program logs it"
		case do == list && e.locked && state == model.Queued:
			wrong = "queued although a process has it"
		case do == pass && (e.locked || e.said.Ended()):
			wrong = "passed although its state is known"
		case do == list && state == model.Stopping && e.said != model.Stopping && !e.asked:
			wrong = "stopping without a stop request"
		}
		if wrong != "" {
			t.Errorf("%s: %+v is %v %q", wrong, e, do, state)
		}
	})
}

// TestEnd checks the invariants of end for every combination of evidence.
func TestEnd(t *testing.T) {
	everyEvidence(func(e evidence) {
		switch n := e.end(); {
		case n == byItself && (!e.failed || e.asked || e.job),
			n == byForce && !e.forced,
			n == unbegun && e.said != model.Queued,
			(n == unbegun || n == midStop) && !e.asked && !e.calledOff,
			n == jobOver && !e.job,
			n == neverSpoke && e.said != "":
			t.Errorf("%+v ends as %d", e, n)
		}
	})
}

// world is the actual state of a run and the server's knowledge of it.
type world struct {
	alive, speaks bool // a process of the run is alive; it holds the lock
	inQueue       bool // in the queue of a cluster
	calledOff     bool
	unreaped      bool // its end was checked for once and missed
	e             evidence
}

// events change the world; events that are not possible have no effect.
var events = map[string]func(w *world){
	"start": func(w *world) { // from the server's queue
		if w.e.said == model.Queued && !w.alive && !w.e.child && !w.e.job && !w.e.locked {
			w.alive, w.e.child, w.e.asked, w.e.forced, w.e.exited, w.e.failed = true, true, false, false, false, false
		}
	},
	"the process takes the lock": func(w *world) {
		if w.alive && !w.speaks {
			w.speaks = true
		}
	},
	"it says that it runs": func(w *world) {
		if w.speaks && !w.e.said.Ended() {
			w.e.said = model.Running
		}
	},
	"it finishes": func(w *world) { w.leave(model.Finished) },
	"it fails":    func(w *world) { w.leave(model.Failed) },
	"it saves and stops": func(w *world) {
		if w.e.asked {
			w.leave(model.Stopped)
		}
	},
	"it is killed": func(w *world) {
		if w.alive {
			w.alive, w.speaks = false, false
			w.e.failed = w.e.child
		}
	},
	"a stop": func(w *world) {
		switch {
		case w.e.job && !w.e.said.Ended():
			w.calledOff, w.e.calledOff, w.e.asked = true, true, true
		case w.speaks || w.e.child:
			w.e.asked = true
		}
	},
	"a stop by force": func(w *world) {
		if w.e.asked && w.alive {
			w.e.forced, w.alive, w.speaks = true, false, false
		}
	},
	"a new server": func(w *world) {
		w.e.child, w.e.exited, w.e.failed, w.e.asked, w.e.forced = false, false, false, false, false
	},
	"a resume": func(w *world) {
		if w.e.said.Ended() && !w.alive && !w.inQueue && w.e.said != model.Finished {
			w.e = evidence{said: model.Queued}
		}
	},
	"the cluster takes it": func(w *world) {
		if w.e.said == model.Queued && !w.alive && !w.e.job && !w.e.child {
			w.inQueue, w.e.job, w.e.task, w.calledOff, w.e.calledOff = true, true, model.TaskWaits, false, false
		}
	},
	"the cluster starts it": func(w *world) {
		if w.inQueue && w.e.task == model.TaskWaits {
			w.alive, w.e.task = true, model.TaskRuns
		}
	},
	"the cluster puts it back": func(w *world) {
		if w.inQueue && w.e.task == model.TaskRuns && !w.calledOff && w.e.said != model.Finished {
			w.alive, w.speaks, w.e.task = false, false, model.TaskWaits
		}
	},
	"the cluster ends the job": func(w *world) {
		if w.inQueue {
			w.alive, w.speaks, w.inQueue, w.e.task = false, false, false, model.TaskOver
		}
	},
}

func (w *world) leave(said model.State) {
	if w.speaks && !w.e.said.Ended() {
		w.e.said, w.alive, w.speaks = said, false, false
	}
}

// look simulates the server: it checks whether the child has ended, reads the lock, judges, and records its conclusion.
func (w *world) look() (deed, model.State) {
	w.e.locked = w.speaks
	if w.e.child && !w.alive {
		w.e.child, w.e.exited, w.unreaped = !w.unreaped, w.unreaped, !w.unreaped
	}
	do, state := w.e.judge()
	if do == conclude {
		state = w.e.end().state()
		w.e.said = state
	}
	if w.e.said.Ended() {
		w.e.exited, w.e.failed = false, false
		if !w.alive {
			w.e.asked, w.e.forced = false, false
		}
	}
	return do, state
}

// TestLives simulates random lives: no run is ended while its process is alive, and no run without a process stays live forever.
func TestLives(t *testing.T) {
	names := slices.Sorted(maps.Keys(events))
	seen := map[string]bool{}
	for life := range 4000 {
		r := rand.New(rand.NewPCG(uint64(life), 1))
		w := &world{e: evidence{said: model.Queued}}
		var past []string
		for range 40 {
			name := names[r.IntN(len(names))]
			before := *w
			events[name](w)
			if *w != before {
				past = append(past, name)
			}
			if r.IntN(3) == 0 {
				continue // the server is idle
			}
			alive, finished, queued := w.alive, w.e.said == model.Finished, w.inQueue
			do, state := w.look()
			past = append(past, fmt.Sprintf("look: %s", state))
			seen[fmt.Sprint(do, state)] = true
			switch {
			case do == conclude && w.e.child && !w.e.job, do == conclude && w.speaks:
				t.Fatalf("ended while its process is alive: %q", past)
			case finished && state != model.Finished:
				t.Fatalf("no longer finished: %q", past)
			case !alive && !queued && !w.e.child && do == list && state.Live():
				t.Fatalf("live forever: %q", past)
			case do == pass && !alive && !w.e.child:
				t.Fatalf("passed although no process is alive: %q", past)
			}
		}
	}
	for _, want := range []string{"0queued", "0running", "0stopping", "0finished", "0failed", "0stopped", "2stopped", "2interrupted", "2failed", "1"} {
		if !seen[want] {
			t.Errorf("no life reached %q; seen: %v", want, seen)
		}
	}
}
