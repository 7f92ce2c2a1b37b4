package loop

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"laptime.dev/k6/internal/session"
)

func TestAnEvenScheduleIsEven(t *testing.T) {
	plan := Plan{Rate: 300, EndRate: 300, Duration: 10 * time.Second}
	if n := int64(math.Ceil(plan.schedule().area())); n != 3000 {
		t.Errorf("%d arrivals", n)
	}
	for _, i := range []int64{0, 1, 2, 299, 2999} {
		if due, want := plan.schedule().due(float64(i)), math.Round(float64(i)/300*1e9); math.Abs(float64(due)-want) > 1 {
			t.Errorf("arrival %d is due after %d ns, expected %.0f", i, due, want)
		}
	}
}

// Until each moment as many are due as the area under the rate says.
func TestARampHasTheAreaUnderItsRate(t *testing.T) {
	for _, rates := range [][2]float64{{100, 1000}, {1000, 100}, {1, 5000}, {500, 500.001}, {1000, 0.001}} {
		plan := Plan{Rate: rates[0], EndRate: rates[1], Duration: 10 * time.Second}
		total := int64(math.Ceil(plan.schedule().area()))
		if want := (rates[0] + rates[1]) / 2 * 10; math.Abs(float64(total)-want) > 1 {
			t.Errorf("%v: %d arrivals, expected %.1f", rates, total, want)
		}
		last := int64(-1)
		for i := range total {
			due := plan.schedule().due(float64(i))
			at := float64(due) / 1e9
			area := rates[0]*at + (rates[1]-rates[0])/10*at*at/2
			if due <= last || math.Abs(area-float64(i)) > 1e-3 || at > 10.01 {
				t.Fatalf("%v: arrival %d is due after %f s, when %f are", rates, i, at, area)
			}
			last = due
		}
	}
}

func TestTimedRampIsDriven(t *testing.T) {
	server, requests, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	untilTrue(t, func(func() float64) (wrong []string) {
		requests.Store(0)
		p := drive(t, server.Listener.Addr().String(), Plan{
			Connections: 50, Rate: 100, EndRate: 700, Duration: 2 * time.Second, KeepAlive: true,
		})
		if p.Requests+p.DroppedIterations != 800 || requests.Load() != p.Requests {
			t.Errorf("%d requests, %d dropped, the server saw %d", p.Requests, p.DroppedIterations, requests.Load())
		}
		if first, second := p.Seconds[0].Requests, p.Seconds[1].Requests; first > 300 || second < 450 {
			wrong = append(wrong, fmt.Sprintf("%d in the first second and %d in the second, expected 250 and 550", first, second))
		}
		return wrong
	})
}

func TestStairsHaveTheirRatesOneAfterTheOther(t *testing.T) {
	plan := Plan{Stretches: []Stretch{{100, 100, time.Second}, {400, 400, 2 * time.Second}, {50, 50, time.Second}}}
	s := plan.schedule()
	if s.area() != 950 {
		t.Errorf("%v requests", s.area())
	}
	for n, seconds := range map[float64]float64{0: 0, 50: 0.5, 100: 1, 300: 1.5, 900: 3, 925: 3.5, 950: 4} {
		if due := float64(s.due(n)) / 1e9; math.Abs(due-seconds) > 1e-9 {
			t.Errorf("request %v is due after %v s, expected %v", n, due, seconds)
		}
	}
}

// times are when all sessions of a load are due, in seconds, as so many loops share them.
func times(plan *Plan, loops int64) []float64 {
	var due []float64
	for loop := range loops {
		for q := newSequence(plan, loop); !q.over(); q.skip(loops) {
			due = append(due, float64(q.due())/1e9)
		}
	}
	slices.Sort(due)
	return due
}

// As many sessions begin as come nearest to the rate: one more or less is a session's worth of requests.
func TestSessionsAreAsManyAsComeNearestToTheRate(t *testing.T) {
	_, work := shopping(t, 10, session.Cycle, session.Think{})
	for _, one := range []struct {
		rate     float64
		seconds  time.Duration
		sessions int
	}{{4, 4, 5}, {17, 1, 6}, {16, 1, 5}, {300, 1, 100}, {1, 1, 1}, {31, 30, 310}} {
		for _, arrivals := range []Arrivals{Even, Poisson} {
			plan := &Plan{Work: work, Rate: one.rate, EndRate: one.rate, Duration: one.seconds * time.Second, Arrivals: arrivals}
			due := times(plan, 2)
			if len(due) != one.sessions || due[len(due)-1] >= float64(one.seconds) {
				t.Errorf("%d sessions of 3, until %v s, at %v/s for %d s, expected %d", len(due), due[len(due)-1], one.rate, one.seconds, one.sessions)
			}
		}
	}
}

