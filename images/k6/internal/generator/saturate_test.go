package generator

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/saturation"
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
		takes := int64(1000)
		if !meets(rate) {
			takes = 2_000_000
		}
		for range int64(rate) {
			latency.Add(takes)
		}
		phase := &result.Phase{
			Requests: int64(rate), Responses: int64(rate), CompletedInWindow: int64(rate), WindowSeconds: 1,
			Endpoints: map[string]*result.Endpoint{"list": {Latency: encoded(t, &latency)}},
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

const (
	stepSeconds    = 5.0
	timeoutSeconds = 1.0
)

// phaseOf is what was measured in a step at a rate. answer gives for each request when it had its
// answer, in seconds since the start.
func phaseOf(t *testing.T, rate float64, answer func(due float64) float64) *result.Phase {
	t.Helper()
	recorder := result.NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	recorder.SetWindowEnd(int64(stepSeconds * 1e9))
	recorder.Open()
	for i := range int(rate * stepSeconds) {
		due := float64(i) / rate
		sample := result.Sample{Issued: int64(due * 1e9), Done: int64(answer(due) * 1e9), Status: 200}
		if late := sample.Issued + int64(timeoutSeconds*1e9); sample.Done > late {
			sample.Done, sample.Status, sample.Kind = late, 0, result.Timeout
		}
		recorder.Record(&sample)
	}
	phase, err := result.Merge(recorder)
	if err != nil {
		t.Fatal(err)
	}
	return phase
}

// step says whether a search takes a server for broken that answers so in a step at a rate.
func step(t *testing.T, rate float64, answer func(due float64) float64) bool {
	t.Helper()
	s := &steps{objective: &spec.Saturation{P99Seconds: 0.1}, users: 10_000, timeout: timeoutSeconds * time.Second}
	seen, err := s.judge(rate, phaseOf(t, rate, answer))
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

// A server that serves one request at a time is saturated where they come as fast as it serves them.
func TestTheRateOfAServerWithAQueueIsFound(t *testing.T) {
	for _, capacity := range []float64{30, 200, 1500} {
		objective := &spec.Saturation{P99Seconds: 0.1, ErrorRate: 0.01, StartRate: 20, MaxRate: 5000, StepSeconds: stepSeconds}
		s := &steps{objective: objective, users: 10_000, timeout: timeoutSeconds * time.Second}
		s.rest = func() (bool, error) { return true, nil }
		s.run = func(rate float64) (*result.Phase, loop.Cost, error) {
			return phaseOf(t, rate, queue(capacity, 0.001)), loop.Cost{}, nil
		}
		found, at, err := s.search()
		if err != nil {
			t.Fatal(err)
		}
		// In a step of five seconds 2 % more than it serves come to a queue of 0.1 s.
		if found.Low < 0.96*capacity || found.Low > 1.03*capacity || found.High <= found.Low || found.High > 1.08*capacity ||
			found.Breaking < found.High || found.Breaking > 4*capacity {
			t.Errorf("%v … %v, broken at %v, of a server with %v/s", found.Low, found.High, found.Breaking, capacity)
		}
		if math.Abs(float64(at.phase.Requests)-found.Low*stepSeconds) > 1 {
			t.Errorf("%d requests in the step that counts, at %v/s", at.phase.Requests, found.Low)
		}
	}
}

// Where the p99 that is good is not small beside a step, the queue of an overloaded server has not got that long by
// its end.
func TestARateThatAServerFallsBehindIsNotMet(t *testing.T) {
	for _, p99 := range []float64{0.5, 1, 2.5} {
		objective := &spec.Saturation{P99Seconds: p99, ErrorRate: 0.01, StartRate: 190, MaxRate: 5000, StepSeconds: stepSeconds}
		s := &steps{objective: objective, users: 10_000, timeout: longestAnswer(objective), rest: func() (bool, error) { return true, nil }}
		s.run = func(rate float64) (*result.Phase, loop.Cost, error) {
			return phaseOf(t, rate, queue(500, 0.001)), loop.Cost{}, nil
		}
		found, _, err := s.search()
		if err != nil {
			t.Fatal(err)
		}
		if found.Low < 470 || found.Low > 515 || found.High > 540 {
			t.Errorf("p99 %v s: %v … %v of a server with 500/s", p99, found.Low, found.High)
		}
	}
}

// The p99 is that of all requests, of which one without a right answer is slower than all others, as everywhere.
func TestThePercentileOfAStepIsOfAllRequests(t *testing.T) {
	for _, one := range []struct {
		failed, dropped, slow int64 // of 1000
		met                   bool
	}{
		{failed: 10, met: true},
		{failed: 11},
		{failed: 20},
		{dropped: 10, met: true},
		{dropped: 11},
		{failed: 5, slow: 5, met: true},
		{failed: 5, slow: 6},
		{slow: 10, met: true},
		{slow: 11},
	} {
		recorder := result.NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
		recorder.SetWindowEnd(1e9)
		recorder.Open()
		for i := range int64(1000) {
			sample := result.Sample{Issued: i * 1e6, Done: i*1e6 + 1e6, Status: 200}
			switch {
			case i < one.dropped:
				recorder.Drop(0, i*1e6)
				continue
			case i < one.dropped+one.failed:
				sample.Status, sample.Kind = 503, result.Status
			case i < one.dropped+one.failed+one.slow:
				sample.Done += 200e6
			}
			recorder.Record(&sample)
		}
		phase, err := result.Merge(recorder)
		if err != nil {
			t.Fatal(err)
		}
		s := &steps{objective: &spec.Saturation{P99Seconds: 0.1, ErrorRate: 0.05}, users: 100, timeout: time.Second}
		if seen, err := s.judge(1000, phase); err != nil || seen.Met != one.met {
			t.Errorf("%+v: %+v, %v", one, seen, err)
		}
	}
}

// Errors that the objective allows are no queue.
func TestErrorsThatAreAllowedAreNoQueue(t *testing.T) {
	s := &steps{}
	for errors, behind := range map[float64]bool{0: true, 0.01: true, 0.02: false} {
		if s.fallsBehind(&saturation.Step{Rate: 1000, CompletedRate: 965, ErrorRate: errors}) != behind {
			t.Errorf("965 of 1000 requests/s with a share of errors of %v", errors)
		}
	}
}

// A generator that sends late is told from a server that leaves no connection to send by.
func TestAStepIsLateWhereTheGeneratorItselfWas(t *testing.T) {
	ms := time.Millisecond
	for _, one := range []struct {
		says                  string
		lateness, took, p99   time.Duration
		lateRequests, timeout int64 // of 1000
		late                  bool
	}{
		{says: "late by a fifth of the objective", lateness: 20 * ms, took: 5 * ms, p99: 100 * ms, lateRequests: 20, late: true},
		{says: "late by less than a tenth of it", lateness: 9 * ms, took: 5 * ms, p99: 100 * ms, lateRequests: 20},
		{says: "late by less than anybody sees", lateness: ms * 9 / 10, took: ms / 5, p99: 2 * ms, lateRequests: 20},
		{says: "late with few requests", lateness: 20 * ms, took: 5 * ms, p99: 100 * ms, lateRequests: 5},
		{says: "with nearly half of the connections busy", lateness: 20 * ms, took: 48 * ms, p99: 100 * ms, lateRequests: 20, late: true},
		{says: "with more than half of them busy", lateness: 20 * ms, took: 52 * ms, p99: 100 * ms, lateRequests: 20},
		{says: "with few requests that timed out", lateness: 20 * ms, took: 5 * ms, p99: 100 * ms, lateRequests: 20, timeout: 10, late: true},
		{says: "with connections that wait for a time-out", lateness: 20 * ms, took: 5 * ms, p99: 100 * ms, lateRequests: 20, timeout: 11},
	} {
		const rate = 1000
		var answered, sent, late result.Histogram
		for n := range int64(rate) {
			behind := time.Duration(0)
			if n < one.lateRequests {
				behind = one.lateness
			}
			late.Add(behind.Microseconds())
			if n >= one.timeout {
				sent.Add(one.took.Microseconds())
				answered.Add((behind + one.took).Microseconds())
			}
		}
		right := rate - one.timeout
		phase := &result.Phase{
			Requests: rate, Responses: right, CompletedInWindow: right, WindowSeconds: 1,
			Errors: map[string]int64{"timeout": one.timeout}, Lateness: encoded(t, &late),
			Endpoints: map[string]*result.Endpoint{
				"list": {Latency: encoded(t, &answered), UncorrectedLatency: encoded(t, &sent)},
			},
		}
		s := &steps{objective: &spec.Saturation{P99Seconds: one.p99.Seconds()}, users: 100, timeout: time.Second}
		seen, err := s.judge(rate, phase)
		if err != nil {
			t.Fatal(err)
		}
		if seen.Late != one.late {
			t.Errorf("%s: late %v", one.says, seen.Late)
		}
	}
}

func encoded(t *testing.T, histogram *result.Histogram) string {
	t.Helper()
	text, err := histogram.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
