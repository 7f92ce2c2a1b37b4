// Package saturation searches for the highest arrival rate at which a server meets an objective.
package saturation

import (
	"math"
)

// Step is what was seen at one rate. Rates are requests per second.
type Step struct {
	Rate          float64 `json:"rate"`
	CompletedRate float64 `json:"completedRate"` // right answers, see Broken
	P99Us         int64   `json:"p99Us"`         // of all requests; 0: of one without a right answer
	ErrorRate     float64 `json:"errorRate"`
	Met           bool    `json:"met"` // the objective
	// The generator sent so late that a miss would be its own.
	Late bool `json:"late,omitempty"`
	// It began before the server was as at first.
	Restless bool `json:"restless,omitempty"`
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
	// High was missed by a generator that did not send in time.
	Late bool `json:"late,omitempty"`
	// Steps that began before the server was as at first.
	Restless int `json:"restless,omitempty"`
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
	// Of the steps at one rate: two of three.
	decisive = 2
	lowest   = 1.0
	// What is not known after so many steps is left open: the operator reckons with it
	// (plan/estimate.py).
	mostSteps = 40
)

// Search doubles the rate from a first one until the objective is missed, or halves it until it is
// met, and bisects what lies between, by ratio. Then it doubles until the server breaks, if it has
// not yet.
//
// One step is no proof. A miss is tried again before it counts, and so is the rate that the search
// ends at: two of three steps decide. On the way to it a rate that was met once is enough to go on;
// where that turns out to have been luck the search goes back. The search ends with a step at twice
// the rate that was missed: where even that is met, three of five decide about the lower one. Misses
// of a generator that was late do not count, unless it is late at that rate again: then the rate is
// too high for the generator. Rates lie within 1 … most.
func Search(from, most float64, try func(rate float64) (Step, error)) (*Result, error) {
	s := search{most: rounded(most), seen: map[float64]*seen{}}
	var steps []Step
	restless := 0
	for rate := rounded(min(from, most)); rate > 0 && len(steps) < mostSteps; rate = s.next() {
		step, err := try(rate)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
		s.count(rate, &step)
		if step.Restless {
			restless++
		}
	}
	low, high := s.bounds()
	result := &Result{Low: low, High: high, Breaking: s.breaking(), Steps: steps, Restless: restless}
	result.Late = high > 0 && s.seen[high].late > s.seen[high].missed
	return result, nil
}

// seen is what the steps at one rate came to.
type seen struct {
	met, missed int
	late        int // missed by a generator that was late
	kept        int // kept up with
	broken      int
	challenged  bool // it was missed, but twice the rate was met
}

// missedForSure says that a miss was confirmed.
func (s *seen) missedForSure() bool {
	needed := decisive
	if s.challenged {
		needed++
	}
	return max(s.missed, s.late) >= needed
}

// metSoFar says that no miss stands against what was met.
func (s *seen) metSoFar() bool { return s.met > s.missed }

// breaks says that the server did not keep up with the rate.
func (s *seen) breaks() bool { return s.broken >= decisive && s.broken > s.kept }

type search struct {
	most float64
	seen map[float64]*seen
}

func (s *search) count(rate float64, step *Step) {
	at := s.seen[rate]
	if at == nil {
		at = &seen{}
		s.seen[rate] = at
	}
	switch {
	case step.Met:
		at.met++
	case step.Late:
		at.late++
		return
	default:
		at.missed++
	}
	if step.Broken() {
		at.broken++
	} else {
		at.kept++
	}
}

// bounds are the highest rate that was met and the lowest that was missed; 0: none. A lucky step
// beyond a missed one does not count.
func (s *search) bounds() (low, high float64) {
	for rate, at := range s.seen {
		if at.missedForSure() && (high == 0 || rate < high) {
			high = rate
		}
	}
	for rate, at := range s.seen {
		if at.metSoFar() && rate > low && (high == 0 || rate < high) {
			low = rate
		}
	}
	return low, high
}

// breaking is the lowest rate that the server did not keep up with; 0: there is none.
func (s *search) breaking() float64 {
	found := 0.0
	for rate, at := range s.seen {
		if at.breaks() && (found == 0 || rate < found) {
			found = rate
		}
	}
	return found
}

// next is the rate to try; 0: all is known.
func (s *search) next() float64 {
	low, high := s.bounds()
	for rate, at := range s.seen {
		undecided := !at.missedForSure() && !at.metSoFar()
		if undecided && (high == 0 || rate < high) {
			return rate // there is one at most
		}
	}
	switch {
	case low == 0 && high <= lowest:
		return 0
	case low == 0:
		return rounded(high / 2)
	case high == 0 && low < s.most:
		return s.twice(low)
	}
	if middle := rounded(math.Sqrt(low * high)); high > narrow*low && middle > low && middle < high {
		return middle
	}
	if s.seen[low].met < decisive {
		return low
	}
	if high == 0 {
		return 0
	}
	return s.beyond(high)
}

// beyond is the next rate to try on the way to where the server breaks; 0: there is none.
func (s *search) beyond(high float64) float64 {
	breaks := s.breaking() > 0
	for rate := high; ; rate = s.twice(rate) {
		at := s.seen[rate]
		switch {
		case at == nil:
			return rate
		case rate > high && at.metSoFar() && !s.seen[high].challenged:
			s.seen[high].challenged = true
			return high
		case !breaks && at.broken > 0 && at.kept < decisive:
			return rate
		case rate == s.most || rate > high && (breaks || at.late > 0):
			return 0
		}
	}
}

// twice is the next higher rate that makes sense.
func (s *search) twice(rate float64) float64 { return min(rounded(2*rate), s.most) }

// rounded keeps rates readable. A hundredth of a request per second is nobody's precision.
func rounded(rate float64) float64 { return math.Round(max(rate, lowest)*100) / 100 }
