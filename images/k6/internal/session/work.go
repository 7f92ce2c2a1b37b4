package session

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Request is one endpoint, in words.
type Request struct {
	Name      string
	Method    string
	Target    string // http://host:port
	Path      string
	Headers   map[string]string
	Cookies   map[string]string
	Body      *string
	KeepAlive bool
	Ids       *Feeder // what {id} stands for; nil: nothing
	Captures  []Capture
	Think     Think
}

// Think is how long a user waits after an answer: evenly spread between the two.
type Think struct{ Least, Most time.Duration }

// Session is what one user does: requests by their names, one after the other, and how often that is
// beside the other sessions.
type Session struct {
	Name   string
	Weight int
	Steps  []string
}

// Work is what the users of a load do.
type Work struct {
	Messages []*Message // one for each request
	Think    []Think    // one for each request
	Sessions [][]Step
	// Order is the sessions in the shares of their weights, to be gone through again and again.
	Order []int32

	captures  [][]capture // for each request
	feeders   []*Feeder
	variables []variable
}

// Step is one request of a session.
type Step struct {
	Request int
	draws   []int // the feeders of which a row is taken for it
}

// variable is a value that is captured. stands: where it is put as it is.
type variable struct {
	name   string
	stands []place
}

// MaxWeights bounds the sum of the weights once they have no common divisor.
const MaxWeights = 10_000

// New makes the work of some sessions. Its errors say what to write instead.
func New(requests []Request, feeders []*Feeder, sessions []Session) (*Work, error) {
	w := &Work{feeders: slices.Clone(feeders)}
	for i, f := range feeders {
		if !IsName(f.Name) || w.feederNumber(f.Name) != i {
			return nil, fmt.Errorf("feeders[%d].name: %q; write different names of letters, digits, _ and -", i, f.Name)
		}
	}
	if err := w.addCaptures(requests); err != nil {
		return nil, err
	}
	used := make([][]piece, len(requests))
	for i := range requests {
		r := &requests[i]
		ids := -1
		if r.Ids != nil {
			ids = len(w.feeders)
			w.feeders = append(w.feeders, r.Ids)
		}
		message, values, err := w.compile(r, ids)
		if err != nil {
			return nil, fmt.Errorf("request %s, %w", r.Name, err)
		}
		w.Messages, w.Think, used[i] = append(w.Messages, message), append(w.Think, r.Think), values
	}
	for _, s := range sessions {
		steps, err := w.steps(&s, requests, used)
		if err != nil {
			return nil, fmt.Errorf("session %s, %w", s.Name, err)
		}
		w.Sessions = append(w.Sessions, steps)
	}
	return w, w.mix(sessions)
}

func (w *Work) addCaptures(requests []Request) error {
	for i := range requests {
		var ready []capture
		for j := range requests[i].Captures {
			c := &requests[i].Captures[j]
			if !IsName(c.Name) || w.feederNumber(c.Name) >= 0 {
				return fmt.Errorf("request %s, captures[%d].name: %q; write a name of letters, digits, _ and - that no feeder has", requests[i].Name, j, c.Name)
			}
			number := slices.IndexFunc(w.variables, func(v variable) bool { return v.name == c.Name })
			if number < 0 {
				number = len(w.variables)
				w.variables = append(w.variables, variable{name: c.Name})
			}
			one, err := compileCapture(c, number)
			if err != nil {
				return fmt.Errorf("request %s, capture %s: %w", requests[i].Name, c.Name, err)
			}
			ready = append(ready, one)
		}
		w.captures = append(w.captures, ready)
	}
	return nil
}

func (w *Work) feederNumber(name string) int {
	return slices.IndexFunc(w.feeders, func(f *Feeder) bool { return f.Name == name })
}

