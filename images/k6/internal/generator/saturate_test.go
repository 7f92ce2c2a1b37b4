package generator

import (
	"testing"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/spec"
)

// searched runs a search of a server that keeps up with every rate, and answers in time at those that
// meet the objective. It gives Low and the rate whose step it took for the measured phase, with the use of its busiest thread.
func searched(t *testing.T, from, most float64, meets func(rate float64) bool) (low, measured, busiest float64) {
	t.Helper()
	objective := &spec.Saturation{P99Seconds: 1, StartRate: from, MaxRate: most, StepSeconds: 1}
	found, at, err := search(objective, func(rate float64) (*result.Phase, loop.Cost, error) {
		var latency result.Histogram
		latency.Add(1000)
		if !meets(rate) {
			latency.Add(2_000_000)
		}
		encoded, err := latency.Encode()
		if err != nil {
			t.Fatal(err)
		}
		phase := &result.Phase{
			Requests: int64(rate), Responses: int64(rate), CompletedInWindow: int64(rate), WindowSeconds: 1,
			Endpoints: map[string]*result.Endpoint{"list": {Latency: encoded}},
		}
		return phase, loop.Cost{BusiestThread: rate / 1e6}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found.Low, float64(at.phase.Requests), at.cost.BusiestThread
}

func TestTheMeasuredPhaseOfASearchIsTheStepAtItsLow(t *testing.T) {
	// A hiccup at 800: all rates that are tried on the way to the breaking point meet the objective.
	low, measured, busiest := searched(t, 100, 6400, func(rate float64) bool { return rate < 780 || rate > 800 })
	if low <= 700 || low >= 800 || measured != low {
		t.Errorf("low %v, measured at %v", low, measured)
	}
	if busiest != 800/1e6 {
		t.Errorf("busiest thread %v, at the rate that missed it was %v", busiest, 800/1e6)
	}
}

func TestTheMeasuredPhaseOfASearchWithoutARateIsTheLowestTried(t *testing.T) {
	low, measured, _ := searched(t, 100, 6400, func(float64) bool { return false })
	if low != 0 || measured != 1 {
		t.Errorf("low %v, measured at %v", low, measured)
	}
}
