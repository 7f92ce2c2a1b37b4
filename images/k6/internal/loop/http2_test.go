package loop

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laptime.dev/k6/internal/session"
)

// serve2 is serve over HTTP/2: with TLS where secured, else with prior knowledge.
func serve2(t *testing.T, secured bool, most int, handler http.HandlerFunc) (address string, trusting *tls.Config, requests, connections *atomic.Int64) {
	t.Helper()
	requests, connections = &atomic.Int64{}, &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.ProtoMajor != 2 || (r.TLS != nil) != secured {
			t.Errorf("%s, TLS %v", r.Proto, r.TLS)
		}
		handler(w, r)
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: most}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	if !secured {
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		return server.Listener.Addr().String(), nil, requests, connections
	}
	server.Config.Protocols.SetHTTP2(true)
	server.EnableHTTP2 = true
	server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	trusting = &tls.Config{RootCAs: roots, ServerName: "example.com", NextProtos: []string{"h2"}}
	return server.Listener.Addr().String(), trusting, requests, connections
}

var both = map[string]bool{"h2c": false, "h2": true}

func TestClosedLoadsOverHTTP2SendExactlyAsManyRequestsAsAsked(t *testing.T) {
	for name, secured := range both {
		for _, streams := range []int{1, 7} {
			address, trusting, requests, connections := serve2(t, secured, 0, hello)
			before := files(t)
			p := drive(t, address, Plan{
				HTTP2: true, TLS: trusting, Connections: 3, Streams: streams, Total: 600, KeepAlive: true, Threads: 2,
			})
			only(t, p, "", 0)
			if requests.Load() != 600 || p.Responses != 600 || connections.Load() != 3 || p.Retried != 0 {
				t.Errorf("%s, %d streams: the server saw %d requests on %d connections, %d answers", name, streams, requests.Load(), connections.Load(), p.Responses)
			}
			if n := decode(t, p.Endpoints["list"].Connect).TotalCount(); n != 3 {
				t.Errorf("%s, %d streams: %d times to connect, expected 3", name, streams, n)
			}
			// A head and five bytes in a frame of their own.
			if each := p.BytesReceived / 600; each < 9+5+9+1 || each > 200 {
				t.Errorf("%s: %d bytes of each answer", name, each)
			}
			if after := files(t); after > before+10 {
				t.Errorf("%s: %d files were open before, %d after", name, before, after)
			}
		}
	}
}

// Users of a connection are served at the same time.
func TestStreamsOfAConnectionRunBesideEachOther(t *testing.T) {
	var there atomic.Int64
	all := make(chan struct{})
	address, _, requests, connections := serve2(t, false, 0, func(w http.ResponseWriter, r *http.Request) {
		if there.Add(1) == 40 {
			close(all)
		}
		<-all // none is answered before all are there
		hello(w, r)
	})
	p := drive(t, address, Plan{HTTP2: true, Connections: 2, Streams: 20, Total: 400, KeepAlive: true})
	only(t, p, "", 0)
	if requests.Load() != 400 || connections.Load() != 2 {
		t.Errorf("%d requests on %d connections, expected 400 on 2", requests.Load(), connections.Load())
	}
}

// What a server allows is never exceeded, however many users a connection has, and each has its turn.
func TestTheServersLimitOfStreamsIsHonoured(t *testing.T) {
	var now, most atomic.Int64
	var mutex sync.Mutex
	seen := map[string]int{}
	address, _, requests, connections := serve2(t, false, 1, func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		mutex.Lock()
		seen[r.URL.Path]++
		mutex.Unlock()
		time.Sleep(time.Millisecond)
		now.Add(-1)
		hello(w, r)
	})
	p := drive(t, address, Plan{HTTP2: true, Connections: 1, Streams: 5, Total: 100, KeepAlive: true})
	only(t, p, "", 0)
	// What was begun before the server's settings came, it refused, and it was sent again.
	if requests.Load() != 100 || p.Retried > 4 || connections.Load() != 1 || most.Load() != 1 {
		t.Errorf("%d requests on %d connections, at most %d at once", requests.Load(), connections.Load(), most.Load())
	}
	// Five take turns: each waits for four others.
	if median := decode(t, p.Endpoints["list"].Latency).ValueAtQuantile(50); median < 5000 {
		t.Errorf("median latency %d µs, expected five times 1 ms", median)
	}
}

