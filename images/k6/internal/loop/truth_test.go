package loop

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/result"
)

// attempts that must meet the bare tolerance; the last one allows for what else runs on this
// machine: another process can take the processor from server and client for many milliseconds.
const attempts = 2

// untilTrue repeats a measurement whose complaints depend on time. try gets the noise to allow for
// in microseconds, a function because it is known only when the measurement is over. Tests that call
// it are named so that they can be run while nothing else runs.
func untilTrue(t *testing.T, try func(noise func() float64) []string) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestTimed") {
		t.Fatalf("%s compares times: call it TestTimed...", t.Name())
	}
	var complaints []string
	for range attempts {
		if complaints = try(func() float64 { return 0 }); len(complaints) == 0 || t.Failed() {
			return
		}
		t.Logf("this machine is busy, or: %v", complaints)
	}
	stop := watchNoise()
	for _, complaint := range try(stop) {
		t.Error(complaint)
	}
}

// watchNoise sleeps for a millisecond over and over; the function it returns ends that and gives
// the longest delay seen, in microseconds, for each of the three wake-ups of a request.
func watchNoise() func() float64 {
	var longest atomic.Int64
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case <-done:
				return
			default:
			}
			began := time.Now()
			request := unix.NsecToTimespec(int64(time.Millisecond))
			_ = unix.Nanosleep(&request, nil)
			longest.Store(max(longest.Load(), int64(time.Since(began)-time.Millisecond)))
		}
	}()
	return sync.OnceValue(func() float64 {
		close(done)
		return 3 * float64(longest.Load()) / 1e3
	})
}

