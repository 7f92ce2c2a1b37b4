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
	// A search, not a phase: see package saturation.
	Saturation *Saturation `json:"saturation"`
}

// Closed is N connections, each sending its next request when the last one is answered, until so
// many requests are sent or so much time has passed.
type Closed struct {
	Connections     int     `json:"connections"`
	Requests        int64   `json:"requests"`
	DurationSeconds float64 `json:"durationSeconds"`
	KeepAlive       bool    `json:"keepAlive"`
}

// Open is a fixed arrival rate (requests per second), whatever the answers take.
type Open struct {
	Rate            float64 `json:"rate"`
	DurationSeconds float64 `json:"durationSeconds"`
	MaxConnections  int     `json:"maxConnections"`
	KeepAlive       bool    `json:"keepAlive"`
}

// Ramp is an arrival rate (requests per second) that changes evenly from one value to another.
type Ramp struct {
	From            float64 `json:"from"`
	To              float64 `json:"to"`
	DurationSeconds float64 `json:"durationSeconds"`
	MaxConnections  int     `json:"maxConnections"`
	KeepAlive       bool    `json:"keepAlive"`
}

// Saturation is a search for the highest arrival rate (requests per second) at which the 99th
// percentile and the share of errors are at most these.
type Saturation struct {
	P99Seconds     float64 `json:"p99Seconds"`
	ErrorRate      float64 `json:"errorRate"`
	StartRate      float64 `json:"startRate"`
	MaxRate        float64 `json:"maxRate"`
	StepSeconds    float64 `json:"stepSeconds"`
	MaxConnections int     `json:"maxConnections"`
	KeepAlive      bool    `json:"keepAlive"`
}

const (
	maxConnections = 60_000
	maxRate        = 10_000_000
)

func (l *Load) check() error {
	given := 0
	for _, is := range []bool{l.Closed != nil, l.Open != nil, l.Ramp != nil, l.Saturation != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return errors.New("load: give exactly one of closed, open, ramp and saturation")
	}
	switch {
	case l.Closed != nil:
		return l.Closed.check()
	case l.Open != nil:
		o := l.Open
		return firstError(
			rateWithin("load.open.rate", o.Rate),
			arrivalsWithin("load.open", o.DurationSeconds, o.MaxConnections),
		)
	case l.Saturation != nil:
		return l.Saturation.check()
	default:
		r := l.Ramp
		return firstError(
			rateWithin("load.ramp.from", r.From),
			rateWithin("load.ramp.to", r.To),
			arrivalsWithin("load.ramp", r.DurationSeconds, r.MaxConnections),
		)
	}
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
	return nil
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
		arrivalsWithin("load.saturation", s.StepSeconds, s.MaxConnections),
	)
}

func rateWithin(where string, rate float64) error {
	if !(rate > 0 && rate <= maxRate) {
		return fmt.Errorf("%s: %v is not within 0 … %d per second", where, rate, maxRate)
	}
	return nil
}

func arrivalsWithin(where string, seconds float64, connections int) error {
	if !(seconds > 0 && seconds <= maxSeconds) {
		return fmt.Errorf("%s: a duration of %v s is not within 0 … %d s", where, seconds, maxSeconds)
	}
	if connections < 1 || connections > maxConnections {
		return fmt.Errorf("%s.maxConnections: %d is not within 1 … %d", where, connections, maxConnections)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Connections is the most that the load has open.
func (l *Load) Connections() int {
	switch {
	case l.Closed != nil:
		return l.Closed.Connections
	case l.Open != nil:
		return l.Open.MaxConnections
	case l.Saturation != nil:
		return l.Saturation.MaxConnections
	default:
		return l.Ramp.MaxConnections
	}
}

// KeepAlive says whether connections are used again.
func (l *Load) KeepAlive() bool {
	switch {
	case l.Closed != nil:
		return l.Closed.KeepAlive
	case l.Open != nil:
		return l.Open.KeepAlive
	case l.Saturation != nil:
		return l.Saturation.KeepAlive
	default:
		return l.Ramp.KeepAlive
	}
}
