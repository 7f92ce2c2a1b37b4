package loop

import (
	"math"
	"math/rand/v2"
	"time"
)

// Stretch is a time in which the rate of an open load changes evenly from one value to another, in
// requests per second.
type Stretch struct {
	From, To float64
	Duration time.Duration
}

// Arrivals is how the requests of an open load follow each other.
type Arrivals uint8

// Even: each 1/rate after the one before; Poisson: independent of each other, as many as Even has.
const (
	Even Arrivals = iota
	Poisson
)

// schedule is when the requests of an open load are due.
type schedule []part

// part is a stretch with what comes before it, in seconds and requests.
type part struct {
	begins, before   float64
	rate, change     float64 // per second, per second squared
	requests, length float64
}

func (p *Plan) schedule() schedule {
	stretches := p.Stretches
	if stretches == nil {
		stretches = []Stretch{{p.Rate, p.EndRate, p.Duration}}
	}
	var s schedule
	begins, before := 0.0, 0.0
	for _, one := range stretches {
		length := one.Duration.Seconds()
		requests := (one.From + one.To) / 2 * length
		s = append(s, part{begins, before, one.From, (one.To - one.From) / length, requests, length})
		begins, before = begins+length, before+requests
	}
	return s
}

// area is how many requests are due in all.
func (s schedule) area() float64 {
	last := &s[len(s)-1]
	return last.before + last.requests
}

// due is when the n-th request is due, in nanoseconds after the start.
//
// With the rate r(t) = a + kt, n(t) = at + kt²/2 requests are due until t. Solved for t, in the form
// that loses no digits for small k and needs no case for k = 0: t = 2n / (a + √(a²+2kn)).
func (s schedule) due(n float64) int64 {
	p := &s[0]
	for i := 1; i < len(s) && n >= s[i].before; i++ {
		p = &s[i]
	}
	n -= p.before
	root := math.Sqrt(max(p.rate*p.rate+2*p.change*n, 0)) // below 0 by rounding only, at the foot of a ramp
	return int64(math.Round((p.begins + 2*n/(p.rate+root)) * 1e9))
}

// sequence goes through the sessions of an open load. All threads of all generators have the same one,
// and take every so manieth of it.
type sequence struct {
	schedule schedule
	arrivals Arrivals
	random   *rand.Rand
	total    int64   // sessions
	each     float64 // requests of a session
	next     int64   // its number
	left     float64 // Poisson: logarithm of the share of the load that comes after it
}

// newSequence is where the session of a number is next.
func newSequence(p *Plan, first int64) sequence {
	q := sequence{schedule: p.schedule(), arrivals: p.Arrivals, next: -1}
	q.each = float64(p.Work.RoundSteps()) / float64(len(p.Work.Order))
	// Rates are of requests: sessions of many are as many fewer.
	q.total = max(1, int64(math.Round(q.schedule.area()/q.each)))
	q.random = rand.New(rand.NewPCG(p.Seed, 1))
	q.skip(first + 1)
	return q
}

// skip goes on by so many sessions.
//
// The times of n independent arrivals within a time are uniform; in their order the smallest of the m
// that are left lies at 1-U^(1/m) of the time that is left.
func (q *sequence) skip(count int64) {
	for i := q.next + 1; q.arrivals == Poisson && i <= q.next+count && i < q.total; i++ {
		q.left -= q.random.ExpFloat64() / float64(q.total-i)
	}
	q.next += count
}

// over says that no session is left.
func (q *sequence) over() bool { return q.next >= q.total }

// due is when the next session is due, in nanoseconds after the start.
func (q *sequence) due() int64 {
	if q.arrivals == Poisson {
		return q.schedule.due(-math.Expm1(q.left) * q.schedule.area())
	}
	return q.schedule.due(float64(q.next) * q.each)
}
