package generator

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/spec"
)

// searched runs a search of a server that keeps up with every rate, and answers in time at those that
// meet the objective. It gives Low and the rate whose step it took for the measured phase, with the use of its busiest thread.
func searched(t *testing.T, from, most float64, meets func(rate float64) bool) (low, measured, busiest float64) {
	t.Helper()
	objective := &spec.Saturation{P99Seconds: 1, StartRate: from, MaxRate: most, StepSeconds: 1}
	s := &steps{objective: objective, users: 100, timeout: time.Second, rest: func() (bool, error) { return true, nil }}
	s.run = func(rate float64) (*result.Phase, loop.Cost, error) {
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
	}
	found, at, err := s.search()
	if err != nil {
		t.Fatal(err)
	}
	return found.Low, float64(at.phase.Requests), at.cost.BusiestThread
}

func TestTheMeasuredPhaseOfASearchIsTheStepAtItsLow(t *testing.T) {
	// A hiccup at 800: all rates that are tried on the way to the breaking point meet the objective.
	low, measured, busiest := searched(t, 100, 6400, func(rate float64) bool { return rate < 780 || rate > 800 })
	if low <= 700 || low >= 800 || measured != math.Floor(low) {
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

// What is drawn from a seed, such as independent arrivals, is drawn anew for each step.
func TestARateThatIsTriedAgainHasOtherArrivalsAndTheSameForAllServers(t *testing.T) {
	plan := &loop.Plan{Seed: 7, Arrivals: loop.Poisson}
	seeds := map[uint64]bool{}
	for n := range uint64(40) {
		step, again := stepOf(plan, 100, n+1), stepOf(plan, 100, n+1)
		if step.Seed != again.Seed || step.Rate != 100 || step.EndRate != 100 || step.Arrivals != loop.Poisson {
			t.Errorf("step %d: %+v, for another server %+v", n+1, step, again)
		}
		seeds[step.Seed] = true
	}
	if len(seeds) != 40 || plan.Seed != 7 {
		t.Errorf("%d seeds for 40 steps", len(seeds))
	}
}

// step is what a search sees of a step of five seconds at a rate. answer gives for each request when
// it had its answer, in seconds since the start.
func step(t *testing.T, rate float64, answer func(due float64) float64) bool {
	t.Helper()
	const length, timeout = 5.0, 1.0
	recorder := result.NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	recorder.SetWindowEnd(int64(length * 1e9))
	recorder.Open()
	for i := range int(rate * length) {
		due := float64(i) / rate
		sample := result.Sample{Issued: int64(due * 1e9), Done: int64(answer(due) * 1e9), Status: 200}
		if late := sample.Issued + int64(timeout*1e9); sample.Done > late {
			sample.Done, sample.Status, sample.Kind = late, 0, result.Timeout
		}
		recorder.Record(&sample)
	}
	phase, err := result.Merge(recorder)
	if err != nil {
		t.Fatal(err)
	}
	s := &steps{objective: &spec.Saturation{P99Seconds: 0.1}, users: 10_000, timeout: timeout * time.Second}
	seen, err := s.judge(rate, phase)
	if err != nil {
		t.Fatal(err)
	}
	return seen.Broken()
}

// queue is a server that answers at most so many requests a second, in order, each after a time of
// its own.
func queue(capacity, takes float64) func(due float64) float64 {
	free := 0.0
	return func(due float64) float64 {
		free = max(free, due) + 1/capacity
		return free + takes
	}
}

func TestAServerThatKeepsUpIsNotBrokenHoweverLongItTakes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, rate := range []float64{1, 2, 10, 37, 1000} {
		for _, takes := range []float64{0.001, 0.3, 0.9} {
			if step(t, rate, func(due float64) float64 { return due + takes }) {
				t.Errorf("broken at %v/s with answers after %v s", rate, takes)
			}
		}
		// How many of a few are under way differs by more than a few where times vary this much.
		vary := 0.1
		if rate >= 1000 {
			vary = 0.9
		}
		if step(t, rate, func(due float64) float64 { return due + 0.05 + vary*random.Float64() }) {
			t.Errorf("broken at %v/s with response times that vary by %v s", rate, vary)
		}
		if step(t, rate, func(due float64) float64 {
			if due >= 0.5 && due < 1 {
				return 1 + (due-0.5)/10
			}
			return due + 0.001
		}) {
			t.Errorf("broken at %v/s by a stall that it made up for", rate)
		}
	}
}

func TestAServerThatFallsBehindIsBroken(t *testing.T) {
	for _, rate := range []float64{10, 37, 1000} {
		for _, takes := range []float64{0.001, 0.3} {
			// The queue grows to a second and more, so that requests time out.
			for _, share := range []float64{0.1, 0.5, 0.8} {
				if !step(t, rate, queue(share*rate, takes)) {
					t.Errorf("not broken at %v/s with a capacity of %v/s and %v s", rate, share*rate, takes)
				}
			}
		}
	}
	if !step(t, 1000, queue(970, 0.3)) {
		t.Error("not broken at 1000/s with a capacity of 970/s")
	}
	if !step(t, 1, func(due float64) float64 { return due + 2 }) {
		t.Error("not broken where nothing is answered in time")
	}
}
