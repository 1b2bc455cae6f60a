package cpu

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// ErrNotBuilt is the error of opening the engine in a program that was built without a C compiler.
var ErrNotBuilt = errors.New("this program was built without a C compiler, so it has no compute engine and no index: it cannot train, evaluate, decode or serve; " +
	"install gcc or clang and build it again with CGO_ENABLED=1")

// StepTime has the measurements of one step, summed over all its calls, or of all steps of a kind.
type StepTime struct {
	What    string        `json:"what"`
	Kind    string        `json:"kind"`
	Calls   int           `json:"calls"`
	Wall    time.Duration `json:"wall_ns"`
	Busy    time.Duration `json:"busy_ns"`    // time in which threads computed, summed over all of them
	Packing time.Duration `json:"packing_ns"` // approximate part of Busy spent packing or copying operands of products
	FLOPs   int64         `json:"flops"`      // of products, as they are defined: minimal filtering computes 9/16 or 25/64 of a convolution's
	Bytes   int64         `json:"bytes"`      // of operands and results, each counted once
}

// Roof is the maximum of one thread while all threads do the same, per second of its processor time.
type Roof struct {
	FLOPs float64 `json:"flops_per_second"` // additions and multiplications in registers, with the widest vectors
	Bytes float64 `json:"bytes_per_second"` // bytes read and written, for arrays larger than the caches
	// nanoseconds to write 64 bytes that two threads have read, or 0 with one thread: several times as many if their cores have no common cache
	Shared float64 `json:"shared_line_ns"`
}

// Report has the sums of a profile.
type Report struct {
	Threads    int           `json:"threads"`
	Roof       Roof          `json:"roof"`
	Executions int           `json:"executions"`
	Wall       time.Duration `json:"wall_ns"` // of the executions
	Kinds      []StepTime    `json:"kinds"`   // the most expensive first
	Steps      []StepTime    `json:"steps"`   // the most expensive first
}

// Write prints the kinds and the most expensive steps, per execution. Rates are per second of computing on one thread, with
// their shares of the machine's limits. A step whose arrays fit into caches may exceed the memory limit, and a convolution by minimal filtering the other.
func (r Report) Write(to io.Writer, steps int) error {
	runs, busy := max(r.Executions, 1), r.computing()
	fmt.Fprintf(to, "%d executions, each %.3f ms of wall time and %.3f ms of computing on %d threads (%.0f%% of them busy)\n",
		r.Executions, milliseconds(r.Wall, runs), milliseconds(busy, runs), r.Threads, r.busy(busy, r.Wall))
	fmt.Fprintf(to, "limits per thread with %d threads running: %.1f GFLOP/s in registers, %.1f GB/s of memory\n", r.Threads, r.Roof.FLOPs/1e9, r.Roof.Bytes/1e9)
	if r.Roof.Shared > 0 {
		fmt.Fprintf(to, "64 bytes that two threads have read are written in %.1f ns; cores without a common cache take several times as long as others.\n", r.Roof.Shared)
	}
	fmt.Fprintln(to, "GFLOP/s count the operations of a convolution's definition; minimal filtering computes 9/16 or 25/64 of them, so it can exceed 100% of peak.")
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "thread ms\tshare\tpacking ms\twall ms\tbusy\tGFLOP/s\tof peak\tGB/s\tof memory\tcalls\t")
	for _, list := range [2][]StepTime{r.Kinds, r.Steps[:min(steps, len(r.Steps))]} {
		for _, t := range list {
			seconds := max(t.Busy.Seconds(), 1e-9)
			flops, bytes := float64(t.FLOPs)/seconds, float64(t.Bytes)/seconds
			fmt.Fprintf(table, "%.3f\t%.1f%%\t%.3f\t%.3f\t%.0f%%\t%.1f\t%.0f%%\t%.1f\t%.0f%%\t%d\t %s\n", milliseconds(t.Busy, runs),
				100*float64(t.Busy)/float64(max(busy, 1)), milliseconds(t.Packing, runs), milliseconds(t.Wall, runs), r.busy(t.Busy, t.Wall),
				flops/1e9, 100*flops/max(r.Roof.FLOPs, 1), bytes/1e9, 100*bytes/max(r.Roof.Bytes, 1), t.Calls/runs, t.What)
		}
		fmt.Fprintln(table, "\t\t\t\t\t\t\t\t\t\t")
	}
	return table.Flush()
}

// Busy returns the share of the threads' time in which they computed, in percent.
func (r Report) Busy() float64 { return r.busy(r.computing(), r.Wall) }

// computing returns the time in which threads computed, summed over all of them.
func (r Report) computing() (t time.Duration) {
	for _, k := range r.Kinds {
		t += k.Busy
	}
	return t
}

// busy returns the share of the threads' time in which they computed, in percent. In the rest they waited. Time in which other programs had a
// thread's processor belongs to what the thread did.
func (r Report) busy(busy, wall time.Duration) float64 {
	return 100 * float64(busy) / max(float64(wall)*float64(r.Threads), 1)
}

func milliseconds(d time.Duration, runs int) float64 {
	return float64(d) / float64(time.Millisecond) / float64(runs)
}