// known lists the values that a template can name.
func (w *Work) known() string {
	var names []string
	for _, f := range w.feeders {
		switch {
		case !IsName(f.Name):
		case f.columns == nil || f.columns[0] == "":
			names = append(names, "{{"+f.Name+"}}")
		default:
			for _, column := range f.columns {
				names = append(names, "{{"+f.Name+"."+column+"}}")
			}
		}
	}
	for _, v := range w.variables {
		names = append(names, "{{"+v.name+"}}")
	}
	if len(names) == 0 {
		return "none: add feeders or captures"
	}
	return strings.Join(names, ", ")
}

// steps checks that each value of a session is there before it is used, and notes when rows are
// taken.
func (w *Work) steps(s *Session, requests []Request, used [][]piece) ([]Step, error) {
	var steps []Step
	drawn, captured := map[int]bool{}, map[int]bool{}
	for _, name := range s.Steps {
		number := slices.IndexFunc(requests, func(r Request) bool { return r.Name == name })
		if number < 0 {
			return nil, fmt.Errorf("step %q: no request is called so", name)
		}
		step := Step{Request: number}
		for _, value := range used[number] {
			at := value.number
			switch {
			case value.what == isCaptured && !captured[at]:
				return nil, fmt.Errorf("step %s: {{%s}} is captured by no step before it", name, w.variables[at].name)
			case value.what == isFed && (!drawn[at] || value.feeder.PerRequest) && !slices.Contains(step.draws, at):
				step.draws = append(step.draws, at)
				drawn[at] = true
			}
		}
		for _, c := range w.captures[number] {
			captured[c.variable] = true
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		return nil, errors.New("steps: name at least one request")
	}
	return steps, nil
}

// mix spreads the sessions by their weights as evenly as they go: each time the one that is most
// behind its share.
func (w *Work) mix(sessions []Session) error {
	divisor, total := 0, 0
	for _, s := range sessions {
		if s.Weight < 1 {
			return fmt.Errorf("session %s, weight: %d is not at least 1", s.Name, s.Weight)
		}
		divisor = gcd(divisor, s.Weight)
	}
	for _, s := range sessions {
		total += s.Weight / divisor
	}
	if total > MaxWeights {
		return fmt.Errorf("weights: they add up to %d; write smaller ones, at most %d together", total, MaxWeights)
	}
	behind := make([]int, len(sessions))
	for range total {
		next := 0
		for i, s := range sessions {
			if behind[i] += s.Weight / divisor; behind[i] > behind[next] {
				next = i
			}
		}
		behind[next] -= total
		w.Order = append(w.Order, int32(next))
	}
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Feeders are all of them, those of {id} included.
func (w *Work) Feeders() []*Feeder { return w.feeders }

// Captures says whether something of the answers to a request is kept.
func (w *Work) Captures(request int) bool { return len(w.captures[request]) > 0 }

// Draws says how many rows of a feeder a round of Order takes, how many more than its share any
// stretch of rounds may take, and the most that one session takes.
func (w *Work) Draws(feeder int) (round, excess, session int64) {
	taken := make([]int64, 0, len(w.Order))
	for _, number := range w.Order {
		each := int64(0)
		for _, step := range w.Sessions[number] {
			if slices.Contains(step.draws, feeder) {
				each++
			}
		}
		taken = append(taken, each)
		round, session = round+each, max(session, each)
	}
	ahead, least, most := 0.0, 0.0, 0.0
	for i, each := range taken {
		ahead -= float64(round) * float64(w.Steps(w.Order[i])) / float64(w.RoundSteps())
		least = min(least, ahead)
		ahead += float64(each)
		most = max(most, ahead)
	}
	return round, int64(math.Ceil(most - least - 1e-9)), session
}

// RoundSteps is how many requests a round of Order has.
func (w *Work) RoundSteps() int64 {
	steps := int64(0)
	for _, number := range w.Order {
		steps += w.Steps(number)
	}
	return steps
}

// WithoutThinking is the same work of users who think no time.
func (w *Work) WithoutThinking() *Work {
	hurried := *w
	hurried.Think = make([]Think, len(w.Think))
	return &hurried
}

// ThinkWithin is for how long users of sessions think on average for each request, the last one of a session not
// counted: after that a user of an open load leaves.
func (w *Work) ThinkWithin() time.Duration {
	together := time.Duration(0)
	for _, number := range w.Order {
		steps := w.Sessions[number]
		for _, step := range steps[:len(steps)-1] {
			think := w.Think[step.Request]
			together += (think.Least + think.Most) / 2
		}
	}
	return together / time.Duration(w.RoundSteps())
}

// Pauses are the think times of users who are met at a random moment, all of whom think.
type Pauses struct {
	thinks []Think
	until  []float64 // the parts of all that time that those up to it have
}

// Pauses gives those of this work; nil: nobody thinks.
func (w *Work) Pauses() *Pauses {
	often := make([]int, len(w.Think))
	for _, number := range w.Order {
		for _, step := range w.Sessions[number] {
			often[step.Request]++
		}
	}
	p := &Pauses{}
	all := 0.0
	for i, think := range w.Think {
		if part := float64(often[i]) * (think.Least + think.Most).Seconds(); part > 0 {
			all += part
			p.thinks, p.until = append(p.thinks, think), append(p.until, all)
		}
	}
	if all == 0 {
		return nil
	}
	return p
}

// Draw is for how long one of them goes on thinking. A long think time is met more often than a short one, by as much
// as it is longer, and each moment of it as often as any other.
func (p *Pauses) Draw(random *rand.Rand) time.Duration {
	at := random.Float64() * p.until[len(p.until)-1]
	i := 0
	for i < len(p.until)-1 && at >= p.until[i] {
		i++
	}
	least, most := p.thinks[i].Least.Seconds(), p.thinks[i].Most.Seconds()
	whole := math.Sqrt(least*least + random.Float64()*(most*most-least*least))
	return time.Duration(random.Float64() * whole * float64(time.Second))
}

// User is one user's place in a session, and the values of it.
type User struct {
	session  int32
	step     int32 // -1: between two sessions
	rows     []int64
	captured [][]byte
}

// NewUser makes one that has not begun a session.
func (w *Work) NewUser() User {
	u := User{step: -1}
	if len(w.feeders) > 0 {
		u.rows = make([]int64, len(w.feeders))
	}
	if len(w.variables) > 0 {
		u.captured = make([][]byte, len(w.variables))
	}
	return u
}

// Between says that the user's next request begins a session.
func (u *User) Between() bool { return u.step < 0 }

// Session is the one that the user is in, or was in last.
func (u *User) Session() int32 { return u.session }

// Begin begins a session.
func (w *Work) Begin(u *User, session int32) { u.session, u.step = session, 0 }

// Draw takes the rows for the user's next request and gives its number; false: a feeder, each of
// whose rows is used once, has no more.
func (w *Work) Draw(u *User) (request int, ok bool) {
	step := &w.Sessions[u.session][u.step]
	for _, number := range step.draws {
		if u.rows[number], ok = w.feeders[number].take(); !ok {
			return step.Request, false
		}
	}
	return step.Request, true
}

// Capture keeps what the next requests need of an answer; false: it is not there, or nothing that
// could stand where it is needed.
func (w *Work) Capture(u *User, request int, head, body []byte) bool {
	for i := range w.captures[request] {
		c := &w.captures[request][i]
		value, ok := c.find(head, body)
		if !ok || len(value) > maxValue {
			return false
		}
		for _, p := range w.variables[c.variable].stands {
			if !p.takes(value) {
				return false
			}
		}
		u.captured[c.variable] = append(u.captured[c.variable][:0], value...)
	}
	return true
}

// Advance goes on after an answer: to the next step, or out of the session, which ends with a
// request that failed. It says whether the session goes on.
func (w *Work) Advance(u *User, good bool) bool {
	if u.step++; good && int(u.step) < len(w.Sessions[u.session]) {
		return true
	}
	u.step = -1
	return false
}

// Steps is how many requests a session has.
func (w *Work) Steps(session int32) int64 { return int64(len(w.Sessions[session])) }
