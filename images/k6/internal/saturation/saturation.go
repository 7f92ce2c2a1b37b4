// Package saturation searches for the highest arrival rate at which a server meets an objective.
package saturation

import (
	"errors"
	"math"
)

// Step is what was seen at one rate. Rates are requests per second.
type Step struct {
	Rate          float64 `json:"rate"`
	CompletedRate float64 `json:"completedRate"` // right answers, see Broken
	P99Us         int64   `json:"p99Us"`
	ErrorRate     float64 `json:"errorRate"`
	Met           bool    `json:"met"` // the objective
	// For how long requests arrived. 0: so long that no single request matters.
	Seconds float64 `json:"-"`
}

// Broken says that the server no longer answers as many requests as arrive. How long it takes for
// them is no matter: CompletedRate is to be that of a server in a steady state, in which as many
// answers leave as requests arrive, and not to count against it what is under way when the step
// ends. A few requests may be missing in any case, but never more than half of them: in a step with
// few they are more than a share.
func (s *Step) Broken() bool {
	missing := s.Rate - s.CompletedRate
	allowed := (1 - keptUp) * s.Rate
	if s.Seconds > 0 {
		allowed = max(allowed, min(2*aFew/s.Seconds, s.Rate/2))
	}
	return missing > allowed
}

// Result is what the search found: the server meets the objective at Low and misses it at High.
// Low is 0 where it met it at no rate; High and Breaking are absent where no rate was too high.
type Result struct {
	Low      float64 `json:"low"`
	High     float64 `json:"high,omitempty"`
	Breaking float64 `json:"breaking,omitempty"` // the lowest rate tried that it did not keep up with
	Steps    []Step  `json:"steps"`
	Objective
}

// Objective is what a rate is to meet.
type Objective struct {
	P99Seconds float64 `json:"p99Seconds"`
	ErrorRate  float64 `json:"errorRate"` // share of the requests, 0…1
}

const (
	// Response times vary, and so does how many requests are under way.
	keptUp = 0.98
	// Requests of half a step: in one of 5 s at 10/s it has 25.
	aFew = 3
	// The search ends when the interval is this narrow.
	narrow = 1.05
	// From the first rate down to the lowest and up to the highest that make sense, by halves, and
	// then as many bisections as make an interval of one half narrow: never more than these.
	mostSteps = 40
)

// Search doubles the rate from a first one until the objective is missed, or halves it until it is
// met, and bisects what lies between. Then it doubles until the server breaks, if it has not yet.
// Rates are whole numbers within 1 … most.
func Search(from, most float64, try func(rate float64) (Step, error)) (*Result, error) {
	s := &search{try: try}
	for rate := min(from, most); s.err == nil; {
		if s.step(rate) {
			if rate == most || s.result.High > 0 {
				break
			}
			rate = min(2*rate, most)
			continue
		}
		if s.result.Low > 0 || rate <= 1 {
			break
		}
		rate = math.Floor(rate / 2)
	}
	for s.err == nil && s.result.Low > 0 && s.result.High > narrow*s.result.Low {
		middle := math.Round((s.result.Low + s.result.High) / 2)
		if middle <= s.result.Low || middle >= s.result.High {
			break
		}
		s.step(middle)
	}
	for rate := s.result.High; s.err == nil && rate > 0 && rate < most && s.result.Breaking == 0; {
		rate = min(2*rate, most)
		s.step(rate)
	}
	return &s.result, s.err
}

var errEndless = errors.New("the search for the highest rate did not end")

type search struct {
	try    func(rate float64) (Step, error)
	result Result
	err    error
}

// step tries a rate and says whether the objective was met there.
func (s *search) step(rate float64) bool {
	var seen Step
	if len(s.result.Steps) == mostSteps {
		s.err = errEndless
	} else {
		seen, s.err = s.try(rate)
	}
	if s.err != nil {
		return false
	}
	r := &s.result
	r.Steps = append(r.Steps, seen)
	// A lucky step beyond a missed one does not count: the interval stays where it was.
	if seen.Met && (r.High == 0 || rate < r.High) {
		r.Low = max(r.Low, rate)
	}
	if !seen.Met && (r.High == 0 || rate < r.High) {
		r.High = rate
	}
	if seen.Broken() && (r.Breaking == 0 || rate < r.Breaking) {
		r.Breaking = rate
	}
	return seen.Met
}