// unopened complains of connections that were not opened over the time before the load, each when it is due.
// More than wanted is none: one that is not there in time is made anew.
func unopened(opened, wanted int64, over time.Duration, noise func() float64) []string {
	due := float64(over.Microseconds()) / float64(wanted)
	if missing := float64(wanted - opened); missing > noise()/due {
		return []string{fmt.Sprintf("%d connections were opened over %s, expected %d", opened, over, wanted)}
	}
	return nil
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// close to the truth: within 1 % or 0.1 ms, whichever is more.
func near(got, want, noise float64) bool {
	return math.Abs(got-want) <= max(0.01*want, 100)+noise
}

func TestTimedPercentilesOfKnownServiceTimes(t *testing.T) {
	// 90 % take 100 ms, 9 % 200 ms, 1 % 400 ms, in a fixed order.
	delayOf := func(i int64) time.Duration {
		switch {
		case i%100 == 50:
			return 400 * time.Millisecond
		case i%10 == 3 && i%100 != 53:
			return 200 * time.Millisecond
		}
		return 100 * time.Millisecond
	}
	// Few at a time: the server's own queue would count as latency, and rightly so.
	for _, plan := range []Plan{
		{Connections: 5, Total: 200, KeepAlive: true},
		{Connections: 100, Rate: 250, Duration: 4 * time.Second, KeepAlive: true},
		{Connections: 100, Rate: 250, Duration: 4 * time.Second, KeepAlive: false},
	} {
		untilTrue(t, func(noise func() float64) (wrong []string) {
			var n atomic.Int64
			var mutex sync.Mutex
			var truth []float64 // what the server took, in µs: its own sleep is not exact either
			server, _, _ := serve(t, func(http.ResponseWriter, *http.Request) {
				began := time.Now()
				time.Sleep(delayOf(n.Add(1)))
				took := float64(time.Since(began).Microseconds())
				mutex.Lock()
				truth = append(truth, took)
				mutex.Unlock()
			})
			p := drive(t, server.Listener.Addr().String(), plan)
			only(t, p, "", 0)
			latency := decode(t, p.Endpoints["list"].Latency)
			serverTime := decode(t, p.Endpoints["list"].ServerTime)
			mutex.Lock()
			defer mutex.Unlock()
			slices.Sort(truth)
			for _, q := range []float64{0.5, 0.8, 0.95, 0.995} {
				want := quantile(truth, q)
				if got := float64(latency.ValueAtQuantile(q * 100)); !near(got, want, noise()) {
					wrong = append(wrong, complain("latency", q, got, want))
				}
				if got := float64(serverTime.ValueAtQuantile(q * 100)); !near(got, want, noise()) {
					wrong = append(wrong, complain("server time", q, got, want))
				}
			}
			return wrong
		})
	}
}

// A server that stands still for a second must show in the open model as what its users would
// have seen: every request due in that second waits for the rest of it.
func TestTimedOpenLoadShowsAStallAsItsUsersSeeIt(t *testing.T) {
	const rate, stallFrom, stall = 200, 500 * time.Millisecond, time.Second
	for _, connections := range []int{3, 400} {
		untilTrue(t, func(noise func() float64) (wrong []string) {
			var mutex sync.Mutex
			var first, stalled time.Time   // the first request, the first that met the stall
			var answered [3 * rate]float64 // when the server answered the n-th request, in µs
			came := 0
			server, _, _ := serve(t, func(http.ResponseWriter, *http.Request) {
				now := time.Now()
				mutex.Lock()
				if first.IsZero() {
					first = now
				}
				if stalled.IsZero() && now.Sub(first) >= stallFrom {
					stalled = now
				}
				wait := time.Duration(0)
				if !stalled.IsZero() {
					wait = stalled.Add(stall).Sub(now)
				}
				n := came
				came++
				mutex.Unlock()
				time.Sleep(wait)
				mutex.Lock()
				answered[min(n, len(answered)-1)] = float64(time.Now().UnixMicro())
				mutex.Unlock()
			})
			p := drive(t, server.Listener.Addr().String(), Plan{
				Connections: connections, Rate: rate, Duration: 3 * time.Second, KeepAlive: true,
			})
			only(t, p, "", 0)
			if p.Requests != 3*rate {
				t.Fatalf("%d requests, expected %d", p.Requests, 3*rate)
			}
			mutex.Lock()
			defer mutex.Unlock()
			// They come in the order in which they are due. What has gathered takes some milliseconds
			// after the stall, and how many is the machine's affair.
			var truth []float64
			for i, at := range answered {
				due := p.FirstRequestAt*1e6 + float64(i)*1e6/rate
				truth = append(truth, max(at-due, 0))
			}
			slices.Sort(truth)
			latency := decode(t, p.Endpoints["list"].Latency)
			for _, q := range []float64{0.75, 0.9, 0.95, 0.99, 0.998} {
				got, want := float64(latency.ValueAtQuantile(q*100)), quantile(truth, q)
				// One arrival is 5 ms: those of two connections may overtake each other.
				if math.Abs(got-want) > max(0.01*want, 6000)+noise() {
					wrong = append(wrong, complain("latency", q, got, want))
				}
			}
			// With few connections the stall shows in the lateness, with many hardly.
			late := decode(t, p.Lateness).ValueAtQuantile(95)
			if (late > 500_000) != (connections < 100) {
				wrong = append(wrong, complain("lateness", 0.95, float64(late), 0))
			}
			return wrong
		})
	}
}

func TestTimedOpenLoadHoldsItsRateAndItsSchedule(t *testing.T) {
	untilTrue(t, func(noise func() float64) (wrong []string) {
		var mutex sync.Mutex
		var arrivals []time.Time
		server, _, _ := serve(t, func(http.ResponseWriter, *http.Request) {
			now := time.Now()
			mutex.Lock()
			arrivals = append(arrivals, now)
			mutex.Unlock()
		})
		p := drive(t, server.Listener.Addr().String(), Plan{
			Connections: 100, Rate: 1000, Duration: 2 * time.Second, KeepAlive: true,
		})
		only(t, p, "", 0)
		if p.Requests != 2000 || p.DroppedIterations != 0 {
			t.Errorf("%d requests, %d dropped, expected 2000 and none", p.Requests, p.DroppedIterations)
		}
		mutex.Lock()
		defer mutex.Unlock()
		slices.SortFunc(arrivals, time.Time.Compare)
		took := arrivals[len(arrivals)-1].Sub(arrivals[0])
		if rate := 1999 / took.Seconds(); math.Abs(rate-1000) > 5 {
			wrong = append(wrong, complain("rate", 1, rate, 1000))
		}
		if late := float64(decode(t, p.Lateness).ValueAtQuantile(50)); late > 200+noise() {
			wrong = append(wrong, complain("lateness", 0.5, late, 0))
		}
		return wrong
	})
}

func TestTimedOpenLoadDropsWhatWaitedLongerThanTheTimeout(t *testing.T) {
	untilTrue(t, func(noise func() float64) (wrong []string) {
		server, requests, _ := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) })
		p := drive(t, server.Listener.Addr().String(), Plan{
			Connections: 2, Rate: 100, Duration: 2 * time.Second, KeepAlive: true, Timeout: 500 * time.Millisecond,
		})
		// Two connections at 10 requests/s each take some 20/s of the 100 that are due.
		if p.Requests+p.DroppedIterations != 200 || p.Requests != requests.Load() {
			t.Errorf("%d requests (server %d) and %d dropped, together expected 200", p.Requests, requests.Load(), p.DroppedIterations)
		}
		// Each is given up once it has waited for the time-out, the last ones after the load.
		dropped := make([]int64, max(len(p.Seconds), 3))
		sum := int64(0)
		for _, second := range p.Seconds {
			dropped[second.T] = second.Dropped
			sum += second.Dropped
		}
		if sum != p.DroppedIterations || dropped[1] == 0 || dropped[2] == 0 {
			t.Errorf("of %d dropped in each second %v", p.DroppedIterations, dropped)
		}
		// Each connection is late once for each answer, and a late one serves fewer.
		late := 20 * noise() / 100_000
		if sent := float64(p.Requests); sent < 30-2*late || sent > 52 {
			wrong = append(wrong, complain("requests", 1, sent, 50))
		}
		// 500 ms in the queue, 100 ms served.
		if high := float64(decode(t, p.Endpoints["list"].Latency).Max()); high < 400_000 || high > 900_000+noise() {
			wrong = append(wrong, complain("latency", 1, high, 600_000))
		}
		return wrong
	})
}

