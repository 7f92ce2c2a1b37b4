// Package meeting lets the generators of one trial, or of two at the same time, begin together.
//
// Generator 0 serves a tiny HTTP endpoint that the others ask again and again. Once all have come,
// it answers how long it is until the common start: time left and not a time of day, because the
// clocks of two nodes need not agree. What is left of the error is half a round trip.
package meeting

import (
	"bytes"
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
	// From the moment in which all are there, and have asked again, to the start: enough for each to ask several times.
	lead = 250 * time.Millisecond
	// On a full node it is as many times the longest pause between two questions of one generator, to this limit.
	leadByPause = 2
	longestLead = 5 * time.Second
	askEvery    = 25 * time.Millisecond
	askTimeout  = 2 * time.Second
	// Half of a round trip is what a start may be off: after a longer one it is asked for again, while there is time.
	goodRoundTrip = 10 * time.Millisecond
	readTimeout   = 5 * time.Second
	// Generator 0 answered before and now it does not: it has been lost. So long does it stay for the others.
	lostAfter = 10 * time.Second
	// What one generator hands to the others, in bytes.
	maxData = 64 << 20
	// The round that each generator comes to when its load has ended.
	over = "end"
)

// ErrIncomplete says that not all generators came in time.
var ErrIncomplete = errors.New("not all generators came")

// Meeting is one generator's side of the meetings of a trial.
type Meeting struct {
	// From the moment in which all are there, and have asked again, to the start. It may be changed before the first round.
	Lead         time.Duration
	trial        string
	index, count int
	address      string // where generator 0 is found
	client       http.Client
	server       *http.Server // of generator 0
	mutex        sync.Mutex
	rounds       map[string]*round
	longestPause time.Duration // between two questions of one generator for the same round, on generator 0
	answered     bool          // generator 0 was there once
	stopped      bool          // one of all was stopped before its end; generator 0 knows
}

type round struct {
	present []bool
	asked   []time.Time   // when each asked last
	heard   []bool        // who was told what there was to tell; never generator 0
	all     chan struct{} // closed when the last one has come
	start   time.Time     // zero until it is fixed
	data    []byte        // what generator 0 hands to the others
	handing bool          // data matters, and no start
}

// Join begins to take part as generator index of count; address (host:port) leads to generator 0,
// which listens on that port. A trial with one generator meets nobody.
func Join(trial string, index, count int, address string) (*Meeting, error) {
	m := &Meeting{
		Lead: lead, trial: trial, index: index, count: count, address: address, rounds: map[string]*round{},
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

// Close ends the serving, once the others have been told of each round: on a full node a generator may ask
// much later than it should. Who has not asked for 10 s has been lost.
func (m *Meeting) Close() {
	if m.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lostAfter)
	defer cancel()
	for m.owing() && ctx.Err() == nil {
		time.Sleep(askEvery)
	}
	_ = m.server.Shutdown(ctx) // an answer under way is written
	_ = m.server.Close()
}

// owing says whether another generator has not been told yet what there is to tell of a round.
func (m *Meeting) owing() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, r := range m.rounds {
		if !r.start.IsZero() && slices.Contains(r.heard[1:], false) {
			return true
		}
	}
	return false
}

// Wait waits, at most so long, until all generators have come to the round of this name, and gives
// the moment at which they all begin. On generator 0 prepare runs when all are there, before that
// moment is fixed.
func (m *Meeting) Wait(ctx context.Context, name string, longest time.Duration, prepare func() error) (time.Time, error) {
	told, err := m.meet(ctx, name, longest, false, func() ([]byte, error) {
		if prepare == nil {
			return nil, nil
		}
		return nil, prepare()
	})
	return told.start, err
}

// Share waits as Wait does, and gives what one() made, which runs on generator 0 when all are there. Nothing
// begins at that moment, so that nobody can hear of it too late.
func (m *Meeting) Share(ctx context.Context, name string, longest time.Duration, one func() ([]byte, error)) ([]byte, error) {
	told, err := m.meet(ctx, name, longest, true, one)
	return told.data, err
}

