package generator

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/saturation"
	"laptime.dev/k6/internal/spec"
)

// drive drives the measured phase: one plan, or a search over many of which the best one counts.
func drive(ctx context.Context, trial *spec.Trial, plan *loop.Plan, out *result.Result) (*result.Phase, loop.Cost, error) {
	objective := trial.Load.Saturation
	if objective == nil {
		return loop.Run(ctx, plan)
	}
	plan.Timeout = min(plan.Timeout, longestAnswer(objective))
	var best *result.Phase
	var cost loop.Cost
	bestRate, bestMet := 0.0, false
	busiest := map[float64]float64{}
	found, err := saturation.Search(objective.StartRate, objective.MaxRate, func(rate float64) (saturation.Step, error) {
		step := *plan
		step.Rate, step.EndRate, step.StartAt = rate, rate, time.Time{}
		phase, used, err := loop.Run(ctx, &step)
		if err != nil {
			return saturation.Step{}, err
		}
		busiest[rate] = used.BusiestThread
		seen, err := judge(objective, rate, phase)
		if err != nil {
			return seen, err
		}
		// The highest rate that was met; where none was, the lowest.
		if best == nil || (seen.Met && (!bestMet || rate > bestRate)) || (!seen.Met && !bestMet && rate < bestRate) {
			best, cost, bestRate, bestMet = phase, used, rate, seen.Met
		}
		return seen, nil
	})
	if err != nil {
		return nil, cost, err
	}
	found.Objective = saturation.Objective{P99Seconds: objective.P99Seconds, ErrorRate: objective.ErrorRate}
	out.Saturation = found
	// A generator that was the limit where the objective was missed has found its own rate.
	cost.BusiestThread = max(cost.BusiestThread, busiest[found.High])
	return best, cost, nil
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
		Rate: rate, CompletedRate: float64(phase.CompletedInWindow) / phase.WindowSeconds,
		P99Us:     latency.ValueAtQuantile(99),
		ErrorRate: float64(asked-phase.Responses) / float64(max(asked, 1)),
	}
	seen.Met = phase.Responses > 0 && seen.ErrorRate <= objective.ErrorRate &&
		float64(seen.P99Us) <= objective.P99Seconds*1e6
	return seen, nil
}
