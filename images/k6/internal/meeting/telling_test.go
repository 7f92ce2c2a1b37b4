package meeting

import (
	"bytes"
	"context"
	"testing"
	"time"

	"laptime.dev/k6/internal/freeport"
)

func TestWhatGenerator0MakesIsHandedOn(t *testing.T) {
	address := freeport.Address(t)
	data := bytes.Repeat([]byte("\n0 of \"it\""), 100_000)
	zero, one := join(t, "demo", 0, 2, address), join(t, "demo", 1, 2, address)
	made := make(chan []byte, 1)
	go func() {
		got, _ := zero.Share(context.Background(), "setup", time.Minute, func() ([]byte, error) { return data, nil })
		made <- got
	}()
	got, err := one.Share(context.Background(), "setup", time.Minute, nil)
	if err != nil || !bytes.Equal(got, data) || !bytes.Equal(<-made, data) {
		t.Errorf("%d of %d bytes, error %v", len(got), len(data), err)
	}
	// Who comes late gets it as well.
	time.Sleep(2 * lead)
	if again, err := one.Share(context.Background(), "setup", time.Minute, nil); err != nil || !bytes.Equal(again, data) {
		t.Errorf("%d of %d bytes, error %v", len(again), len(data), err)
	}
}

func TestAStopIsToldToAll(t *testing.T) {
	address := freeport.Address(t)
	// It is told even before generator 0 listens.
	one := join(t, "demo", 1, 3, address)
	heard := make(chan error, 1)
	go func() { heard <- one.Stop(context.Background()) }()
	time.Sleep(100 * time.Millisecond)
	zero, two := join(t, "demo", 0, 3, address), join(t, "demo", 2, 3, address)
	if err := <-heard; err != nil {
		t.Fatal(err)
	}
	if !zero.Stopped(context.Background()) || !two.Stopped(context.Background()) {
		t.Error("the others have not heard of the stop")
	}
	other := join(t, "demo", 0, 2, freeport.Address(t))
	if other.Stopped(context.Background()) {
		t.Error("nobody was stopped")
	}
}

func TestGenerator0WaitsForTheEndOfAll(t *testing.T) {
	address := freeport.Address(t)
	zero, one := join(t, "demo", 0, 2, address), join(t, "demo", 1, 2, address)
	ended := make(chan error, 1)
	go func() { ended <- zero.Finish(context.Background()) }()
	select {
	case <-ended:
		t.Fatal("it did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	if err := one.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestGenerator0StaysUntilAllHaveHeardOfTheLastRound(t *testing.T) {
	address := freeport.Address(t)
	zero, one := join(t, "demo", 0, 2, address), join(t, "demo", 1, 2, address)
	nothing := func() ([]byte, error) { return nil, nil }
	zero.come("end", 1) // it has asked once, and a full node lets it ask again only after a while
	if _, err := zero.Share(context.Background(), "end", time.Minute, nothing); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		zero.Close()
		close(closed)
	}()
	time.Sleep(4 * lead)
	if _, err := one.Share(context.Background(), "end", 3*time.Second, nothing); err != nil {
		t.Error(err)
	}
	select {
	case <-closed:
	case <-time.After(lostAfter / 2):
		t.Error("all have heard, and it stays nevertheless")
	}
}
