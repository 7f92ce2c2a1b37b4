package result

import (
	"math"
	"testing"
	"time"
)

// opened records an open load with a window of ten seconds: a request is due every second divided by
// the rate, and answer says after how many seconds since the start the one due at that second had
// its answer.
func opened(t *testing.T, rate float64, answer func(due float64) float64) *Phase {
	t.Helper()
	const length = 10.0
	recorder := NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	recorder.SetWindowEnd(int64(length * 1e9))
	recorder.Open()
	for i := range int(rate * length) {
		due := float64(i) / rate
		recorder.Record(&Sample{Issued: int64(due * 1e9), Done: int64(answer(due) * 1e9), Status: 200})
	}
	phase, err := Merge(recorder)
	if err != nil {
		t.Fatal(err)
	}
	return phase
}

// queue is a server that answers requests in the order they come, at most so many a second, each
// after a time of its own.
func queue(capacity, takes float64) func(due float64) float64 {
	free := 0.0
	return func(due float64) float64 {
		free = max(free, due) + 1/capacity
		return free + takes
	}
}

func TestAnOpenLoadHasItsRateWhateverTheResponseTime(t *testing.T) {
	for _, takes := range []float64{0.0001, 0.005, 0.2, 3, 20} {
		p := opened(t, 1000, func(due float64) float64 { return due + takes })
		if p.CompletedInWindow != 10_000 || p.WindowSeconds != 10 {
			t.Errorf("answers after %v s: %d of 10000 in %v s", takes, p.CompletedInWindow, p.WindowSeconds)
		}
	}
}

func TestAnOverloadedServerHasItsCapacityAndNotTheRate(t *testing.T) {
	for _, takes := range []float64{0.0001, 0.2, 3} {
		for _, capacity := range []float64{100, 800, 990} {
			p := opened(t, 1000, queue(capacity, takes))
			if got := float64(p.CompletedInWindow) / p.WindowSeconds; math.Abs(got-capacity) > 0.2 {
				t.Errorf("%v/s at most, after %v s: %v/s", capacity, takes, got)
			}
		}
	}
}

func TestAnOverloadedServerThatRefusesHasItsCapacity(t *testing.T) {
	// Whoever would wait for more than half a second is refused: the queue stays as long as it is.
	const capacity, longest = 800.0, 0.5
	recorder := NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	recorder.SetWindowEnd(10e9)
	recorder.Open()
	free := 0.0
	for i := range 10_000 {
		due := float64(i) / 1000
		sample := Sample{Issued: int64(due * 1e9), Done: int64(due*1e9) + 1e6, Status: 503, Kind: Status}
		if free-due < longest {
			free = max(free, due) + 1/capacity
			sample = Sample{Issued: int64(due * 1e9), Done: int64(free*1e9) + 5e6, Status: 200}
		}
		recorder.Record(&sample)
	}
	p, err := Merge(recorder)
	if got := float64(p.CompletedInWindow) / 10; err != nil || math.Abs(got-capacity) > 0.2 {
		t.Errorf("%v/s, %v", got, err)
	}
}

func TestTheWindowOfAnOpenLoadIsThatOfEachEndpoint(t *testing.T) {
	recorder := NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"fast", "slow"})
	recorder.SetWindowEnd(1e9)
	recorder.Open()
	for i := range int64(100) {
		takes := []int64{1e6, 500e6}[i%2]
		recorder.Record(&Sample{Endpoint: int(i % 2), Issued: i * 10e6, Done: i*10e6 + takes, Status: 200})
	}
	p, err := Merge(recorder)
	if err != nil || p.CompletedInWindow != 100 {
		t.Errorf("%d of 100 within the window, %v", p.CompletedInWindow, err)
	}
	for _, name := range []string{"fast", "slow"} {
		if got := p.Endpoints[name].CompletedInWindow; got != 50 {
			t.Errorf("%s: %d of 50 within the window", name, got)
		}
	}
}

func TestTheWindowOfAClosedLoadEndsWhenItsTimeIsOver(t *testing.T) {
	recorder := NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	recorder.SetWindowEnd(1e9)
	for i := range int64(10) {
		recorder.Record(&Sample{Issued: i * 100e6, Done: i*100e6 + 250e6, Status: 200})
	}
	p, err := Merge(recorder)
	if err != nil || p.CompletedInWindow != 8 {
		t.Errorf("%d of 10 within the window, expected 8, %v", p.CompletedInWindow, err)
	}
}

func TestEachEndpointHasItsOwnAnswersWithinTheWindow(t *testing.T) {
	loops := make([]*Recorder, 2)
	for i := range loops {
		loops[i] = NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"quick", "slow"})
		loops[i].SetWindowEnd(10e9)
		for n := range int64(10) {
			loops[i].Record(&Sample{Endpoint: 0, Issued: n * 1e9, Done: n*1e9 + 1e6, Status: 200})
			loops[i].Record(&Sample{Endpoint: 1, Issued: n*1e9 + 1e6, Done: n*1e9 + 1001e6, Status: 200})
		}
	}
	p, err := Merge(loops...)
	if err != nil {
		t.Fatal(err)
	}
	quick, slow := p.Endpoints["quick"].CompletedInWindow, p.Endpoints["slow"].CompletedInWindow
	if quick != 20 || slow != 18 || p.CompletedInWindow != quick+slow {
		t.Errorf("%d quick (20), %d slow (18), %d in all (38)", quick, slow, p.CompletedInWindow)
	}
}
