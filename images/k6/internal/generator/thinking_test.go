package generator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/spec"
)

// serial is a server that answers one request after the other, each after so long.
func serial(takes time.Duration) http.HandlerFunc {
	var mutex sync.Mutex
	var free time.Time
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		mutex.Lock()
		if now := time.Now(); free.Before(now) {
			free = now
		}
		free = free.Add(takes)
		until := free
		mutex.Unlock()
		time.Sleep(time.Until(until))
		_, _ = io.WriteString(w, "hello")
	}
}

// threeSteps is a session whose users think for so many seconds before its second and its third step.
func threeSteps(think float64) string {
	return fmt.Sprintf(`"requests": [{"name": "a", "path": "/", "thinkSeconds": {"min": %[1]v}},
		{"name": "b", "path": "/", "thinkSeconds": {"min": %[1]v}}, {"name": "c", "path": "/"}],
		"sessions": [{"name": "s", "steps": ["a", "b", "c"]}]`, think)
}

// measuredOf drives the measured phase of a trial against a server.
func measuredOf(t *testing.T, handler http.Handler, work, load string) *result.Result {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	trial, err := spec.Parse(fmt.Sprintf(`{"trial": "demo-trial-001", "target": %q, "waitSeconds": 10, "timeoutSeconds": 30, %s, "load": %s}`,
		server.URL, work, load), "")
	if err != nil {
		t.Fatal(err)
	}
	segment, err := trial.Segment("")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	addresses, _, err := ready(ctx, trial, segment)
	if err != nil {
		t.Fatal(err)
	}
	out := &result.Result{Phases: map[string]*result.Phase{}}
	phase, _, err := drive(ctx, trial, planOf(trial, segment, addresses, trial.Work(segment)), out)
	if err != nil {
		t.Fatal(err)
	}
	out.Phases["measured"] = phase
	return out
}

// Where a session is longer than a step, only a part of the requests that a rate asks for come at the same time.
func TestASearchFindsNoRateThatASessionLongerThanAStepNeverBrings(t *testing.T) {
	const capacity = 100
	found := measuredOf(t, serial(time.Second/capacity), threeSteps(0.3),
		`{"saturation": {"p99Seconds": 0.1, "errorRate": 0, "startRate": 4, "maxRate": 250, "stepSeconds": 0.2, "maxConnections": 500, "keepAlive": true}}`,
	).Saturation
	if found.Low > 1.1*capacity {
		t.Errorf("%v requests/s of a server that can answer %d", found.Low, capacity)
	}
}

// sessionsOf is what was measured in a step at a rate of sessions of three steps, whose users think for so many
// seconds after the first and the second, by a server that answers at most so many requests a second.
func sessionsOf(t *testing.T, rate, think, capacity float64) *result.Phase {
	t.Helper()
	type request struct {
		step       int
		due, began float64
	}
	var waiting []request
	for due := 0.0; due < stepSeconds; due += 3 / rate {
		waiting = append(waiting, request{due: due, began: due})
	}
	recorder := result.NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"a", "b", "c"})
	recorder.SetWindowEnd(int64(stepSeconds * 1e9))
	recorder.Open()
	free := 0.0
	for len(waiting) > 0 {
		next := slices.MinFunc(waiting, func(a, b request) int { return cmp.Compare(a.due, b.due) })
		waiting = slices.DeleteFunc(waiting, func(one request) bool { return one == next })
		free = max(free, next.due) + 1/capacity
		recorder.Record(&result.Sample{
			Endpoint: next.step, Issued: int64(next.due * 1e9), Before: int64((next.due - next.began) * 1e9),
			Done: int64(free * 1e9), Status: 200,
		})
		if next.step < 2 {
			waiting = append(waiting, request{next.step + 1, free + think, next.began})
		}
	}
	phase, err := result.Merge(recorder)
	if err != nil {
		t.Fatal(err)
	}
	return phase
}

// Thinking is no fault of the server's, whose rate comes as soon as the first sessions are over.
func TestASearchFindsTheRateOfSessionsWhoseUsersThink(t *testing.T) {
	const capacity = 200.0
	for _, think := range []float64{0.01, 0.1, 0.4} {
		objective := &spec.Saturation{P99Seconds: 0.1, ErrorRate: 0, StartRate: 30, MaxRate: 1000, StepSeconds: stepSeconds}
		s := &steps{
			objective: objective, users: 10_000, timeout: timeoutSeconds * time.Second, thinks: spec.Seconds(2 * think / 3),
			rest: func() (bool, error) { return true, nil },
		}
		s.run = func(rate float64) (*result.Phase, loop.Cost, error) {
			return sessionsOf(t, rate, think, capacity), loop.Cost{}, nil
		}
		found, _, err := s.search()
		if err != nil {
			t.Fatal(err)
		}
		if found.Low < 0.96*capacity || found.Low > 1.03*capacity {
			t.Errorf("%v … %v with %v s of thought, of a server with %v/s", found.Low, found.High, think, capacity)
		}
	}
}
