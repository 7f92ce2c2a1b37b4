package meeting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laptime.dev/k6/internal/freeport"
)

func join(t *testing.T, trial string, index, count int, address string) *Meeting {
	t.Helper()
	m, err := Join(trial, index, count, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

type answered struct {
	start time.Time
	err   error
}

func TestAllGeneratorsLearnTheSameStart(t *testing.T) {
	const count = 4
	address := freeport.Address(t)
	answers := make(chan answered, count)
	prepared := false
	for index := range count {
		go func() {
			// The others are there before generator 0 listens, as pods may be.
			time.Sleep(time.Duration(count-index) * 30 * time.Millisecond)
			m, err := Join("demo", index, count, address)
			if err != nil {
				answers <- answered{err: err}
				return
			}
			defer m.Close()
			var last answered
			for _, round := range []string{"warm-up", "measured part"} {
				last.start, last.err = m.Wait(context.Background(), round, 20*time.Second, func() error {
					prepared = index == 0
					return nil
				})
				time.Sleep(time.Until(last.start))
			}
			answers <- last
		}()
	}
	var first, latest time.Time
	for range count {
		answer := <-answers
		if answer.err != nil {
			t.Fatal(answer.err)
		}
		if first.IsZero() || answer.start.Before(first) {
			first = answer.start
		}
		if answer.start.After(latest) {
			latest = answer.start
		}
	}
	if apart := latest.Sub(first); apart > lead/2 {
		t.Errorf("the starts are %s apart", apart)
	}
	if !prepared {
		t.Error("generator 0 did not prepare, or another one did")
	}
}

func TestOneGeneratorWaitsForNobody(t *testing.T) {
	m := join(t, "demo", 0, 1, "")
	ran := false
	start, err := m.Wait(context.Background(), "warm-up", time.Minute, func() error { ran = true; return nil })
	if err != nil || !ran || time.Until(start) > 0 {
		t.Errorf("start %s, prepared %v, error %v", start, ran, err)
	}
}

func TestTheStartIsFurtherAwayWhereGeneratorsAskSlowly(t *testing.T) {
	address := freeport.Address(t)
	zero, one := join(t, "demo", 0, 2, address), join(t, "demo", 1, 2, address)
	ask := func() error {
		_, err := one.askOnce(context.Background(), one.question(url.Values{"round": {"warm-up"}}))
		return err
	}
	// As on a node that gives it no time: it asks after a second, and after a second again.
	const pause = time.Second
	if err := ask(); !errors.Is(err, errOthersMissing) {
		t.Fatal(err)
	}
	time.Sleep(pause)
	if err := ask(); !errors.Is(err, errOthersMissing) {
		t.Fatal(err)
	}
	if _, err := zero.Wait(context.Background(), "warm-up", time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(pause)
	if err := ask(); err != nil {
		t.Errorf("it does not hear of the start: %v", err)
	}
}

func TestAStartThatWasHeardSlowlyIsAskedForAgain(t *testing.T) {
	start := time.Now().Add(4 * time.Second)
	var asked atomic.Int64
	zero := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		left := time.Until(start)
		if asked.Add(1) == 1 {
			time.Sleep(800 * time.Millisecond) // all of it on the way back
		}
		_, _ = fmt.Fprintf(w, "%d\n", left.Nanoseconds())
	}))
	defer zero.Close()
	one := join(t, "demo", 1, 2, zero.Listener.Addr().String())
	heard, err := one.Wait(context.Background(), "warm-up", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if off := heard.Sub(start).Abs(); off > 200*time.Millisecond {
		t.Errorf("the start is %s off after %d questions", off, asked.Load())
	}
}

func TestAStartIsNotMissedForABetterAnswer(t *testing.T) {
	start := time.Now().Add(time.Second)
	var asked atomic.Int64
	zero := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 1 {
			<-r.Context().Done() // it never answers again
			return
		}
		left := time.Until(start)
		time.Sleep(30 * time.Millisecond)
		_, _ = fmt.Fprintf(w, "%d\n", left.Nanoseconds())
	}))
	defer zero.Close()
	one := join(t, "demo", 1, 2, zero.Listener.Addr().String())
	if _, err := one.Wait(context.Background(), "warm-up", time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	if late := time.Since(start); late > 500*time.Millisecond {
		t.Errorf("it waited until %s after the start", late)
	}
	if asked.Load() < 2 {
		t.Error("it did not ask again")
	}
}

