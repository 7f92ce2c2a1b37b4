package sharing

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.k6.io/k6/v2/lib"

	"laptime.dev/k6/internal/meeting"
)

const (
	// How often this generator's own k6 is asked what it is doing, before the start and after it.
	askEvery  = 25 * time.Millisecond
	lookEvery = 250 * time.Millisecond
	// k6 has its VUs ready and waits without using anything, so there is time for whoever is slow to hear of it.
	lead = time.Second
)

// The rounds in which generators meet.
const (
	setup = "setup"
	start = "start of the script"
)

// Share is one generator's side of a script that several run.
type Share struct {
	place    Place
	api      k6s
	together *meeting.Meeting
}

// Join begins to take part.
func Join(place Place) (*Share, error) {
	together, err := meeting.Join(place.Trial, place.Index, place.Count, place.Meet)
	if err != nil {
		return nil, err
	}
	together.Lead = lead
	return &Share{place: place, api: k6s{place.API}, together: together}, nil
}

// Begin waits until all generators are ready, has generator 0 run setup(), which may take so long, hands on
// what it returned, and lets k6 go at the common start. Before that it calls at with the moment of the start.
func (s *Share) Begin(ctx context.Context, setupTimeout time.Duration, at func(time.Time)) error {
	if err := s.until(ctx, askEvery, lib.ExecutionStatusPausedBeforeRun); err != nil {
		return err
	}
	data, err := s.together.Share(ctx, setup, s.place.Patience+setupTimeout, func() ([]byte, error) { return s.api.setup(ctx) })
	if err != nil {
		return err
	}
	if s.place.Index != 0 {
		if err := s.api.setData(ctx, data); err != nil {
			return err
		}
	}
	begins, err := s.together.Wait(ctx, start, s.place.Patience, nil)
	if err != nil {
		return err
	}
	at(begins)
	time.Sleep(time.Until(begins))
	return s.api.resume(ctx)
}

// Follow calls stop if another generator is stopped before its end. On generator 0 it also runs teardown() when
// all have ended, and then lets k6, which was told to stay, end.
func (s *Share) Follow(ctx context.Context, stop func()) error {
	asked := false
	for {
		if !asked && s.together.Stopped(ctx) {
			asked = true
			stop()
		}
		if s.place.Index != 0 {
			time.Sleep(time.Second)
			continue
		}
		status, err := s.api.status(ctx)
		if err != nil {
			return err
		}
		if status >= lib.ExecutionStatusEnded {
			return s.end(ctx, status)
		}
		time.Sleep(lookEvery)
	}
}

func (s *Share) end(ctx context.Context, status lib.ExecutionStatus) error {
	if status == lib.ExecutionStatusInterrupted {
		if err := s.together.Stop(ctx); err != nil {
			return err
		}
	}
	if err := s.together.Finish(ctx); err != nil {
		return err
	}
	if err := s.api.teardown(ctx); err != nil {
		return err
	}
	// What it stays for, by its own words, is Ctrl+C.
	return syscall.Kill(os.Getpid(), syscall.SIGINT)
}

// Ended tells generator 0 that the load of this one has ended, and whether before its time. Generator 0
// knows it by itself.
func (s *Share) Ended(ctx context.Context, early bool) error {
	if s.place.Index == 0 {
		return nil
	}
	if early {
		if err := s.together.Stop(ctx); err != nil {
			return fmt.Errorf("tell generator 0 of the end: %w", err)
		}
	}
	if err := s.together.Finish(ctx); err != nil {
		return fmt.Errorf("tell generator 0 of the end: %w", err)
	}
	return nil
}

// Place gives this generator's place.
func (s *Share) Place() Place { return s.place }

// until waits until k6 does what it is waited for. It does not answer before it has read the script.
func (s *Share) until(ctx context.Context, every time.Duration, wanted lib.ExecutionStatus) error {
	for {
		if status, err := s.api.status(ctx); err == nil && status >= wanted {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}
