package generator

import (
	"context"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/saturation"
	"laptime.dev/k6/internal/spec"
)

// drive drives the measured phase: one plan, or a search over many of which one step counts.
func drive(ctx context.Context, trial *spec.Trial, plan *loop.Plan, out *result.Result) (*result.Phase, loop.Cost, error) {
	objective := trial.Load.Saturation
	if objective == nil {
		return loop.Run(ctx, plan)
	}
	plan.Timeout = min(plan.Timeout, longestAnswer(objective))
	found, at, err := search(objective, func(rate float64) (*result.Phase, loop.Cost, error) {
		step := *plan
		step.Rate, step.EndRate, step.StartAt = rate, rate, time.Time{}
		return loop.Run(ctx, &step)
	})
	if err != nil {
		return nil, loop.Cost{}, err
	}
	out.Saturation = found
	return at.phase, at.cost, nil
}

// tried is what was measured at one rate.
type tried struct {
	phase *result.Phase
	cost  loop.Cost
}

// search looks for the highest rate that meets the objective. It gives what it found and what was
// measured there: at Low, or, where no rate met the objective, at the lowest rate tried.
func search(
	objective *spec.Saturation, run func(rate float64) (*result.Phase, loop.Cost, error),
) (*saturation.Result, tried, error) {
	// No step that missed the objective can be Low. No rate is tried twice.
	met := map[float64]tried{}
	busiest := map[float64]float64{}
	var lowest tried
	lowestRate := math.Inf(1)
	found, err := saturation.Search(objective.StartRate, objective.MaxRate, func(rate float64) (saturation.Step, error) {
		phase, cost, err := run(rate)
		if err != nil {
			return saturation.Step{}, err
		}
		seen, err := judge(objective, rate, phase)
		if err != nil {
			return seen, err
		}
		busiest[rate] = cost.BusiestThread
		if seen.Met {
			met[rate] = tried{phase, cost}
		}
		if rate < lowestRate {
			lowest, lowestRate = tried{phase, cost}, rate
		}
		return seen, nil
	})
	if err != nil {
		return nil, tried{}, err
	}
	found.Objective = saturation.Objective{P99Seconds: objective.P99Seconds, ErrorRate: objective.ErrorRate}
	at, ok := met[found.Low]
	if !ok {
		at = lowest
	}
	// A generator that was the limit where the objective was missed has found its own rate.
	at.cost.BusiestThread = max(at.cost.BusiestThread, busiest[found.High])
	return found, at, nil
}

// longestAnswer is the time-out of a request in a search: what takes this long has missed the objective
// in any case, and an overloaded server is to have its rest soon.
func longestAnswer(objective *spec.Saturation) time.Duration {
	return max(time.Second, 10*spec.Seconds(objective.P99Seconds))
}

func judge(objective *spec.Saturation, rate float64, phase *result.Phase) (saturation.Step, error) {
	latency := hdrhistogram.New(1, result.MaxMicroseconds, 3)
	for _, endpoint := range phase.Endpoints {
		one, err := hdrhistogram.Decode([]byte(endpoint.Latency))
		if err != nil {
			return saturation.Step{}, err
		}
		latency.Merge(one)
	}
	asked := phase.Requests + phase.DroppedIterations
	seen := saturation.Step{
		Rate: rate, CompletedRate: completedRate(phase), Seconds: phase.WindowSeconds,
		P99Us:     latency.ValueAtQuantile(99),
		ErrorRate: float64(asked-phase.Responses) / float64(max(asked, 1)),
	}
	seen.Met = phase.Responses > 0 && seen.ErrorRate <= objective.ErrorRate &&
		float64(seen.P99Us) <= objective.P99Seconds*1e6
	return seen, nil
}

// completedRate is the rate of right answers, without what is under way at the end of a step
// counting against the server. The window of the answers leaves that out where all take about as long
// as the shortest one. Where response times vary, but lie below half of the step, a steady state is
// reached after that half: from there on as many answers leave as requests arrive. A server that
// falls behind is seen to do so in both.
func completedRate(phase *result.Phase) float64 {
	whole := float64(phase.CompletedInWindow) / phase.WindowSeconds
	half := float64(phase.CompletedInSecondHalf) / (phase.WindowSeconds / 2)
	return max(whole, half)
}
