package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	requestSeconds = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name: "slotscope_http_request_seconds", Help: "Duration of requests in seconds, by route pattern, method and status.",
		Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10},
	}, []string{"route", "method", "status"})
	openSockets = promauto.NewGauge(prometheus.GaugeOpts{Name: "slotscope_sockets", Help: "Open WebSockets."})
)

// measure records request durations for /metrics; for WebSockets it counts open connections instead.
func measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isSocket(r) {
			openSockets.Inc()
			defer openSockets.Dec()
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		next.ServeHTTP(ww, r)
		route := chi.RouteContext(r.Context()).RoutePattern()
		if route == "" {
			return // unknown path: skip it, so that arbitrary paths do not become metric labels
		}
		requestSeconds.WithLabelValues(route, r.Method, strconv.Itoa(ww.Status())).Observe(time.Since(start).Seconds())
	})
}
