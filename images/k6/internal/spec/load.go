package spec

import (
	"errors"
	"fmt"
)

// Load holds exactly one shape.
type Load struct {
	Closed *Closed `json:"closed"`
	Open   *Open   `json:"open"`
	Ramp   *Ramp   `json:"ramp"`
	Stairs *Stairs `json:"stairs"`
	// A search, not a phase: see package saturation.
	Saturation *Saturation `json:"saturation"`
	Protocol   string      `json:"protocol"` // "http1" (default) or "http2"
	Streams    int         `json:"streams"`  // http2: users at once of a connection; absent: 1
}

// Closed is N connections, each sending its next request when the last one is answered, until so
// many requests are sent or so much time has passed.
type Closed struct {
	Connections     int     `json:"connections"`
	Requests        int64   `json:"requests"`
	DurationSeconds float64 `json:"durationSeconds"`
	KeepAlive       bool    `json:"keepAlive"`
	// How long before the load begins connections are opened, evenly spread; 0: with their first requests.
	ConnectSeconds float64 `json:"connectSeconds"`
}

// Pool is the connections of an open load, and how its requests follow each other.
type Pool struct {
	MaxConnections int    `json:"maxConnections"`
	KeepAlive      bool   `json:"keepAlive"`
	Arrivals       string `json:"arrivals"` // "even" (default) or "poisson"
	// How long before the load begins all connections are opened, evenly spread; 0: each when it is needed.
	ConnectSeconds float64 `json:"connectSeconds"`
}

// Open is a fixed arrival rate (requests per second), whatever the answers take.
type Open struct {
	Rate            float64 `json:"rate"`
	DurationSeconds float64 `json:"durationSeconds"`
	Pool
}

// Ramp is an arrival rate (requests per second) that changes evenly from one value to another.
type Ramp struct {
	From            float64 `json:"from"`
	To              float64 `json:"to"`
	DurationSeconds float64 `json:"durationSeconds"`
	Pool
}

// Stairs are arrival rates (requests per second) one after the other.
type Stairs struct {
	Steps []Step `json:"steps"`
	Pool
}

// Step is one of them.
type Step struct {
	Rate            float64 `json:"rate"`
	DurationSeconds float64 `json:"durationSeconds"`
}

// Saturation is a search for the highest arrival rate (requests per second) at which the 99th
// percentile and the share of errors are at most these.
type Saturation struct {
	P99Seconds  float64 `json:"p99Seconds"`
	ErrorRate   float64 `json:"errorRate"`
	StartRate   float64 `json:"startRate"`
	MaxRate     float64 `json:"maxRate"`
	StepSeconds float64 `json:"stepSeconds"`
	Pool
}

const (
	maxConnections = 60_000 // and users
	maxRate        = 10_000_000
	maxSteps       = 100
	// Of opening connections.
	maxConnectSeconds = 600
)

func (l *Load) check() error {
	given := 0
	for _, is := range []bool{l.Closed != nil, l.Open != nil, l.Ramp != nil, l.Stairs != nil, l.Saturation != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("load: give exactly one of closed, open, ramp, stairs and saturation")
	}
	return firstError(l.checkShape(), l.checkProtocol())
}

func (l *Load) checkProtocol() error {
	switch {
	case l.Protocol != "" && l.Protocol != "http1" && l.Protocol != "http2":
		return fmt.Errorf("load.protocol: %q; write http1 or http2", l.Protocol)
	case l.Streams < 0 || l.Streams > 0 && !l.HTTP2():
		return errors.New("load.streams: only with protocol http2, at least 1; leave it out")
	case l.HTTP2() && !l.KeepAlive():
		return errors.New("load.protocol: with http2 connections are kept; write keepAlive true, or protocol http1")
	case l.Users() > maxConnections:
		return fmt.Errorf("load.streams: %d connections of %d streams are more than %d users", l.Connections(), l.Streams, maxConnections)
	}
	return nil
}

// HTTP2 says whether the load is sent over HTTP/2.
func (l *Load) HTTP2() bool { return l.Protocol == "http2" }

// Users is the most that the load has at once: one for each connection, or, with HTTP/2, for each stream.
func (l *Load) Users() int { return l.Connections() * max(l.Streams, 1) }

func (l *Load) checkShape() error {
	switch {
	case l.Closed != nil:
		return l.Closed.check()
	case l.Open != nil:
		o := l.Open
		return firstError(
			rateWithin("load.open.rate", o.Rate),
			secondsWithin("load.open", o.DurationSeconds),
			o.Pool.check("load.open"),
		)
	case l.Stairs != nil:
		return l.Stairs.check()
	case l.Saturation != nil:
		return l.Saturation.check()
	default:
		r := l.Ramp
		return firstError(
			rateWithin("load.ramp.from", r.From),
			rateWithin("load.ramp.to", r.To),
			secondsWithin("load.ramp", r.DurationSeconds),
			r.Pool.check("load.ramp"),
		)
	}
}

