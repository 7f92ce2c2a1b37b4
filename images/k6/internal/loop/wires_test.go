package loop

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
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

func wiresFor(count int) *Wires {
	rendered := make([][]byte, count)
	for i := range rendered {
		rendered[i] = fmt.Appendf(nil, "DELETE /tasks/%d HTTP/1.1\r\nHost: test\r\n\r\n", i)
	}
	return NewWires(rendered)
}

func TestEachIdIsUsedOnceOverAllConnectionsThreadsAndPhases(t *testing.T) {
	handler, seen := counting()
	server, requests, _ := serve(t, handler)
	list := []Request{{Name: "delete", Wires: wiresFor(3000), Idempotent: true, ExpectStatus: http.StatusNoContent}}
	for _, total := range []int64{500, 2500} {
		phase := drive(t, server.Listener.Addr().String(), Plan{
			Requests: list, Connections: 16, Threads: 4, KeepAlive: true, Total: total,
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
	list := []Request{{Name: "read", Wires: wiresFor(10), Idempotent: true, ExpectStatus: http.StatusNoContent}}
	drive(t, server.Listener.Addr().String(), Plan{Requests: list, Connections: 4, Threads: 2, KeepAlive: true, Total: 200})
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
		Requests:    []Request{{Name: "delete", Wires: wiresFor(50), Idempotent: true, ExpectStatus: http.StatusNoContent}},
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
