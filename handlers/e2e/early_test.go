//go:build linux

package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"slotscope/model"
)

// TestEarlyStopAndBestCheckpoint stops a real training early. The page shows the reason and the best checkpoint, which can be played and
// exported as @best.
func TestEarlyStopAndBestCheckpoint(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	var run model.Run
	s.want(http.StatusUnprocessableEntity, "POST", "/api/runs", tinyConfig("dataset=shapes3d-synthetic", "model=hrr", "preset=tiny", "stop_when=infom"), nil)
	s.want(http.StatusCreated, "POST", "/api/runs", tinyConfig("dataset=shapes3d-synthetic", "model=hrr", "preset=tiny", "steps=5000", "eval_every=2", "best_by=psnr", "stop_when=loss>0@7"), &run)
	run = s.reachState(run.ID, model.Finished)
	if run.Step != 7 || run.Early != "total>0@7" || run.Best < 2 || run.Best > 7 || run.BestValue == 0 || !strings.Contains(run.Reason, "Stopped early after step 7 of 5,000") {
		t.Errorf("final status %+v", run.Status)
	}
	page := s.want(http.StatusOK, "GET", "/runs/"+run.ID, nil, nil)
	for _, part := range []string{"Stopped early after step 7 of 5,000", `data-testid="best"`, "best PSNR in dB: "} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	s.want(http.StatusOK, "GET", "/play/"+run.ID+"@best", nil, nil)
	if out, err := command(t, "export", run.ID+"@best", "--data", s.dir, "--out", t.TempDir()+"/bundle").CombinedOutput(); err != nil {
		t.Errorf("export of the best: %v\n%s", err, out)
	}
}
