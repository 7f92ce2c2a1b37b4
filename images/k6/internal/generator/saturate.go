package generator

import (
	"context"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/saturation"
	"laptime.dev/k6/internal/session"
	"laptime.dev/k6/internal/spec"
)

// drive drives the measured phase: one plan, or a search over many of which one step counts.
func drive(ctx context.Context, trial *spec.Trial, plan *loop.Plan, out *result.Result) (*result.Phase, loop.Cost, error) {
	objective := trial.Load.Saturation
	if objective == nil {
		return loop.Run(ctx, plan)
	}
	plan.Timeout = min(plan.Timeout, longestAnswer(objective))
	rest, err := restOf(ctx, plan)
	if err != nil {
		return nil, loop.Cost{}, err
	}
	tries := uint64(0)
	s := &steps{
		objective: objective, users: trial.Load.Users(), timeout: plan.Timeout, thinks: plan.Work.ThinkWithin(),
		run: func(rate float64) (*result.Phase, loop.Cost, error) {
			tries++
			return loop.Run(ctx, stepOf(plan, rate, tries))
		},
		rest: func() (bool, error) { return rest.wait(ctx) },
	}
	found, at, err := s.search()
	if err != nil {
		return nil, loop.Cost{}, err
	}
	out.Saturation = found
	return at.phase, at.cost, nil
}

// stepOf is the load of a step of a search, of which it is the n-th, from 1. Independent arrivals are others in each
// step, though the same for all servers: a rate that is tried again would else meet the same bursts again, and two of
// three steps say no more than one.
func stepOf(plan *loop.Plan, rate float64, n uint64) *loop.Plan {
	step := *plan
	step.Rate, step.EndRate, step.StartAt = rate, rate, time.Time{}
	step.Seed = session.Mixed(plan.Seed, n)
	return &step
}

// tried is what was measured at one rate.
type tried struct {
	phase *result.Phase
	cost  loop.Cost
}

// steps are those of a search.
type steps struct {
	objective *spec.Saturation
	users     int           // most requests under way
	timeout   time.Duration // of a request
	thinks    time.Duration // for each request, its user with a connection of his own
	run       func(rate float64) (*result.Phase, loop.Cost, error)
	// Waits until the server is as at first, and says whether it is.
	rest func() (bool, error)

	missed     bool                // the step before
	met        map[float64]tried   // the last ones that met the objective: no other can be Low
	busiest    map[float64]float64 // thread, by rate
	lowest     tried
	lowestRate float64
}

// search looks for the highest rate that meets the objective. It gives what it found and what was
// measured there: at Low, or, where no rate met the objective, at the lowest rate tried.
func (s *steps) search() (*saturation.Result, tried, error) {
	s.met, s.busiest, s.lowestRate = map[float64]tried{}, map[float64]float64{}, math.Inf(1)
	found, err := saturation.Search(s.objective.StartRate, s.objective.MaxRate, s.try)
	if err != nil {
		return nil, tried{}, err
	}
	found.Objective = saturation.Objective{P99Seconds: s.objective.P99Seconds, ErrorRate: s.objective.ErrorRate}
	at, ok := s.met[found.Low]
	if !ok {
		at = s.lowest
	}
	// A generator that was the limit where the objective was missed has found its own rate.
	at.cost.BusiestThread = max(at.cost.BusiestThread, s.busiest[found.High])
	return found, at, nil
}

func (s *steps) try(rate float64) (saturation.Step, error) {
	// What met the objective was answered in time and has left nothing behind.
	rested := true
	var err error
	if s.missed {
		if rested, err = s.rest(); err != nil {
			return saturation.Step{}, err
		}
	}
	phase, cost, err := s.run(rate)
	if err != nil {
		return saturation.Step{}, err
	}
	seen, err := s.judge(rate, phase)
	if err != nil {
		return seen, err
	}
	seen.Restless, s.missed = !rested, !seen.Met
	s.busiest[rate] = max(s.busiest[rate], cost.BusiestThread)
	if seen.Met {
		s.met[rate] = tried{phase, cost}
	}
	if rate < s.lowestRate {
		s.lowest, s.lowestRate = tried{phase, cost}, rate
	}
	return seen, nil
}