func TestTimedOpenLoadsOverHTTP2(t *testing.T) {
	for name, secured := range both {
		for _, over := range []time.Duration{0, 200 * time.Millisecond} {
			address, trusting, requests, connections := serve2(t, secured, 0, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(20 * time.Millisecond)
				hello(w, r)
			})
			untilTrue(t, func(noise func() float64) (wrong []string) {
				requests.Store(0)
				connections.Store(0)
				p := drive(t, address, Plan{
					HTTP2: true, TLS: trusting, Connections: 20, Streams: 10, Rate: 500, Duration: time.Second, KeepAlive: true,
					Threads: 1, ConnectOver: over,
				})
				only(t, p, "", 0)
				if requests.Load() != p.Responses || p.Responses+p.DroppedIterations != 500 {
					t.Errorf("%s: %d requests, %d answers, %d dropped", name, requests.Load(), p.Responses, p.DroppedIterations)
				}
				// Ten are under way at a time: those of one connection.
				switch n := connections.Load(); {
				case over > 0:
					wrong = unopened(n, 20, over, noise)
				case over == 0 && float64(n) > 3+noise()/20e3:
					wrong = append(wrong, fmt.Sprintf("%s: %d connections", name, n))
				}
				return wrong
			})
		}
	}
}

func TestTimedResponseTimesOverHTTP2AreThoseOfTheServer(t *testing.T) {
	for _, secured := range both {
		untilTrue(t, func(noise func() float64) (wrong []string) {
			var truth slowness
			address, trusting, _, _ := serve2(t, secured, 0, truth.of(50*time.Millisecond))
			p := drive(t, address, Plan{
				HTTP2: true, TLS: trusting, Connections: 2, Streams: 3, Total: 60, KeepAlive: true, ConnectOver: 100 * time.Millisecond,
			})
			only(t, p, "", 0)
			return truth.missedBy(t, p, noise)
		})
	}
}

// Both windows are smaller than the bodies: those of the server's by far.
func TestLargeBodiesOverHTTP2ArriveWhole(t *testing.T) {
	const size = 5 << 20
	for _, secured := range both {
		var got atomic.Int64
		address, trusting, _, _ := serve2(t, secured, 0, func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			got.Add(n)
			w.Header().Set("Trailer", "X-Sum")
			_, _ = w.Write(make([]byte, size))
			w.Header().Set("X-Sum", "0")
		})
		body := strings.Repeat("b", size)
		post := session.Request{Name: "post", Method: http.MethodPost, Target: "https://test", Path: "/", Body: &body, KeepAlive: true}
		p := drive(t, address, Plan{
			HTTP2: true, TLS: trusting, Connections: 1, Streams: 2, Total: 4, KeepAlive: true, Timeout: time.Minute,
			Requests: []Request{{Name: "post", ExpectStatus: 200, Check: Same}}, Work: workOf(t, []session.Request{post}, nil, nil),
		})
		only(t, p, "", 0)
		if got.Load() != 4*size || p.BytesReceived < 4*size {
			t.Errorf("sent %d, received %d bytes, expected %d of each", got.Load(), p.BytesReceived, 4*size)
		}
	}
}

func TestSessionsOverHTTP2(t *testing.T) {
	for _, secured := range both {
		shop := newShop()
		address, trusting, requests, _ := serve2(t, secured, 0, shop.ServeHTTP)
		list, work := shopping(t, 100, session.Once, session.Think{Least: time.Millisecond, Most: 2 * time.Millisecond})
		p := drive(t, address, Plan{
			HTTP2: true, TLS: trusting, Requests: list, Work: work, Connections: 2, Streams: 3, Threads: 1, Total: 270, KeepAlive: true,
		})
		shop.check(t)
		only(t, p, "", 0)
		if requests.Load() != 270 {
			t.Errorf("%d requests", requests.Load())
		}
	}
}

