package spec

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Placeholder stands for the id of a row in the path or the body of a request.
const Placeholder = "{id}"

// Ids are whole numbers: ids of rows that are there before the trial begins.
type Ids struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Use   string `json:"use"` // "cycle" or "once"
}

const (
	useCycle = "cycle"
	useOnce  = "once"
	// Each is rendered before the trial.
	maxIds = 1_000_000
	// Each thread of the loop begins with another request, so with several requests one may be
	// sent by up to so many more than its share.
	spread = 8
)

func (i *Ids) count() int64 { return i.Last - i.First + 1 }

func (r *Request) checkIds() error {
	wanted := strings.Contains(r.Path, Placeholder) || r.Body != nil && strings.Contains(*r.Body, Placeholder)
	switch {
	case r.Ids == nil && wanted:
		return fmt.Errorf("%s: ids are missing", Placeholder)
	case r.Ids == nil:
		return nil
	case !wanted:
		return fmt.Errorf("ids: neither path nor body holds %s", Placeholder)
	case r.Ids.Use != useCycle && r.Ids.Use != useOnce:
		return fmt.Errorf("ids.use: %q is neither %s nor %s", r.Ids.Use, useCycle, useOnce)
	case r.Ids.First < 0 || r.Ids.count() < 1 || r.Ids.count() > maxIds:
		return fmt.Errorf("ids: %d … %d are not 1 … %d ids", r.Ids.First, r.Ids.Last, maxIds)
	}
	return nil
}

func (t *Trial) generators() int64 {
	if t.Generators == nil {
		return 1
	}
	return int64(t.Generators.Count)
}

// mostRequests is how many requests of the load each generator can send until an endpoint that uses
// its ids once may have used up the smallest part of them; false: there is no such endpoint.
func (t *Trial) mostRequests() (most int64, bounded bool) {
	most = math.MaxInt64
	for i := range t.Requests {
		ids := t.Requests[i].Ids
		if ids == nil || ids.Use != useOnce {
			continue
		}
		bounded = true
		part := ids.count() / t.generators()
		if len(t.Requests) == 1 {
			most = min(most, part)
		} else {
			most = min(most, max(0, part-spread)*int64(len(t.Requests)))
		}
	}
	return most, bounded
}

// measured is how many requests the measured phase sends, 0 when nobody knows.
func (l *Load) measured() int64 {
	switch {
	case l.Closed != nil:
		return l.Closed.Requests
	case l.Open != nil:
		return int64(math.Ceil(l.Open.Rate * l.Open.DurationSeconds))
	case l.Ramp != nil:
		return int64(math.Ceil((l.Ramp.From + l.Ramp.To) / 2 * l.Ramp.DurationSeconds))
	}
	return 0
}

func (t *Trial) checkBudget() error {
	each, bounded := t.mostRequests()
	if !bounded {
		return nil
	}
	switch measured, most := t.Load.measured(), each*t.generators(); {
	case measured == 0:
		return errors.New("load: a request uses each of its ids once: give closed.requests, not a duration or a search")
	case measured > most:
		return fmt.Errorf("load: %d requests, but a request uses each of its ids once: at most %d", measured, most)
	}
	return nil
}

// Warmup is how long the warm-up lasts and how many requests each generator may send in it: 0
// without a bound. What the measured phase needs of ids that are used once is left to it, if need be
// without a warm-up. It is the same for all generators: they begin it together.
func (t *Trial) Warmup() (duration time.Duration, requests int64) {
	duration = Seconds(t.WarmupSeconds)
	most, bounded := t.mostRequests()
	if !bounded || duration == 0 {
		return duration, 0
	}
	generators := t.generators()
	left := most - (t.Load.measured()+generators-1)/generators
	if left == 0 {
		return 0, 0
	}
	var rate float64
	switch {
	case t.Load.Open != nil:
		rate = t.Load.Open.Rate
	case t.Load.Ramp != nil:
		rate = t.Load.Ramp.From
	default:
		return duration, left
	}
	return min(duration, Seconds(float64((left-1)*generators)/rate)), 0
}

// Wires gives the request as it goes over the wire, once for each of the segment's ids.
func (r *Request) Wires(target string, keepAlive bool, segment Segment) ([][]byte, error) {
	ids := segment.ids(*r.Ids)
	rendered := make([][]byte, 0, ids.count())
	for id := ids.First; id <= ids.Last; id++ {
		one, text := *r, strconv.FormatInt(id, 10)
		one.Path = strings.ReplaceAll(r.Path, Placeholder, text)
		if r.Body != nil {
			body := strings.ReplaceAll(*r.Body, Placeholder, text)
			one.Body = &body
		}
		wire, err := one.Wire(target, keepAlive)
		if err != nil {
			return nil, err
		}
		rendered = append(rendered, wire)
	}
	return rendered, nil
}
