package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"slotscope/model/compute"
)

// TestProcessorsInParts checks that without a GPU the devices are all processors together, or named parts with their own threads.
func TestProcessorsInParts(t *testing.T) {
	t.Setenv("SLOTSCOPE_THREADS", "")
	look := func() compute.Report { return compute.Report{Engine: "cpu"} }
	if whole := devices(look, 1)("auto"); fmt.Sprint(whole) != "[{cpu []}]" {
		t.Errorf("%v", whole)
	}
	names := map[string]bool{}
	parts := devices(look, 3)("cpu")
	for _, d := range parts {
		names[d.Name] = true
		if len(d.Env) == 0 || !strings.HasPrefix(d.Env[0], "SLOTSCOPE_THREADS=") {
			t.Errorf("%+v has no thread limit, so it cannot be recorded which run has it", d)
		}
	}
	if len(parts) != 3 || len(names) != 3 {
		t.Errorf("%v", parts)
	}
}

// TestFresh checks that only the first call waits for an answer: an old one is returned until its successor arrives.
func TestFresh(t *testing.T) {
	answers := make(chan int, 1)
	answers <- 1
	get := fresh(time.Millisecond, func() int { return <-answers })
	if got := get(); got != 1 {
		t.Fatal(got)
	}
	time.Sleep(2 * time.Millisecond)
	for range 3 {
		if got := get(); got != 1 { // would block if it waited
			t.Fatal(got)
		}
	}
	answers <- 2
	for start := time.Now(); get() != 2; time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("the answer was not renewed")
		}
	}
	answers <- 3 // ends the last renewal
}