// What a request holds is the same over both protocols.
func TestARequestHoldsTheSameOverHTTP2(t *testing.T) {
	body := `{"a": {id}}`
	request := session.Request{
		Name: "post", Method: http.MethodPost, Target: "http://shop:8080", Path: "/a%20b?c={id}&d=e", KeepAlive: true, Body: &body,
		Headers: map[string]string{"X-Long": strings.Repeat("l", 40_000), "content-type": "application/json", "X-Id": "1"},
		Cookies: map[string]string{"b": "2", "a": "1"},
	}
	told := map[bool][]string{}
	var mutex sync.Mutex
	handler := func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		second := r.ProtoMajor == 2
		told[second] = append(told[second], fmt.Sprint(r.Method, r.Host, r.RequestURI, r.Header, r.ContentLength, string(sent)))
	}
	for _, second := range []bool{false, true} {
		ids, err := session.Numbers("ids", 1, 5)
		if err != nil {
			t.Fatal(err)
		}
		request.Ids = ids
		request.Ids.PerRequest = true
		plan := Plan{
			HTTP2: second, Connections: 1, Total: 5, KeepAlive: true, Requests: []Request{{Name: "post", ExpectStatus: 200}},
			Work: workOf(t, []session.Request{request}, nil, nil),
		}
		address := ""
		if second {
			address, _, _, _ = serve2(t, false, 0, handler)
		} else {
			server, _, _ := serve(t, handler)
			address = server.Listener.Addr().String()
		}
		only(t, drive(t, address, plan), "", 0)
	}
	if len(told[true]) != 5 || !slices.Equal(told[true], told[false]) {
		t.Errorf("over HTTP/2 %.400v\nover HTTP/1.1 %.400v", told[true], told[false])
	}
}

// The table of a connection holds some of these fields at a time, and each new one displaces others.
func TestFieldsThatDisplaceEachOtherArriveAsTheyAre(t *testing.T) {
	of := func(name string, size int) string { return name + strings.Repeat("x", size) }
	sizes := map[string]int{"/a": 10, "/b": 1500, "/c": 1500, "/d": 1500, "/e": 5000, "/f": 20}
	var requests []session.Request
	var list []Request
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size := sizes[name]
		requests = append(requests, session.Request{
			Name: name, Method: http.MethodGet, Target: "http://test", Path: name, KeepAlive: true, Headers: map[string]string{"X-Of": of(name, size)},
		})
		list = append(list, Request{Name: name, ExpectStatus: 200})
	}
	for _, weights := range [][]int{{1, 1, 1, 1, 1, 1}, {30, 30, 1, 30, 1, 30}} {
		var sessions []session.Session
		for i, r := range requests {
			sessions = append(sessions, session.Session{Name: r.Name, Weight: weights[i], Steps: []string{r.Name}})
		}
		address, _, seen, _ := serve2(t, false, 0, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Of") != of(r.URL.Path, sizes[r.URL.Path]) {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		p := drive(t, address, Plan{
			HTTP2: true, Connections: 2, Streams: 3, Total: 3000, KeepAlive: true, Requests: list, Work: workOf(t, requests, nil, sessions),
		})
		only(t, p, "", 0)
		if seen.Load() != 3000 {
			t.Errorf("%d requests", seen.Load())
		}
	}
}

func TestTimeoutsOverHTTP2EndTheStreamAlone(t *testing.T) {
	var n, cancelled atomic.Int64
	address, _, _, connections := serve2(t, false, 0, func(_ http.ResponseWriter, r *http.Request) {
		if n.Add(1)%5 != 0 {
			return
		}
		<-r.Context().Done()
		cancelled.Add(1)
	})
	p := drive(t, address, Plan{
		HTTP2: true, Connections: 1, Streams: 4, Total: 40, KeepAlive: true, Timeout: time.Second,
	})
	only(t, p, "timeout", 8)
	for wait := 0; cancelled.Load() < 8 && wait < 100; wait++ {
		time.Sleep(10 * time.Millisecond)
	}
	// A connection on which nothing came any more is left, twice when all four wait in vain.
	if cancelled.Load() != 8 || connections.Load() > 3 {
		t.Errorf("the server saw %d of 8 streams end, on %d connections", cancelled.Load(), connections.Load())
	}
}

func TestAServerThatDoesNotChooseHTTP2IsNotSpokenToSo(t *testing.T) {
	address, trusting, requests, _ := serveSecured(t, tls.VersionTLS13, hello)
	trusting.NextProtos = []string{"h2", "http/1.1"}
	p := drive(t, address, Plan{HTTP2: true, TLS: trusting, Connections: 2, Streams: 2, Total: 20, KeepAlive: true})
	only(t, p, "connect", 20)
	if requests.Load() != 0 {
		t.Errorf("%d requests", requests.Load())
	}
}

func TestRefusedConnectionsOfHTTP2AreCountedWithoutSpinning(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	for _, over := range []time.Duration{0, 10 * time.Millisecond} {
		began := time.Now()
		p := drive(t, address, Plan{HTTP2: true, Connections: 2, Streams: 3, Total: 300, KeepAlive: true, ConnectOver: over})
		only(t, p, "connect", 300)
		if took := time.Since(began); took < 45*time.Millisecond {
			t.Errorf("50 refusals in a row took only %s", took)
		}
	}
}