func TestWhoStandsStillWhenTheLastOneComesIsWaitedFor(t *testing.T) {
	zero := join(t, "demo", 0, 2, freeport.Address(t))
	zero.come("warm-up", 1)
	const still = 700 * time.Millisecond
	began := time.Now()
	go func() {
		time.Sleep(still)
		zero.come("warm-up", 1)
	}()
	start, err := zero.Wait(context.Background(), "warm-up", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if earliest := began.Add(still + lead); start.Before(earliest) {
		t.Errorf("it begins %s before who stood still has had its lead", earliest.Sub(start))
	}
	zero.mutex.Lock()
	defer zero.mutex.Unlock()
	zero.rounds["warm-up"].heard[1] = true // nobody is there who would ask
}

func TestAMissingGeneratorIsNamed(t *testing.T) {
	address := freeport.Address(t)
	zero, one := join(t, "demo", 0, 3, address), join(t, "demo", 1, 3, address)
	other := make(chan error, 1)
	zero.come("warm-up", 1) // if it is slow to
	go func() {
		_, err := one.Wait(context.Background(), "warm-up", time.Second, nil)
		other <- err
	}()
	_, err := zero.Wait(context.Background(), "warm-up", time.Second, nil)
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "generator 2 of 3") {
		t.Errorf("generator 0 says %v", err)
	}
	if err := <-other; !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "others are missing") {
		t.Errorf("generator 1 says %v", err)
	}
}

func TestWithoutGeneratorZeroTheOthersGiveUp(t *testing.T) {
	m := join(t, "demo", 1, 2, freeport.Address(t))
	_, err := m.Wait(context.Background(), "warm-up", 2*time.Second, nil)
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

func TestWhoGetsNoAnswerAtAllSaysSo(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	m := join(t, "demo", 1, 2, silent.Addr().String())
	_, err = m.Wait(context.Background(), "warm-up", 300*time.Millisecond, nil)
	if !errors.Is(err, ErrIncomplete) || !strings.HasSuffix(err.Error(), ": no answer") {
		t.Errorf("%v", err)
	}
}

func TestGeneratorsOfAnotherTrialDoNotCount(t *testing.T) {
	address := freeport.Address(t)
	zero, stranger := join(t, "demo-trial-002", 0, 2, address), join(t, "demo-trial-001", 1, 2, address)
	go func() { _, _ = stranger.Wait(context.Background(), "warm-up", 200*time.Millisecond, nil) }()
	if _, err := zero.Wait(context.Background(), "warm-up", 300*time.Millisecond, nil); !errors.Is(err, ErrIncomplete) {
		t.Errorf("%v", err)
	}
}

func TestWhoComesTooLateIsTold(t *testing.T) {
	address := freeport.Address(t)
	zero, one := join(t, "demo", 0, 2, address), join(t, "demo", 1, 2, address)
	zero.come("warm-up", 1)
	start, err := zero.Wait(context.Background(), "warm-up", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(start) + 10*time.Millisecond)
	if _, err := one.Wait(context.Background(), "warm-up", time.Minute, nil); !errors.Is(err, errTooLate) {
		t.Errorf("%v", err)
	}
}

func TestAStoppedGeneratorDoesNotWait(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	address := freeport.Address(t)
	for index := range 2 {
		m := join(t, "demo", index, 2, address)
		if _, err := m.Wait(ctx, "warm-up", time.Minute, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("generator %d: %v", index, err)
		}
	}
}

func TestOneGeneratorMeetsNobodyAndNeedsNoTimeForIt(t *testing.T) {
	for range 200 {
		alone, err := Join("trial", 0, 1, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := alone.Wait(context.Background(), "warm-up", 0, nil); err != nil {
			t.Fatal(err)
		}
		alone.Close()
	}
}
