package command

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"slotscope/model"
	"slotscope/model/bench"
)

func TestBenchFeedsAsTold(t *testing.T) {
	code, out, errs := called(t, "bench", "train", "--batch", "2", "--seconds", "0.05", "--engine", "cpu", "--steps-per-call", "2", "--resident", "always", "--json")
	var r bench.Result
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil || r.StepsPerCall != 2 || !r.Resident || r.Precision != model.Float32 && r.Precision != model.BF16x3 {
		t.Errorf("%d, %v: %s%s", code, err, out, errs)
	}
	if code, out, errs := called(t, "bench", "train", "--steps-per-call", "65"); code == 0 || !strings.Contains(out+errs, "65 is above the maximum 64") {
		t.Errorf("%d, %s%s", code, out, errs)
	}
}

// TestSimulatedThreads checks that simulated threads give a plausible step time and share of busy time, and that invalid options are rejected
// with a reason.
func TestSimulatedThreads(t *testing.T) {
	code, out, errs := called(t, "bench", "train", "--batch", "4", "--seconds", "0.1", "--simulate", "4", "--json")
	var r bench.Result
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("%d, %v: %s%s", code, err, out, errs)
	}
	busy := r.Profile.Busy()
	if !r.Simulated || r.Threads != 4 || r.Count < 1 || busy < 25 || busy > 100 || r.StepMS <= 0 {
		t.Errorf("busy %.0f%%: %+v", busy, r)
	}
	if each := r.StepMS / 1000; r.ImagesPerSecond < 3.99/each || r.ImagesPerSecond > 4.01/each {
		t.Errorf("%.1f images/s, steps of 4 images in %.3f ms", r.ImagesPerSecond, r.StepMS)
	}
	code, out, errs = called(t, "bench", "decode", "--seconds", "0.05", "--simulate", "2")
	if want := regexp.MustCompile(`on cpu \(2 simulated threads, busy \d+% of the time\): mean [\d.]+ ms over \d+`); code != 0 || !want.MatchString(out) {
		t.Errorf("%d: %s%s", code, out, errs)
	}
	for args, want := range map[string]string{
		"train --simulate 2000":                    "2000 is out of range; choose 1–1,024 threads",
		"train --simulate -1":                      "-1 is out of range",
		"data --simulate 2":                        "bench data reads on one goroutine",
		"train --simulate 2 --engine go":           "go has no threads to simulate",
		"train --simulate 2 --precision bf16x3":    "not possible with precision bf16x3",
		"decode --simulate 2 --engine xla:cuda":    "xla:cuda has no threads to simulate",
		"train --simulate two":                     "simulate",
		"train --simulate 2 --seconds 0 --batch 0": "seconds",
	} {
		if code, out, errs := called(t, append([]string{"bench"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("%s: %d, %s%s; want %q", args, code, out, errs, want)
		}
	}
}