// told is what generator 0 tells the others of a round.
type told struct {
	start     time.Time
	data      []byte
	roundTrip time.Duration
}

func (m *Meeting) meet(ctx context.Context, name string, longest time.Duration, handing bool, one func() ([]byte, error)) (told, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, ErrIncomplete)
	defer cancel()
	if m.index != 0 {
		return m.ask(ctx, name, longest, handing)
	}
	r := m.come(name, 0)
	if err := m.complete(ctx, r, name, longest); err != nil {
		return told{}, err
	}
	data, err := one()
	if err != nil {
		return told{}, err
	}
	if !handing {
		m.hearAgain(ctx, r)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	start := time.Now()
	if m.count > 1 {
		start = start.Add(max(m.Lead, min(leadByPause*m.longestPause, longestLead)))
	}
	r.start, r.data, r.handing = start, data, handing
	return told{start: start, data: data}, nil
}

// Finish says that the load of this generator has ended. On generator 0 it waits until all have said so.
func (m *Meeting) Finish(ctx context.Context) error {
	if m.index != 0 {
		return m.tell(ctx, url.Values{"round": {over}})
	}
	r := m.come(over, 0)
	select {
	case <-r.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop says that this generator was stopped before its end, and that the others are to end as well.
func (m *Meeting) Stop(ctx context.Context) error {
	if m.index != 0 {
		return m.tell(ctx, url.Values{"stop": {"1"}})
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.stopped = true
	return nil
}

// Stopped says whether a generator was stopped before its end; not, where generator 0 does not answer.
func (m *Meeting) Stopped(ctx context.Context) bool {
	if m.index != 0 {
		_, err := m.askOnce(ctx, m.question(url.Values{"stopped": {"1"}}))
		return errors.Is(err, errStopped)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.stopped
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

// hearAgain waits until each of the others has asked again, and not longer than one question may take: whoever
// stands still just now would hear of the start when it is over.
func (m *Meeting) hearAgain(ctx context.Context, r *round) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for since := time.Now(); m.quietSince(r, since) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
}

// quietSince says whether another generator has asked nothing since then.
func (m *Meeting) quietSince(r *round, since time.Time) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.ContainsFunc(r.asked[1:], since.After)
}

// come notes that a generator has come to a round.
func (m *Meeting) come(name string, index int) *round {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	r := m.rounds[name]
	if r == nil {
		r = &round{
			present: make([]bool, m.count), asked: make([]time.Time, m.count), heard: make([]bool, m.count),
			all: make(chan struct{}),
		}
		m.rounds[name] = r
	}
	now := time.Now()
	if last := r.asked[index]; !last.IsZero() {
		m.longestPause = max(m.longestPause, now.Sub(last))
	}
	r.asked[index] = now
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

// answer tells another generator how many nanoseconds are left until the start, and after them what
// generator 0 hands on: 202 while some are missing, 410 when it is over. It says 205 to whoever asks
// whether one of all was stopped, if one was.
func (m *Meeting) answer(w http.ResponseWriter, r *http.Request) {
	index, err := strconv.Atoi(r.FormValue("index"))
	if err != nil || index < 1 || index >= m.count || r.FormValue("trial") != m.trial {
		http.Error(w, "not of this trial", http.StatusConflict)
		return
	}
	if r.FormValue("round") == "" {
		m.mutex.Lock()
		m.stopped = m.stopped || r.FormValue("stop") != ""
		stopped := m.stopped
		m.mutex.Unlock()
		if stopped && r.FormValue("stopped") != "" {
			w.WriteHeader(http.StatusResetContent)
		}
		return
	}
	met := m.come(r.FormValue("round"), index)
	m.mutex.Lock()
	start, data, handing := met.start, met.data, met.handing
	m.mutex.Unlock()
	left := time.Until(start)
	switch {
	case start.IsZero():
		w.WriteHeader(http.StatusAccepted)
		return
	case left <= 0 && !handing:
		w.WriteHeader(http.StatusGone)
	default:
		if _, err := fmt.Fprintf(w, "%d\n%s", left.Nanoseconds(), data); err != nil {
			return // it asks again
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	met.heard[index] = true
}

var (
	errTooLate       = errors.New("the others have begun already")
	errOthersMissing = errors.New("others are missing")
	errStopped       = errors.New("a generator was stopped")
)

// tell says something to generator 0 until that has heard it.
func (m *Meeting) tell(ctx context.Context, what url.Values) error {
	for {
		_, err := m.askOnce(ctx, m.question(what))
		if err == nil || errors.Is(err, errOthersMissing) || errors.Is(err, errTooLate) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askEvery):
		}
	}
}

func (m *Meeting) question(what url.Values) string {
	what.Set("trial", m.trial)
	what.Set("index", strconv.Itoa(m.index))
	return "http://" + m.address + "/?" + what.Encode()
}

// ask asks generator 0 until it tells the start.
func (m *Meeting) ask(ctx context.Context, name string, longest time.Duration, handing bool) (told, error) {
	where := m.question(url.Values{"round": {name}})
	last, heard := errors.New("no answer"), time.Now()
	for {
		said, err := m.askOnce(ctx, where)
		switch {
		case err == nil:
			m.answered = true
			if handing { // it is the data that matters
				return said, nil
			}
			return m.askBetter(ctx, where, said), nil
		case errors.Is(err, errOthersMissing):
			m.answered, heard, last = true, time.Now(), err
		case m.answered && time.Since(heard) > lostAfter:
			return told{}, fmt.Errorf("%w: generator 0 (%s) is gone: %v", ErrIncomplete, m.address, err)
		case errors.Is(err, errTooLate):
			return told{}, fmt.Errorf("%w: generator %d came to the %s, but %w", ErrIncomplete, m.index, name, err)
		case ctx.Err() == nil:
			last = err // not what the end of the waiting makes of a question under way
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, ErrIncomplete) {
				return told{}, cause
			}
			return told{}, fmt.Errorf("%w: generator %d waited %s for the %s; generator 0 (%s): %v",
				ErrIncomplete, m.index, longest, name, m.address, last)
		case <-time.After(askEvery):
		}
	}
}

// askBetter asks again for a start that was heard of slowly, until shortly before it, and gives what was heard
// of fastest.
func (m *Meeting) askBetter(ctx context.Context, where string, best told) told {
	for best.roundTrip > goodRoundTrip && time.Until(best.start) > askEvery {
		// The next answer may take longer than there is time.
		soon, cancel := context.WithDeadline(ctx, best.start.Add(-askEvery))
		said, err := m.askOnce(soon, where)
		if err == nil && said.roundTrip < best.roundTrip {
			best = said
		}
		select {
		case <-soon.Done():
		case <-time.After(askEvery):
		}
		cancel()
		if ctx.Err() != nil {
			return best
		}
	}
	return best
}

func (m *Meeting) askOnce(ctx context.Context, where string) (told, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return told{}, err
	}
	asked := time.Now()
	response, err := m.client.Do(request)
	if err != nil {
		return told{}, err
	}
	answered := time.Now()
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusAccepted:
		return told{}, errOthersMissing
	case http.StatusGone:
		return told{}, errTooLate
	case http.StatusResetContent:
		return told{}, errStopped
	default:
		return told{}, fmt.Errorf("it answered %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxData))
	if err != nil {
		return told{}, err
	}
	number, data, _ := bytes.Cut(text, []byte("\n"))
	if len(number) == 0 {
		return told{}, nil // to what is only told
	}
	left, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return told{}, fmt.Errorf("it answered %q", number)
	}
	// Half of the round trip had passed when generator 0 looked at its clock.
	roundTrip := answered.Sub(asked)
	return told{asked.Add(roundTrip / 2).Add(time.Duration(left)), data, roundTrip}, nil
}
