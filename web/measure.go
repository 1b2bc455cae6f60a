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
		Name: "slotscope_http_request_seconds", Help: "Time to answer a request, by route pattern and status.",
		Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10},
	}, []string{"route", "method", "status"})
	openSockets = promauto.NewGauge(prometheus.GaugeOpts{Name: "slotscope_sockets", Help: "Open websockets."})
)

// measure counts and times requests for /metrics; sockets are counted while open instead.
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
			return // no page has this address: nothing to time, and names from outside stay out of the metrics
		}
		requestSeconds.WithLabelValues(route, r.Method, strconv.Itoa(ww.Status())).Observe(time.Since(start).Seconds())
	})
}
