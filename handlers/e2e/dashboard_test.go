//go:build linux

package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"slotscope/model"
)

// TestDashboardNamesMetricsThatExist checks that every metric in docs/grafana.json is on /metrics after a training.
func TestDashboardNamesMetricsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || len(dashboard.Panels) == 0 {
		t.Fatalf("%d panels: %v", len(dashboard.Panels), err)
	}
	s := serve(t, t.TempDir())
	var run model.Run
	s.want(http.StatusCreated, "POST", "/api/runs", tinyConfig("dataset=shapes3d-synthetic", "model=hrr", "preset=tiny", "steps=4", "eval_every=2"), &run)
	s.reachState(run.ID, model.Finished)
	metrics := s.want(http.StatusOK, "GET", "/metrics", nil, nil)
	name := regexp.MustCompile(`slotscope_\w+`)
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s has no targets", p.Title)
		}
		for _, target := range p.Targets {
			found := name.FindAllString(target.Expr, -1)
			if len(found) == 0 {
				t.Errorf("%s: %s names no metric", p.Title, target.Expr)
			}
			for _, m := range found {
				if !strings.Contains(metrics, "\n"+m+"{") && !strings.Contains(metrics, "\n"+m+" ") {
					t.Errorf("%s: there is no metric %s", p.Title, m)
				}
			}
		}
	}
}