// What the generator uses while nothing but one late answer is waited for says nothing of whether it could send.
func TestTimedTheUseOfAGeneratorIsThatOfItsLoadAndNotOfTheAnswersAfterIt(t *testing.T) {
	for name, plan := range map[string]Plan{
		"closed": {Connections: 4, Threads: 1, Duration: 500 * time.Millisecond, KeepAlive: true},
		"open":   {Connections: 4, Threads: 1, Rate: 10_000, Duration: 500 * time.Millisecond, KeepAlive: true},
	} {
		untilTrue(t, func(func() float64) (wrong []string) {
			used := func(tail time.Duration) (busiest, cores float64) {
				var late atomic.Int64
				began := time.Now()
				server, _, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					if time.Since(began) > 400*time.Millisecond && late.Add(1) == 1 {
						time.Sleep(tail)
					}
					hello(w, nil)
				})
				_, cost, err := Run(context.Background(), planFor(t, server.Listener.Addr().String(), plan))
				if err != nil {
					t.Fatal(err)
				}
				return cost.BusiestThread, cost.CPU.Seconds() / cost.Wall.Seconds()
			}
			busiest, cores := used(0)
			lateBusiest, lateCores := used(2 * time.Second)
			if lateBusiest < 0.7*busiest || lateCores < 0.7*cores {
				wrong = append(wrong, fmt.Sprintf("%s: thread %.2f, cores %.2f; with a late answer %.2f and %.2f",
					name, busiest, cores, lateBusiest, lateCores))
			}
			return wrong
		})
	}
}

// Handshakes have one processor beside one loop of two, and while they fill it the loop has little to do.
func TestTimedHandshakesThatAreTheLimitAreSeenAsThat(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	untilTrue(t, func(noise func() float64) (wrong []string) {
		address, trusting, _, _ := serveSecured(t, tls.VersionTLS13, hello)
		trusting.VerifyConnection = func(tls.ConnectionState) error {
			for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
			}
			return nil
		}
		_, cost, err := Run(context.Background(), planFor(t, address, Plan{
			TLS: trusting, Connections: 8, Threads: 1, Duration: time.Second,
		}))
		if err != nil {
			t.Fatal(err)
		}
		least := 0.9
		if noise() > 0 {
			least = 0.3 // handshakes do not get the whole of a processor; the loop alone uses 0.03
		}
		if cost.BusiestThread < least {
			wrong = append(wrong, fmt.Sprintf("a share of %.2f, expected 1", cost.BusiestThread))
		}
		return wrong
	})
}

func TestHandshakesAreSetAgainstTheProcessorsThatLoopsLeave(t *testing.T) {
	for _, c := range []struct {
		cpu, loops time.Duration
		processors int
		want       float64
	}{
		{11 * time.Second, time.Second, 1, 1},
		{11 * time.Second, 6 * time.Second, 1, 0.5},
		{13 * time.Second, time.Second, 3, 0.4},
		{time.Second, time.Second, 1, 0},
		{15 * time.Second, time.Second, 1, 1}, // what the runtime does beside it
	} {
		got := shareOfOthers(Cost{CPU: c.cpu, Wall: 10 * time.Second}, c.loops, c.processors)
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s, of loops %s, %d processors: %v, expected %v", c.cpu, c.loops, c.processors, got, c.want)
		}
	}
}

func complain(what string, q, got, want float64) string {
	return fmt.Sprintf("%s at %v: %.0f, expected %.0f", what, q, got, want)
}

// slowness is how long a server really took for each request, in microseconds.
type slowness struct {
	mutex  sync.Mutex
	micros []float64
}

// of answers after a time, which it takes.
func (s *slowness) of(pause time.Duration) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) {
		began := time.Now()
		time.Sleep(pause)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.micros = append(s.micros, float64(time.Since(began).Microseconds()))
	}
}

// missedBy says where what was measured is off by more than 2 ms: encrypting and framing take time,
// and so do a handshake's last words, which the server reads with the first request.
func (s *slowness) missedBy(t *testing.T, p *result.Phase, noise func() float64) (wrong []string) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	slices.Sort(s.micros)
	for what, encoded := range map[string]string{"latency": p.Endpoints["list"].Latency, "server time": p.Endpoints["list"].ServerTime} {
		for _, q := range []float64{0.5, 0.9} {
			if got, want := float64(decode(t, encoded).ValueAtQuantile(q*100)), quantile(s.micros, q); math.Abs(got-want) > 2000+noise() {
				wrong = append(wrong, complain(what, q, got, want))
			}
		}
	}
	return wrong
}