// longestAnswer is the time-out of a request in a search: what takes this long has missed the objective
// in any case, and an overloaded server is to have its rest soon.
func longestAnswer(objective *spec.Saturation) time.Duration {
	return max(time.Second, 10*spec.Seconds(objective.P99Seconds))
}

func (s *steps) judge(rate float64, phase *result.Phase) (saturation.Step, error) {
	latency, sent := hdrhistogram.New(1, result.MaxMicroseconds, 3), hdrhistogram.New(1, result.MaxMicroseconds, 3)
	for _, endpoint := range phase.Endpoints {
		if err := merge(latency, endpoint.Latency); err != nil {
			return saturation.Step{}, err
		}
		if err := merge(sent, endpoint.UncorrectedLatency); err != nil {
			return saturation.Step{}, err
		}
	}
	asked := phase.Requests + phase.DroppedIterations
	micros, answered := p99(latency, asked)
	seen := saturation.Step{
		Rate: rate, CompletedRate: completedRate(phase, s.thinks > 0), Seconds: phase.WindowSeconds,
		P99Us:     micros,
		ErrorRate: float64(asked-phase.Responses) / float64(max(asked, 1)),
	}
	seen.Met = answered && seen.ErrorRate <= s.objective.ErrorRate &&
		float64(seen.P99Us) <= s.objective.P99Seconds*1e6 && !s.fallsBehind(&seen)
	late := hdrhistogram.New(1, result.MaxMicroseconds, 3)
	if err := merge(late, phase.Lateness); err != nil {
		return seen, err
	}
	took := time.Duration(sent.ValueAtQuantile(99)) * time.Microsecond
	if phase.Errors["timeout"] > asked/100 {
		took = s.timeout
	}
	seen.Late = s.late(rate, time.Duration(late.ValueAtQuantile(99))*time.Microsecond, took)
	return seen, nil
}

// p99 is the 99th percentile, in microseconds, of so many requests, of which one without a right answer is slower than
// all others; false: it is the one of such a request.
func p99(right *hdrhistogram.Histogram, asked int64) (int64, bool) {
	rank := (99*asked + 99) / 100
	if rank == 0 || rank > right.TotalCount() {
		return 0, false
	}
	return right.ValueAtQuantile(100 * float64(rank) / float64(right.TotalCount())), true
}

// fallsBehind says that the queue grows, and the objective is met only as long as it is short: a step may end before
// it has taken the time that is good. The errors that are allowed are no queue.
func (s *steps) fallsBehind(seen *saturation.Step) bool {
	right := *seen
	right.Rate *= 1 - seen.ErrorRate
	return right.Broken()
}

const (
	// What takes less is not the generator's fault, nor a matter for the objective.
	noLateness = time.Millisecond
	lateShare  = 0.1 // of the p99 that is good
)

// late says that the generator did not send in time, by the 99th percentiles of lateness and of the
// time from sent to answered. Requests are sent late, too, when all connections are busy, or kept by users
// who think, and that is the server's, or the load's: where as many as half of them may have been taken at a time nobody
// knows.
func (s *steps) late(rate float64, lateness, took time.Duration) bool {
	if lateness < noLateness || lateness.Seconds() <= lateShare*s.objective.P99Seconds {
		return false
	}
	return rate*(took+s.thinks).Seconds() <= float64(s.users)/2
}

// merge adds a histogram as it stands in a result; empty: there is none.
func merge(into *hdrhistogram.Histogram, encoded string) error {
	if encoded == "" {
		return nil
	}
	one, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return err
	}
	into.Merge(one)
	return nil
}

// completedRate is the rate of right answers, without what is under way at the end of a step
// counting against the server. The window of the answers leaves that out where all take about as long
// as the shortest one. Where response times vary, but lie below half of the step, a steady state is
// reached after that half: from there on as many answers leave as requests arrive. A server that
// falls behind is seen to do so in both. Users who think send the later steps of their sessions later: what has not
// been asked for by the end of the step says nothing of how much a server can do at a time.
func completedRate(phase *result.Phase, thinks bool) float64 {
	completed := phase.CompletedInWindow
	if thinks {
		completed = phase.CompletedInTime
	}
	whole := float64(completed) / phase.WindowSeconds
	half := float64(phase.CompletedInSecondHalf) / (phase.WindowSeconds / 2)
	return max(whole, half)
}
