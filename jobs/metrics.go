package jobs

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	stored = promauto.NewCounter(prometheus.CounterOpts{
		Name: "slotscope_points_stored_total", Help: "Points copied from run folders into the index."})
	ended = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "slotscope_runs_ended_total", Help: "Runs that ended while this server watched, by how."}, []string{"state"})
)
