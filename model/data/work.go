package data

import (
	"fmt"
	"os"
	"time"
)

// Work is the progress of adding a dataset.
type Work struct {
	Stage   string    `json:"stage"` // "downloading", "checking", "reading" or "packing"
	What    string    `json:"what"`  // the file; empty if the stage has none
	Done    int64     `json:"done"`
	Of      int64     `json:"of"`   // 0 while unknown
	Unit    string    `json:"unit"` // "bytes" or "images"
	Rate    float64   `json:"rate"` // units per second, over the last ten seconds
	Left    float64   `json:"left"` // seconds to the end of the stage; 0 while unknown
	Updated time.Time `json:"updated"`
	Error   string    `json:"error"`   // why it failed, as a sentence; empty otherwise
	Damaged string    `json:"damaged"` // the damaged image that made it fail and could be skipped; empty otherwise
}

// String formats the progress as one line.
func (w Work) String() string {
	if w.Stage == "" {
		return "starting"
	}
	text := w.Stage
	if w.What != "" {
		text += " " + w.What
	}
	if w.Of > 0 {
		text += fmt.Sprintf(", %s of %s (%.0f %%)", w.number(w.Done), w.amount(w.Of), 100*w.Share())
	} else {
		text += ", " + w.amount(w.Done)
	}
	if w.Rate > 0 {
		text += ", " + w.amount(int64(w.Rate)) + "/s"
	}
	if w.Left > 0 {
		text += ", " + spoken(w.Left) + " left"
	}
	return text
}

// amount formats a number with its unit.
func (w Work) amount(n int64) string {
	if w.Unit == "bytes" {
		return Bytes(n)
	}
	return w.number(n) + " " + w.Unit
}

// number formats a number without its unit, except for bytes, whose unit depends on the number.
func (w Work) number(n int64) string {
	if w.Unit == "bytes" {
		return Bytes(n)
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// spoken formats a duration in its two largest units: 48 s, 3 min 5 s, 1 h 4 min.
func spoken(seconds float64) string {
	s := int(seconds)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
}

// Share returns the completed part of the stage, from 0 to 1.
func (w Work) Share() float64 {
	if w.Of <= 0 {
		return 0
	}
	return min(1, float64(w.Done)/float64(w.Of))
}

// Intervals of a reporter: between two notes, and the window of the rate.
const (
	noteEvery = 500 * time.Millisecond
	rateOver  = 10 * time.Second
)

// reporter writes progress to the folder and reports it to a caller, at most once per noteEvery except at the end of a stage.
type reporter struct {
	dir   *os.Root
	tell  func(Work)
	work  Work
	marks []mark
	noted time.Time
}

type mark struct {
	at   time.Time
	done int64
}

// stage starts a stage of the work.
func (r *reporter) stage(stage, what, unit string) {
	r.work = Work{Stage: stage, What: what, Unit: unit}
	r.marks, r.noted = nil, time.Time{}
}

// progress updates the progress of the stage.
func (r *reporter) progress(done, of int64) {
	now := time.Now()
	if len(r.marks) == 0 {
		r.marks = []mark{{now, done}}
	}
	if now.Sub(r.noted) < noteEvery && (done < of || of == 0) {
		return
	}
	r.noted = now
	r.marks = append(r.marks, mark{now, done})
	for len(r.marks) > 2 && now.Sub(r.marks[1].at) >= rateOver {
		r.marks = r.marks[1:]
	}
	r.work.Done, r.work.Of, r.work.Updated = done, of, now.UTC()
	r.work.Rate, r.work.Left = 0, 0
	if seconds := now.Sub(r.marks[0].at).Seconds(); seconds > 0 {
		r.work.Rate = float64(done-r.marks[0].done) / seconds
	}
	if r.work.Rate > 0 && of > done {
		r.work.Left = float64(of-done) / r.work.Rate
	}
	r.note()
}

// note writes and reports the progress. Write errors are ignored, since they only affect the display.
func (r *reporter) note() {
	if r.dir != nil {
		writeRecord(r.dir, workFile, r.work)
	}
	if r.tell != nil {
		r.tell(r.work)
	}
}
