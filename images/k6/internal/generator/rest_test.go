package generator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/spec"
)

// answering is a rest whose probes take these times, one after the other, and then the last of them.
func answering(times ...time.Duration) *rest {
	asked := 0
	return &rest{
		first: 2 * time.Millisecond, longest: 50 * time.Millisecond, pause: time.Millisecond,
		probe: func() (time.Duration, error) {
			took := times[min(asked, len(times)-1)]
			asked++
			return took, nil
		},
	}
}

func TestTheNextStepWaitsUntilAnswersComeAsFastAsAtFirst(t *testing.T) {
	for _, one := range []struct {
		times  []time.Duration
		rested bool
	}{
		{[]time.Duration{2 * time.Millisecond}, true},
		{[]time.Duration{300 * time.Millisecond, 0, 5 * time.Millisecond, 3900 * time.Microsecond}, true},
		{[]time.Duration{5 * time.Millisecond}, false},
		{[]time.Duration{0}, false},
	} {
		answers := answering(one.times...)
		if one.rested {
			answers.longest = time.Minute // however slow the machine is
		}
		if rested, err := answers.wait(context.Background()); err != nil || rested != one.rested {
			t.Errorf("%v: %v, %v", one.times, rested, err)
		}
	}
}

func TestWhereNothingIsKnownOfTheBeginningNobodyWaits(t *testing.T) {
	unknown := answering(time.Second)
	unknown.first = 0
	if rested, err := unknown.wait(context.Background()); err != nil || !rested {
		t.Errorf("%v, %v", rested, err)
	}
}

func TestARestEndsWhenTheTrialIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := answering(time.Second).wait(ctx); err != loop.ErrStopped {
		t.Error(err)
	}
}

// backlog is a server that answers one request after the other, each after 10 ms, also those that
// nobody waits for any more.
func backlog(t *testing.T) *loop.Plan {
	t.Helper()
	var one sync.Mutex
	server := serveAt(t, func(http.ResponseWriter, *http.Request) {
		one.Lock()
		defer one.Unlock()
		time.Sleep(10 * time.Millisecond)
	})
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := spec.Parse(`{"trial":"t","target":"`+server+`","waitSeconds":1,"requests":[{"name":"list","path":"/"}],
		"load":{"saturation":{"p99Seconds":0.1,"errorRate":0,"startRate":1,"maxRate":9,"stepSeconds":1,"maxConnections":200,"keepAlive":true}},
		"timeoutSeconds":1}`, "")
	if err != nil {
		t.Fatal(err)
	}
	segment := spec.Segment{Index: 0, Count: 1}
	return planOf(trial, segment, []netip.AddrPort{netip.MustParseAddrPort(address.Host)}, trial.Work(segment))
}

func TestAServerThatWorksOnWhatNobodyWaitsForIsLeftToRest(t *testing.T) {
	plan := backlog(t)
	ctx := context.Background()
	r, err := restOf(ctx, plan)
	if err != nil || r.first < 10*time.Millisecond {
		t.Fatalf("answers after %v at first, %v", r.first, err)
	}
	// 200 requests are two seconds of work, and nobody waits for longer than 0.3 s.
	over := *plan
	over.Rate, over.EndRate, over.Duration, over.Timeout = 1000, 1000, 200*time.Millisecond, 300*time.Millisecond
	if _, _, err := loop.Run(ctx, &over); err != nil {
		t.Fatal(err)
	}
	r.longest = time.Minute // on a machine that is busy with other things
	began := time.Now()
	rested, err := r.wait(ctx)
	if err != nil || !rested || time.Since(began) < 500*time.Millisecond {
		t.Errorf("rested %v after %v, %v", rested, time.Since(began), err)
	}
}

func TestAStepAfterAMissBeginsAfterARest(t *testing.T) {
	var order []string
	s := &steps{
		objective: &spec.Saturation{P99Seconds: 1, StartRate: 100, MaxRate: 200}, users: 10, timeout: time.Second,
		rest: func() (bool, error) { order = append(order, "rest"); return len(order) > 4, nil },
		run: func(rate float64) (*result.Phase, loop.Cost, error) {
			what := map[float64]string{100: "low", 200: "high"}[rate]
			if what == "" {
				what = "between"
			}
			order = append(order, what)
			var latency result.Histogram
			for range 9 {
				latency.Add(1000)
			}
			phase := &result.Phase{
				Requests: 9, Responses: 9, CompletedInWindow: int64(rate), WindowSeconds: 1,
				Endpoints: map[string]*result.Endpoint{"list": {Latency: encoded(t, &latency)}},
			}
			if rate > 100 {
				phase.Responses = 0
			}
			return phase, loop.Cost{}, nil
		},
	}
	found, _, err := s.search()
	if err != nil || found.Restless != 1 || !found.Steps[2].Restless || found.Steps[1].Restless {
		t.Errorf("%+v, %v", found, err)
	}
	if order[0] != "low" || order[1] != "high" || order[2] != "rest" || order[3] != "high" || order[4] != "rest" {
		t.Error(order)
	}
}

func TestAGeneratorThatIsLateByItselfIsTheOneThatIsLate(t *testing.T) {
	s := &steps{objective: &spec.Saturation{P99Seconds: 0.05}, users: 1000}
	for _, one := range []struct {
		what           string
		rate           float64
		lateness, took time.Duration
		late           bool
	}{
		{"a tenth of what is good, and no more", 5000, 5 * time.Millisecond, 2 * time.Millisecond, false},
		{"more than that, on connections that are mostly free", 5000, 6 * time.Millisecond, 2 * time.Millisecond, true},
		{"all connections are busy", 5000, 60 * time.Millisecond, 180 * time.Millisecond, false},
	} {
		if late := s.late(one.rate, one.lateness, one.took); late != one.late {
			t.Errorf("%s: %v", one.what, late)
		}
	}
	s.thinks = 90 * time.Millisecond
	if !s.late(5000, 6*time.Millisecond, 9*time.Millisecond) || s.late(5000, 6*time.Millisecond, 11*time.Millisecond) {
		t.Error("users who think keep 450 of 1000 connections, and with 50 more nobody knows")
	}
	s.thinks = 0
	s.objective.P99Seconds = 0.001
	if s.late(5000, 900*time.Microsecond, time.Millisecond) {
		t.Error("less than a millisecond is late")
	}
}

func serveAt(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}
