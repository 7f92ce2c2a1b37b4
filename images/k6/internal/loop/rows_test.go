package loop

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"laptime.dev/k6/internal/session"
)

// counting answers 204 and counts the paths it is asked for.
func counting() (handler http.HandlerFunc, seen map[string]int) {
	var lock sync.Mutex
	seen = map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		seen[r.URL.Path]++
		lock.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}, seen
}

// deleting deletes the rows 0 … count-1, each when its turn comes.
func deleting(t *testing.T, count int64, use session.Use) *session.Work {
	t.Helper()
	ids, err := session.Numbers("ids", 0, count-1)
	if err != nil {
		t.Fatal(err)
	}
	ids.Use, ids.PerRequest = use, true
	return workOf(t, []session.Request{{
		Name: "delete", Method: http.MethodDelete, Target: "http://test", Path: "/tasks/{id}", KeepAlive: true, Ids: ids,
	}}, nil, nil)
}

var deletes = []Request{{Name: "delete", Idempotent: true, ExpectStatus: http.StatusNoContent}}

func TestEachIdIsUsedOnceOverAllConnectionsThreadsAndPhases(t *testing.T) {
	handler, seen := counting()
	server, requests, _ := serve(t, handler)
	work := deleting(t, 3000, session.Once)
	for _, total := range []int64{500, 2500} {
		phase := drive(t, server.Listener.Addr().String(), Plan{
			Requests: deletes, Work: work, Connections: 16, Threads: 4, KeepAlive: true, Total: total,
		})
		if phase.Responses != total {
			t.Errorf("%d of %d requests were answered: %v", phase.Responses, total, phase.Errors)
		}
	}
	if requests.Load() != 3000 || len(seen) != 3000 {
		t.Errorf("%d requests for %d ids, expected 3000 for 3000", requests.Load(), len(seen))
	}
}

func TestIdsComeAgainInTurn(t *testing.T) {
	handler, seen := counting()
	server, _, _ := serve(t, handler)
	drive(t, server.Listener.Addr().String(), Plan{
		Requests: deletes, Work: deleting(t, 10, session.Cycle), Connections: 4, Threads: 2, KeepAlive: true, Total: 200,
	})
	for i := range 10 {
		if n := seen[fmt.Sprintf("/tasks/%d", i)]; n != 20 {
			t.Errorf("id %d was used %d times, expected 20", i, n)
		}
	}
}

func TestAPhaseEndsWithItsRequestsOrItsTime(t *testing.T) {
	handler, _ := counting()
	server, requests, _ := serve(t, handler)
	plan := Plan{
		Requests: deletes, Work: deleting(t, 50, session.Cycle),
		Connections: 4, Threads: 2, KeepAlive: true, Total: 50, Duration: time.Minute,
	}
	drive(t, server.Listener.Addr().String(), plan)
	if requests.Load() != 50 {
		t.Errorf("%d requests, expected 50", requests.Load())
	}
	plan.Total, plan.Duration = 1_000_000_000, 50*time.Millisecond
	drive(t, server.Listener.Addr().String(), plan)
	if n := requests.Load(); n >= 1_000_000_000 {
		t.Errorf("%d requests in 50 ms", n)
	}
}
