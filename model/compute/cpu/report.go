package cpu

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// ErrNotBuilt is what opening the engine ends with in a program that was built without a C compiler.
var ErrNotBuilt = errors.New("this program was built without a C compiler, so it has no compute engine and no index: it cannot train, evaluate, decode or serve; " +
	"install gcc or clang and build it again with CGO_ENABLED=1")

// StepTime is what one step of an execution took, in all its calls, or several steps of a kind.
type StepTime struct {
	What    string        `json:"what"`
	Kind    string        `json:"kind"`
	Calls   int           `json:"calls"`
	Wall    time.Duration `json:"wall_ns"`
	Busy    time.Duration `json:"busy_ns"`    // processor time of all threads, without waiting
	Packing time.Duration `json:"packing_ns"` // of Busy, about: what bringing operands of products into order took
	FLOPs   int64         `json:"flops"`      // of products
	Bytes   int64         `json:"bytes"`      // of operands and results, each once
}

// Report is a profile's sums.
type Report struct {
	Threads    int           `json:"threads"`
	Executions int           `json:"executions"`
	Wall       time.Duration `json:"wall_ns"` // of the executions
	Kinds      []StepTime    `json:"kinds"`   // the most expensive first
	Steps      []StepTime    `json:"steps"`   // the most expensive first
}

// Write prints the kinds and the most expensive steps, per execution; rates are per second of processor time of one thread.
func (r Report) Write(to io.Writer, steps int) error {
	runs := max(r.Executions, 1)
	var busy time.Duration
	for _, k := range r.Kinds {
		busy += k.Busy
	}
	fmt.Fprintf(to, "%d executions, each %.3f ms of wall time and %.3f ms of processor time on %d threads (%.0f%% of them busy)\n",
		r.Executions, milliseconds(r.Wall, runs), milliseconds(busy, runs), r.Threads, r.busy(busy, r.Wall))
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "cpu ms\tshare\tpacking ms\twall ms\tbusy\tGFLOP/s\tGB/s\tcalls\t")
	for _, list := range [2][]StepTime{r.Kinds, r.Steps[:min(steps, len(r.Steps))]} {
		for _, t := range list {
			fmt.Fprintf(table, "%.3f\t%.1f%%\t%.3f\t%.3f\t%.0f%%\t%.1f\t%.1f\t%d\t %s\n", milliseconds(t.Busy, runs),
				100*float64(t.Busy)/float64(max(busy, 1)), milliseconds(t.Packing, runs), milliseconds(t.Wall, runs), r.busy(t.Busy, t.Wall),
				float64(t.FLOPs)/float64(max(t.Busy, 1)), float64(t.Bytes)/float64(max(t.Busy, 1)), t.Calls/runs, t.What)
		}
		fmt.Fprintln(table, "\t\t\t\t\t\t\t\t")
	}
	return table.Flush()
}

// busy is the share of the threads' time in which they computed, in percent; the rest they were idle, or others had the processor.
func (r Report) busy(busy, wall time.Duration) float64 {
	return 100 * float64(busy) / max(float64(wall)*float64(r.Threads), 1)
}

func milliseconds(d time.Duration, runs int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(runs)
}
