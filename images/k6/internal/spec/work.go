package spec

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"laptime.dev/k6/internal/session"
)

// makeWork makes what the users do: all templates are parsed and all feeders read before a request
// is sent.
func (t *Trial) makeWork() error {
	var feeders []*session.Feeder
	for i := range t.Feeders {
		feeder, err := t.Feeders[i].make()
		if err != nil {
			return fmt.Errorf("feeders[%d] (%s), %w", i, t.Feeders[i].Name, err)
		}
		feeders = append(feeders, feeder)
	}
	var requests []session.Request
	for i := range t.Requests {
		request, err := t.request(&t.Requests[i])
		if err != nil {
			return fmt.Errorf("requests[%d].%w", i, err)
		}
		requests = append(requests, request)
	}
	sessions, err := t.sessions()
	if err != nil {
		return err
	}
	t.work, err = session.New(requests, feeders, sessions)
	return err
}

func (t *Trial) request(r *Request) (session.Request, error) {
	ids, err := r.ids()
	if err != nil {
		return session.Request{}, err
	}
	out := session.Request{
		Name: r.Name, Method: r.Method, Target: t.Target, Path: r.Path, Headers: r.Headers, Cookies: r.Cookies,
		Body: r.Body, KeepAlive: t.Load.KeepAlive(), Ids: ids,
	}
	for _, c := range r.Captures {
		out.Captures = append(out.Captures, session.Capture(c))
	}
	if think := r.ThinkSeconds; think != nil {
		if think.Max == 0 {
			think.Max = think.Min
		}
		if !(think.Min >= 0 && think.Min <= think.Max && think.Max <= maxThinkSeconds) {
			return out, fmt.Errorf("thinkSeconds: write 0 <= min <= max <= %d", maxThinkSeconds)
		}
		out.Think = session.Think{Least: Seconds(think.Min), Most: Seconds(think.Max)}
	}
	return out, nil
}

const maxThinkSeconds = 3600

// sessions are those that were given, or one for each request.
func (t *Trial) sessions() ([]session.Session, error) {
	var out []session.Session
	used := map[string]bool{}
	for i, s := range t.Sessions {
		if s.Weight == 0 {
			s.Weight = 1
		}
		if s.Name == "" || used["session "+s.Name] {
			return nil, fmt.Errorf("sessions[%d].name: %q is empty or not unique", i, s.Name)
		}
		used["session "+s.Name] = true
		out = append(out, session.Session{Name: s.Name, Weight: s.Weight, Steps: s.Steps})
		for _, step := range s.Steps {
			used[step] = true
		}
	}
	for i := range t.Requests {
		r := &t.Requests[i]
		switch {
		case len(t.Sessions) > 0 && r.Weight != 0:
			return nil, fmt.Errorf("requests[%d].weight: write it at the sessions", i)
		case len(t.Sessions) > 0 && !used[r.Name]:
			return nil, fmt.Errorf("requests[%d].name: %s is a step of no session; add it to one, or leave it out", i, r.Name)
		case len(t.Sessions) == 0:
			weight := r.Weight
			if weight == 0 {
				weight = 1
			}
			out = append(out, session.Session{Name: r.Name, Weight: weight, Steps: []string{r.Name}})
		}
	}
	return out, nil
}

// Work gives what the users of a segment do.
func (t *Trial) Work(segment Segment) *session.Work {
	seed := t.Seed
	if t.FeederSeed != nil {
		seed = *t.FeederSeed
	}
	for i, feeder := range t.work.Feeders() {
		index, count := int64(segment.Index), int64(segment.Count)
		first, end := before(feeder.Rows(), index, count), before(feeder.Rows(), index+1, count)
		if feeder.Rows() < count {
			first, end = 0, feeder.Rows()
		}
		feeder.Share(first, end-first, session.Mixed(uint64(seed), uint64(i*maxGenerators+segment.Index+1)))
		feeder.Limit(feeder.Part())
	}
	return t.work
}

// KeepRows leaves the measured phase its rows of those feeders whose rows are used once, until
// FreeRows.
func (t *Trial) KeepRows(segment Segment) {
	for i, feeder := range t.work.Feeders() {
		if feeder.Use == session.Once {
			feeder.Limit(feeder.Part() - t.rowsFor(i, segment.Share(t.Load.measured())))
		}
	}
}

