package live

import (
	"github.com/prometheus/client_golang/prometheus"

	"laptime.dev/k6/internal/result"
)

var (
	requestsTotal = prometheus.NewDesc("laptime_generator_requests_total",
		"Requests finished, answered or failed.", []string{"phase", "endpoint"}, nil)
	errorsTotal = prometheus.NewDesc("laptime_generator_errors_total",
		"Requests failed, by kind.", []string{"phase", "kind"}, nil)
	latencySeconds = prometheus.NewDesc("laptime_generator_latency_seconds",
		"Latency of good answers, from issued (closed loads) or due (open loads) to the last byte.",
		[]string{"phase", "endpoint"}, nil)
	phaseRuns = prometheus.NewDesc("laptime_generator_phase",
		"1 for the phase that runs.", []string{"phase"}, nil)
)

// Describe implements prometheus.Collector.
func (f *Figures) Describe(to chan<- *prometheus.Desc) {
	to <- requestsTotal
	to <- errorsTotal
	to <- latencySeconds
	to <- phaseRuns
}

// Collect implements prometheus.Collector.
func (f *Figures) Collect(to chan<- prometheus.Metric) {
	running := f.running.Load()
	for _, p := range f.phases {
		runs := 0.0
		if p == running {
			runs = 1
		}
		to <- constant(phaseRuns, prometheus.GaugeValue, runs, p.name)
		all := p.sums()
		for kind, n := range all.errors {
			to <- constant(errorsTotal, prometheus.CounterValue, float64(n), p.name, kind)
		}
		for name, ep := range all.endpoints {
			to <- constant(requestsTotal, prometheus.CounterValue, float64(ep.Requests), p.name, name)
			to <- histogram(&ep.Latencies, p.name, name)
		}
	}
}

// constant gives an invalid metric, which fails the scrape, where the constructor that panics would end
// the trial.
func constant(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) prometheus.Metric {
	metric, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return metric
}

func histogram(l *result.LatencyTally, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(l.Below))
	for i, n := range l.Below {
		buckets[float64(result.TallyBounds[i])/1e6] = n
	}
	metric, err := prometheus.NewConstHistogram(latencySeconds, l.Count, float64(l.SumMicroseconds)/1e6, buckets, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(latencySeconds, err)
	}
	return metric
}
