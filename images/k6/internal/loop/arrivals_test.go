package loop

import (
	"crypto/tls"
	"net/http"
	"testing"
	"time"
)

// A loop that gets no CPU reads late what is there: that is its own time and no server's.
func TestAnAnswerTakesNoLongerForBeingReadLate(t *testing.T) {
	const late = 400 * time.Millisecond
	asked := make(chan struct{}, 2)
	handler := func(w http.ResponseWriter, r *http.Request) {
		hello(w, r)
		asked <- struct{}{} // and answered as soon as this returns
	}
	plain, _, _ := serve(t, handler)
	secured, trusted, _, _ := serveSecured(t, tls.VersionTLS13, handler)
	plain2, _, _, _ := serve2(t, false, 10, handler)
	secured2, trusted2, _, _ := serve2(t, true, 10, handler)
	for name, one := range map[string]struct {
		address string
		plan    Plan
	}{
		"HTTP/1.1":         {plain.Listener.Addr().String(), Plan{}},
		"HTTP/1.1 and TLS": {secured, Plan{TLS: trusted}},
		"HTTP/2":           {plain2, Plan{HTTP2: true}},
		"HTTP/2 and TLS":   {secured2, Plan{HTTP2: true, TLS: trusted2}},
	} {
		one.plan.Connections, one.plan.KeepAlive, one.plan.Total = 1, true, 1
		one.plan.Latencies = func([]int64) {}
		s := &shared{plan: planFor(t, one.address, one.plan), epoch: time.Now()}
		s.taken.Store(1) // of itself it sends nothing
		e, err := newEngine(s, 0, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.close()
		e.begin(0, []string{"list"})
		answered := func() {
			for began := time.Now(); e.active > 0; {
				events, err := e.poller.wait(int64(time.Millisecond))
				if err != nil || time.Since(began) > time.Minute {
					t.Fatalf("%s: no answer: %v", name, err)
				}
				e.act(events)
			}
		}
		// The connection is there then, so that the request goes out at once. The kernel begins to stamp when
		// somebody asks for it, and some time after that.
		for began := time.Now(); e.unread == 0; {
			e.issue(e.pop(), e.now(), e.now())
			answered()
			<-asked
			if time.Since(began) > time.Minute {
				t.Fatalf("%s: nothing is stamped", name)
			}
		}
		e.latencies, e.unread = nil, 0
		issued := e.now()
		e.issue(e.pop(), issued, issued)
		<-asked
		time.Sleep(late)
		answered()
		read := time.Duration(e.now() - issued)
		if len(e.latencies) != 1 {
			t.Fatalf("%s: no right answer", name)
		}
		if took := time.Duration(e.latencies[0]); took > read-late/2 {
			t.Errorf("%s: an answer that was read after %v, %v late, took %v", name, read, late, took)
		}
		if unread := time.Duration(e.unread); unread < late/2 || unread > read {
			t.Errorf("%s: an answer that was read %v late is said to have waited for %v", name, late, unread)
		}
	}
}

func TestAMomentThatTheKernelDoesNotSayIsThatOfTheReading(t *testing.T) {
	s := &shared{epoch: time.Now().Add(-time.Hour)}
	now := time.Now().UnixNano()
	for stamp, known := range map[int64]bool{
		0:                                  false,
		now + time.Minute.Nanoseconds():    false, // the clock was set back
		now - time.Second.Nanoseconds():    true,
		now - 2*time.Hour.Nanoseconds():    false, // and set on
		now - 10*time.Second.Nanoseconds(): false, // before the request that it should answer
	} {
		asked := s.now() - 5*time.Second.Nanoseconds()
		at := s.moment(stamp).since(asked)
		switch ago := at.read - at.arrived; {
		case !known && ago != 0:
			t.Errorf("%d before now: read %v after it arrived", now-stamp, time.Duration(ago))
		case known && (ago < now-stamp || ago > now-stamp+time.Minute.Nanoseconds()):
			t.Errorf("%v before now: read %v after it arrived", time.Duration(now-stamp), time.Duration(ago))
		}
	}
}
