package loop

import (
	"math"
	"net/http"
	"testing"
	"time"
)

func TestAnEvenScheduleIsEven(t *testing.T) {
	plan := Plan{Rate: 300, EndRate: 300, Duration: 10 * time.Second}
	if n := plan.arrivals(); n != 3000 {
		t.Errorf("%d arrivals", n)
	}
	for _, i := range []int64{0, 1, 2, 299, 2999} {
		if due, want := plan.due(float64(i)), math.Round(float64(i)/300*1e9); math.Abs(float64(due)-want) > 1 {
			t.Errorf("arrival %d is due after %d ns, expected %.0f", i, due, want)
		}
	}
}

// Until each moment as many are due as the area under the rate says.
func TestARampHasTheAreaUnderItsRate(t *testing.T) {
	for _, rates := range [][2]float64{{100, 1000}, {1000, 100}, {1, 5000}, {500, 500.001}, {1000, 0.001}} {
		plan := Plan{Rate: rates[0], EndRate: rates[1], Duration: 10 * time.Second}
		total := plan.arrivals()
		if want := (rates[0] + rates[1]) / 2 * 10; math.Abs(float64(total)-want) > 1 {
			t.Errorf("%v: %d arrivals, expected %.1f", rates, total, want)
		}
		last := int64(-1)
		for i := range total {
			due := plan.due(float64(i))
			at := float64(due) / 1e9
			area := rates[0]*at + (rates[1]-rates[0])/10*at*at/2
			if due <= last || math.Abs(area-float64(i)) > 1e-3 || at > 10.01 {
				t.Fatalf("%v: arrival %d is due after %f s, when %f are", rates, i, at, area)
			}
			last = due
		}
	}
}

func TestRampIsDriven(t *testing.T) {
	server, requests, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	p := drive(t, server.Listener.Addr().String(), Plan{
		Connections: 50, Rate: 100, EndRate: 700, Duration: 2 * time.Second, KeepAlive: true,
	})
	if p.Requests+p.DroppedIterations != 800 || requests.Load() != p.Requests {
		t.Errorf("%d requests, %d dropped, the server saw %d", p.Requests, p.DroppedIterations, requests.Load())
	}
	if first, second := p.Seconds[0].Requests, p.Seconds[1].Requests; first > 300 || second < 450 {
		t.Errorf("%d in the first second and %d in the second, expected 250 and 550", first, second)
	}
}