func (s *Stairs) check() error {
	if len(s.Steps) < 1 || len(s.Steps) > maxSteps {
		return fmt.Errorf("load.stairs.steps: write 1 … %d steps", maxSteps)
	}
	for i, step := range s.Steps {
		where := fmt.Sprintf("load.stairs.steps[%d]", i)
		if err := firstError(rateWithin(where+".rate", step.Rate), secondsWithin(where, step.DurationSeconds)); err != nil {
			return err
		}
	}
	return firstError(secondsWithin("load.stairs", s.DurationSeconds()), s.Pool.check("load.stairs"))
}

// DurationSeconds is that of all steps together.
func (s *Stairs) DurationSeconds() float64 {
	seconds := 0.0
	for _, step := range s.Steps {
		seconds += step.DurationSeconds
	}
	return seconds
}

func (c *Closed) check() error {
	if c.Connections < 1 || c.Connections > maxConnections {
		return fmt.Errorf("load.closed.connections: %d is not within 1 … %d", c.Connections, maxConnections)
	}
	if (c.Requests > 0) == (c.DurationSeconds > 0) || c.Requests < 0 || c.DurationSeconds < 0 {
		return errors.New("load.closed: give exactly one of requests and durationSeconds, above 0")
	}
	if c.DurationSeconds > maxSeconds {
		return fmt.Errorf("load.closed.durationSeconds: at most %d", maxSeconds)
	}
	return connectWithin("load.closed", c.ConnectSeconds, c.KeepAlive)
}

func (s *Saturation) check() error {
	if !(s.P99Seconds > 0 && s.P99Seconds <= maxSeconds) {
		return fmt.Errorf("load.saturation.p99Seconds: %v is not within 0 … %d", s.P99Seconds, maxSeconds)
	}
	if !(s.ErrorRate >= 0 && s.ErrorRate <= 1) {
		return fmt.Errorf("load.saturation.errorRate: %v is not within 0 … 1", s.ErrorRate)
	}
	if s.StartRate > s.MaxRate {
		return errors.New("load.saturation.startRate: at most maxRate")
	}
	return firstError(
		rateWithin("load.saturation.startRate", s.StartRate),
		rateWithin("load.saturation.maxRate", s.MaxRate),
		secondsWithin("load.saturation", s.StepSeconds),
		s.Pool.check("load.saturation"),
	)
}

func rateWithin(where string, rate float64) error {
	if !(rate > 0 && rate <= maxRate) {
		return fmt.Errorf("%s: %v is not within 0 … %d per second", where, rate, maxRate)
	}
	return nil
}

func secondsWithin(where string, seconds float64) error {
	if !(seconds > 0 && seconds <= maxSeconds) {
		return fmt.Errorf("%s: a duration of %v s is not within 0 … %d s", where, seconds, maxSeconds)
	}
	return nil
}

func connectWithin(where string, seconds float64, keepAlive bool) error {
	if !(seconds >= 0 && seconds <= maxConnectSeconds) {
		return fmt.Errorf("%s.connectSeconds: %v is not within 0 … %d", where, seconds, maxConnectSeconds)
	}
	if seconds > 0 && !keepAlive {
		return fmt.Errorf("%s.connectSeconds: without keepAlive each request opens a connection; leave it out", where)
	}
	return nil
}

func (p *Pool) check(where string) error {
	if p.MaxConnections < 1 || p.MaxConnections > maxConnections {
		return fmt.Errorf("%s.maxConnections: %d is not within 1 … %d", where, p.MaxConnections, maxConnections)
	}
	if p.Arrivals != "" && p.Arrivals != "even" && p.Arrivals != "poisson" {
		return fmt.Errorf("%s.arrivals: %q; write even or poisson", where, p.Arrivals)
	}
	return connectWithin(where, p.ConnectSeconds, p.KeepAlive)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Pool is the connections of an open load, nil of a closed one.
func (l *Load) Pool() *Pool {
	switch {
	case l.Open != nil:
		return &l.Open.Pool
	case l.Ramp != nil:
		return &l.Ramp.Pool
	case l.Stairs != nil:
		return &l.Stairs.Pool
	case l.Saturation != nil:
		return &l.Saturation.Pool
	}
	return nil
}

// Connections is the most that the load has open.
func (l *Load) Connections() int {
	if l.Closed != nil {
		return l.Closed.Connections
	}
	return l.Pool().MaxConnections
}

// KeepAlive says whether connections are used again.
func (l *Load) KeepAlive() bool {
	if l.Closed != nil {
		return l.Closed.KeepAlive
	}
	return l.Pool().KeepAlive
}

// ConnectSeconds is how long before the load begins connections are opened.
func (l *Load) ConnectSeconds() float64 {
	if l.Closed != nil {
		return l.Closed.ConnectSeconds
	}
	return l.Pool().ConnectSeconds
}