func poisson(t *testing.T, seed uint64, stretches ...Stretch) *Plan {
	t.Helper()
	plan := planFor(t, "127.0.0.1:1", Plan{Rate: 1, Arrivals: Poisson, Seed: seed})
	plan.Stretches = stretches
	return plan
}

func TestPoissonArrivalsAreIndependentOfEachOther(t *testing.T) {
	const rate, seconds = 1000.0, 100
	plan := poisson(t, 1, Stretch{rate, rate, seconds * time.Second})
	due := times(plan, 1)
	if len(due) != rate*seconds || due[0] < 0 || due[len(due)-1] > seconds {
		t.Fatalf("%d arrivals from %v to %v s", len(due), due[0], due[len(due)-1])
	}
	// Gaps are exponential: as far spread as they are long, and as many shorter than each time as that says.
	var squares float64
	shorter := map[float64]int{0.1: 0, 0.5: 0, 1: 0, 2: 0, 4: 0}
	for i := 1; i < len(due); i++ {
		gap := (due[i] - due[i-1]) * rate
		squares += (gap - 1) * (gap - 1)
		for bound := range shorter {
			if gap < bound {
				shorter[bound]++
			}
		}
	}
	if spread := squares / float64(len(due)); math.Abs(spread-1) > 0.03 {
		t.Errorf("the variance of the gaps is %.3f of their mean squared, expected 1", spread)
	}
	for bound, n := range shorter {
		if got, want := float64(n)/float64(len(due)), 1-math.Exp(-bound); math.Abs(got-want) > 0.006 {
			t.Errorf("%.4f of the gaps are shorter than %v of the mean, expected %.4f", got, bound, want)
		}
	}
	// As many arrive in each tenth of a second as varies by its root.
	counts := make([]float64, seconds*10)
	for _, at := range due {
		counts[min(int(at*10), len(counts)-1)]++
	}
	squares = 0
	for _, n := range counts {
		squares += (n - 100) * (n - 100)
	}
	if dispersion := squares / float64(len(counts)) / 100; math.Abs(dispersion-1) > 0.15 {
		t.Errorf("the variance of the counts is %.3f of their mean, expected 1", dispersion)
	}
}

func TestPoissonArrivalsFollowTheRate(t *testing.T) {
	due := times(poisson(t, 2, Stretch{100, 100, 10 * time.Second}, Stretch{1000, 1000, 10 * time.Second}), 1)
	before, _ := slices.BinarySearch(due, 10.0)
	if len(due) != 11_000 || math.Abs(float64(before)-1000) > 150 {
		t.Errorf("%d arrivals, %d of them in the first 10 s, expected 11000 and some 1000", len(due), before)
	}
}

func TestAllLoopsHaveTheSamePoissonArrivals(t *testing.T) {
	plan := poisson(t, 3, Stretch{10, 500, 5 * time.Second})
	alone := times(plan, 1)
	for _, loops := range []int64{2, 7, 128} {
		if shared := times(plan, loops); !slices.Equal(alone, shared) {
			t.Errorf("%d loops have %d arrivals that are not those of one, which are %d", loops, len(shared), len(alone))
		}
	}
	plan.Seed++
	if slices.Equal(alone, times(plan, 1)) {
		t.Error("another seed, and the same arrivals")
	}
}

func TestPoissonArrivalsAreSent(t *testing.T) {
	server, requests, _ := serve(t, hello)
	for _, threads := range []int{1, 2} {
		requests.Store(0)
		p := drive(t, server.Listener.Addr().String(), Plan{
			Connections: 50, Rate: 500, Duration: time.Second, KeepAlive: true, Arrivals: Poisson, Seed: 5, Threads: threads,
		})
		if requests.Load() != 500 || p.Responses != 500 {
			t.Errorf("%d threads: %d requests, %d answers, expected 500", threads, requests.Load(), p.Responses)
		}
	}
}
