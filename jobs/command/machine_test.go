package command

import (
	"fmt"
	"strings"
	"testing"

	"slotscope/model/compute"
)

// Without a GPU runs wait for the processors: all of them together, or parts that have names and threads of their own.
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
			t.Errorf("%+v: without threads of its own it would not be noted which run has it", d)
		}
	}
	if len(parts) != 3 || len(names) != 3 {
		t.Errorf("%v", parts)
	}
}
