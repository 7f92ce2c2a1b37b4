// Package meeting lets the generators of one trial begin together.
//
// Generator 0 serves a tiny HTTP endpoint that the others ask again and again. Once all have come,
// it answers how long it is until the common start: time left and not a time of day, because the
// clocks of two nodes need not agree. What is left of the error is half a round trip.
package meeting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// From the moment in which all are there to the start: enough for each to ask several times.
	lead        = 250 * time.Millisecond
	askEvery    = 25 * time.Millisecond
	askTimeout  = 2 * time.Second
	readTimeout = 5 * time.Second
	// Generator 0 answered before and now it does not: it has been lost.
	lostAfter = 10 * time.Second
)

// ErrIncomplete says that not all generators came in time.
var ErrIncomplete = errors.New("not all generators came")

// Meeting is one generator's side of the meetings of a trial.
type Meeting struct {
	trial        string
	index, count int
	address      string // where generator 0 is found
	client       http.Client
	server       *http.Server // of generator 0
	mutex        sync.Mutex
	rounds       map[string]*round
	answered     bool // generator 0 was there once
}

type round struct {
	present []bool
	all     chan struct{} // closed when the last one has come
	start   time.Time     // zero until it is fixed
}

// Join begins to take part as generator index of count; address (host:port) leads to generator 0,
// which listens on that port. A trial with one generator meets nobody.
func Join(trial string, index, count int, address string) (*Meeting, error) {
	m := &Meeting{
		trial: trial, index: index, count: count, address: address, rounds: map[string]*round{},
		// A connection of its own for each question: the Service may lead to another pod by then.
		client: http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	if count <= 1 || index != 0 {
		return m, nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("where generators meet: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("", port))
	if err != nil {
		return nil, fmt.Errorf("where generators meet: %w", err)
	}
	m.server = &http.Server{Handler: http.HandlerFunc(m.answer), ReadTimeout: readTimeout, WriteTimeout: readTimeout}
	go func() { _ = m.server.Serve(listener) }() // ends with Close
	return m, nil
}

// Close ends the serving, once the others have had the time to ask for the last start.
func (m *Meeting) Close() {
	if m.server == nil {
		return
	}
	m.mutex.Lock()
	last := time.Time{}
	for _, r := range m.rounds {
		if r.start.After(last) {
			last = r.start
		}
	}
	m.mutex.Unlock()
	time.Sleep(time.Until(last))
	_ = m.server.Close()
}

// Wait waits, at most so long, until all generators have come to the round of this name, and gives
// the moment at which they all begin. On generator 0 prepare runs when all are there, before that
// moment is fixed.
func (m *Meeting) Wait(ctx context.Context, name string, longest time.Duration, prepare func() error) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, ErrIncomplete)
	defer cancel()
	if m.index != 0 {
		return m.ask(ctx, name, longest)
	}
	r := m.come(name, 0)
	if err := m.complete(ctx, r, name, longest); err != nil {
		return time.Time{}, err
	}
	if prepare != nil {
		if err := prepare(); err != nil {
			return time.Time{}, err
		}
	}
	start := time.Now()
	if m.count > 1 {
		start = start.Add(lead)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r.start = start
	return start, nil
}

// complete waits until all have come to a round. All may be there already, and then no limit, not
// even one of no time at all, has been passed.
func (m *Meeting) complete(ctx context.Context, r *round, name string, longest time.Duration) error {
	select {
	case <-r.all:
		return nil
	default:
	}
	select {
	case <-r.all:
		return nil
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, ErrIncomplete) {
			return cause
		}
		return fmt.Errorf("%w: within %s generator %s of %d did not come to the %s",
			ErrIncomplete, longest, m.missing(r), m.count, name)
	}
}

// come notes that a generator has come to a round.
func (m *Meeting) come(name string, index int) *round {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.rounds[name]
	if r == nil {
		r = &round{present: make([]bool, m.count), all: make(chan struct{})}
		m.rounds[name] = r
	}
	if !r.present[index] {
		r.present[index] = true
		if !slices.Contains(r.present, false) {
			close(r.all)
		}
	}
	return r
}

func (m *Meeting) missing(r *round) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var missing []string
	for index, present := range r.present {
		if !present {
			missing = append(missing, strconv.Itoa(index))
		}
	}
	return strings.Join(missing, ", ")
}

// answer tells another generator how many nanoseconds are left until the start: 202 while some are
// missing, 410 when it is over.
func (m *Meeting) answer(w http.ResponseWriter, r *http.Request) {
	index, err := strconv.Atoi(r.FormValue("index"))
	if err != nil || index < 1 || index >= m.count || r.FormValue("trial") != m.trial {
		http.Error(w, "not of this trial", http.StatusConflict)
		return
	}
	met := m.come(r.FormValue("round"), index)
	m.mutex.Lock()
	start := met.start
	m.mutex.Unlock()
	left := time.Until(start)
	switch {
	case start.IsZero():
		w.WriteHeader(http.StatusAccepted)
	case left <= 0:
		w.WriteHeader(http.StatusGone)
	default:
		_, _ = io.WriteString(w, strconv.FormatInt(left.Nanoseconds(), 10))
	}
}

var (
	errTooLate       = errors.New("the others have begun already")
	errOthersMissing = errors.New("others are missing")
)

// ask asks generator 0 until it tells the start.
func (m *Meeting) ask(ctx context.Context, name string, longest time.Duration) (time.Time, error) {
	query := url.Values{"trial": {m.trial}, "round": {name}, "index": {strconv.Itoa(m.index)}}
	where := "http://" + m.address + "/?" + query.Encode()
	var last error
	heard := time.Now()
	for {
		start, err := m.askOnce(ctx, where)
		switch {
		case err == nil:
			m.answered = true
			return start, nil
		case errors.Is(err, errOthersMissing):
			m.answered, heard, last = true, time.Now(), err
		case m.answered && time.Since(heard) > lostAfter:
			return time.Time{}, fmt.Errorf("%w: generator 0 (%s) is gone: %v", ErrIncomplete, m.address, err)
		case errors.Is(err, errTooLate):
			return time.Time{}, fmt.Errorf("%w: generator %d came to the %s, but %w", ErrIncomplete, m.index, name, err)
		case ctx.Err() == nil:
			last = err // not what the end of the waiting makes of a question under way
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, ErrIncomplete) {
				return time.Time{}, cause
			}
			return time.Time{}, fmt.Errorf("%w: generator %d waited %s for the %s; generator 0 (%s): %v",
				ErrIncomplete, m.index, longest, name, m.address, last)
		case <-time.After(askEvery):
		}
	}
}

func (m *Meeting) askOnce(ctx context.Context, where string) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return time.Time{}, err
	}
	asked := time.Now()
	response, err := m.client.Do(request)
	if err != nil {
		return time.Time{}, err
	}
	answered := time.Now()
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusAccepted:
		return time.Time{}, errOthersMissing
	case http.StatusGone:
		return time.Time{}, errTooLate
	default:
		return time.Time{}, fmt.Errorf("it answered %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 32))
	if err != nil {
		return time.Time{}, err
	}
	left, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("it answered %q", text)
	}
	// Half of the round trip had passed when generator 0 looked at its clock.
	return asked.Add(answered.Sub(asked) / 2).Add(time.Duration(left)), nil
}
