package command

import (
	"fmt"
	"strings"
	"testing"

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