// FreeRows lets all rows be taken.
func (t *Trial) FreeRows() {
	for _, feeder := range t.work.Feeders() {
		feeder.Limit(feeder.Part())
	}
}

// Each thread of the loop begins at another place of the mix, so a feeder may lose by so many more
// rows than its share, as often as there are threads at most.
const spread = 8

// slack is how many rows of a feeder a generator may take beyond their share of its requests.
func (t *Trial) slack(feeder int) (round, slack int64) {
	round, excess, each := t.work.Draws(feeder)
	if round == t.work.RoundSteps() {
		return round, 0 // each request takes one
	}
	slack = spread * excess
	for _, steps := range t.work.Sessions {
		if len(steps) > 1 {
			users := (int64(t.Load.Users()) + t.generators() - 1) / t.generators()
			return round, slack + users*each // sessions that have begun
		}
	}
	return round, slack
}

// rowsFor is how many rows of a feeder so many requests of a generator may take.
func (t *Trial) rowsFor(feeder int, requests int64) int64 {
	round, slack := t.slack(feeder)
	return int64(math.Ceil(float64(requests)*float64(round)/float64(t.work.RoundSteps()))) + slack
}

func (t *Trial) generators() int64 {
	if t.Generators == nil {
		return 1
	}
	return int64(t.Generators.Count)
}

// mostRequests is how many requests of the load each generator can send until a feeder whose rows are
// used once may have lost the smallest part of them; nil: there is no such feeder.
func (t *Trial) mostRequests() (most int64, scarce *session.Feeder) {
	most = math.MaxInt64
	for i, feeder := range t.work.Feeders() {
		round, slack := t.slack(i)
		if feeder.Use != session.Once || round == 0 {
			continue
		}
		can := scaled(max(0, feeder.Rows()/t.generators()-slack), t.work.RoundSteps(), round)
		if scarce == nil || can < most {
			most, scarce = can, feeder
		}
	}
	return most, scarce
}

// scaled gives whole*by/over, and at most what all generators together can still be added up to.
func scaled(whole, by, over int64) int64 {
	const most = math.MaxInt64 / maxGenerators
	high, low := bits.Mul64(uint64(whole), uint64(by))
	if high >= uint64(over) {
		return most // the quotient has more than 64 bits
	}
	quotient, _ := bits.Div64(high, low, uint64(over))
	return int64(min(quotient, most))
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
	case l.Stairs != nil:
		requests := 0.0
		for _, step := range l.Stairs.Steps {
			requests += step.Rate * step.DurationSeconds
		}
		return int64(math.Ceil(requests))
	}
	return 0
}

// LongestTail is how long a session that begins with the last request of an open load may take beyond
// the time-out of that request.
func (t *Trial) LongestTail() time.Duration {
	longest := time.Duration(0)
	for _, steps := range t.work.Sessions {
		tail := time.Duration(len(steps)-1) * t.Timeout()
		for _, step := range steps[:len(steps)-1] {
			tail += t.work.Think[step.Request].Most
		}
		longest = max(longest, tail)
	}
	return longest
}

func (t *Trial) checkBudget() error {
	each, scarce := t.mostRequests()
	if scarce == nil {
		return nil
	}
	switch measured, most := t.Load.measured(), each*t.generators(); {
	case measured == 0:
		return fmt.Errorf("load: each row of %s is used once: give closed.requests, not a duration or a search", scarce.Name)
	case measured > most:
		return fmt.Errorf("load: %d requests, but each row of %s is used once: at most %d", measured, scarce.Name, most)
	}
	return nil
}

// Warmup is how long the warm-up lasts and how many requests each generator may send in it: 0
// without a bound. What the measured phase needs of rows that are used once is left to it, if need be
// without a warm-up. It is the same for all generators: they begin it together.
func (t *Trial) Warmup() (duration time.Duration, requests int64) {
	duration = Seconds(t.WarmupSeconds)
	most, scarce := t.mostRequests()
	if scarce == nil || duration == 0 {
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
	case t.Load.Stairs != nil:
		rate = t.Load.Stairs.Steps[0].Rate
	default:
		return duration, left
	}
	return Seconds(min(t.WarmupSeconds, float64((left-1)*generators)/rate)), 0
}
