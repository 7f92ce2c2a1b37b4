package loop

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"laptime.dev/k6/internal/live"
)

// counts are the samples of counters by "phase name" and of histogram counts by "phase latency".
func counts(t *testing.T, figures *live.Figures) map[string]int64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(figures)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			name := labels["phase"] + " " + labels["endpoint"] + labels["kind"]
			if h := m.GetHistogram(); h != nil {
				out[name+" latencies"] = int64(h.GetSampleCount())
			} else {
				out[name] = int64(m.GetCounter().GetValue())
			}
		}
	}
	return out
}

func TestLiveTotalsAreThoseOfTheResult(t *testing.T) {
	figures := live.New("warmup", "measured")
	var answered atomic.Int64
	server, _, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if answered.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	address := server.Listener.Addr().String()
	warmup := drive(t, address, Plan{
		Connections: 3, KeepAlive: true, Total: 77, Threads: 2, Live: figures.Begin("warmup"),
	})
	all := int64(0)
	// A search runs the measured phase again and again: its counts add up.
	for range 2 {
		measured := drive(t, address, Plan{
			Connections: 4, KeepAlive: true, Rate: 1000, Duration: 500 * time.Millisecond, Threads: 2,
			Live: figures.Begin("measured"),
		})
		all += measured.Requests
	}
	found := counts(t, figures)
	failed := answered.Load() / 10
	for name, want := range map[string]int64{
		"warmup list":           warmup.Requests,
		"warmup list latencies": warmup.Responses,
		"warmup status":         warmup.Errors["status"],
		"measured list":         all,
		"measured status":       failed - warmup.Errors["status"],
		"measured reset":        0,
	} {
		if found[name] != want {
			t.Errorf("%s: %d, expected %d", name, found[name], want)
		}
	}
	if warmup.Requests != 77 || all == 0 || warmup.Errors["status"] == 0 {
		t.Errorf("%d and %d requests", warmup.Requests, all)
	}
}

// The counts of a loop are seen while it still runs, and never fall.
func TestLiveCountsGrow(t *testing.T) {
	figures := live.New("measured")
	phase := figures.Begin("measured")
	seen := map[int64]bool{}
	last := int64(0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The one connection waits for this answer meanwhile.
		now := counts(t, figures)["measured list"]
		if now < last {
			t.Errorf("%d after %d", now, last)
		}
		last, seen[now] = now, true
		w.Header().Set("Content-Length", strconv.Itoa(0))
		time.Sleep(10 * time.Millisecond)
	}))
	result := drive(t, server.Listener.Addr().String(), Plan{
		Connections: 1, KeepAlive: true, Total: 100, Live: phase,
	})
	server.Close() // waits for the handler
	if len(seen) < 3 || last == 0 || last > result.Requests {
		t.Errorf("%d different counts, the last one %d of %d", len(seen), last, result.Requests)
	}
}
