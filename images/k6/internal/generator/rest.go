package generator

import (
	"context"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/result"
)

// rest waits between two steps of a search until the server is as it was before the first one: what
// nobody waits for any more may still be worked on. One user asks and sees how soon answers come.
type rest struct {
	// The median of a few response times; 0: most of them failed.
	probe func() (time.Duration, error)
	// Before the first step; 0: nothing is known.
	first time.Duration
	// However long a server takes, its next step begins after this.
	longest time.Duration
	pause   time.Duration // between two probes
}

const (
	probeRequests = 16
	probeSeconds  = time.Second
	// Medians of so few response times differ by this, on a machine that is not otherwise idle by more.
	asFast  = 2
	noDelay = time.Millisecond
	// In steps: a server that was asked for twice what it can do has as much left to do as a step is long.
	longestRest = 2
)

// restOf asks the server how it is before the first step.
func restOf(ctx context.Context, plan *loop.Plan) (*rest, error) {
	r := &rest{
		probe:   func() (time.Duration, error) { return probe(ctx, plan) },
		longest: longestRest * plan.Duration,
		pause:   100 * time.Millisecond,
	}
	var err error
	r.first, err = r.probe()
	return r, err
}

// wait says whether the server is as at first.
func (r *rest) wait(ctx context.Context) (bool, error) {
	if r.first == 0 {
		return true, nil
	}
	for began := time.Now(); ; {
		took, err := r.probe()
		if err != nil {
			return false, err
		}
		if took > 0 && took <= max(asFast*r.first, r.first+noDelay) {
			return true, nil
		}
		if time.Since(began) >= r.longest {
			return false, nil
		}
		select {
		case <-time.After(r.pause):
		case <-ctx.Done():
			return false, loop.ErrStopped
		}
	}
}

// probe gives the median response time of a few requests of one user, in none of the figures.
func probe(ctx context.Context, plan *loop.Plan) (time.Duration, error) {
	one := *plan
	one.Rate, one.EndRate, one.StartAt, one.ConnectOver = 0, 0, time.Time{}, 0
	one.Total, one.Duration = probeRequests, probeSeconds
	one.Connections, one.Streams, one.Threads = 1, 1, 1
	one.Latencies, one.Progress, one.Live = nil, nil, nil
	one.Work = plan.Work.WithoutThinking()
	phase, _, err := loop.Run(ctx, &one)
	if err != nil || 2*phase.Responses <= phase.Requests {
		return 0, err
	}
	latency := hdrhistogram.New(1, result.MaxMicroseconds, 3)
	for _, endpoint := range phase.Endpoints {
		if err := merge(latency, endpoint.Latency); err != nil {
			return 0, err
		}
	}
	return time.Duration(latency.ValueAtQuantile(50)) * time.Microsecond, nil
}
