package loop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/session"
)

// serve starts a server that counts its requests and connections.
func serve(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, requests, connections *atomic.Int64) {
	t.Helper()
	return serveWith(t, 0, handler)
}

// serveWith closes connections that were idle for so long.
func serveWith(t *testing.T, idle time.Duration, handler http.HandlerFunc) (server *httptest.Server, requests, connections *atomic.Int64) {
	t.Helper()
	requests, connections = &atomic.Int64{}, &atomic.Int64{}
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler(w, r)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Config.IdleTimeout = idle
	server.Start()
	t.Cleanup(server.Close)
	return server, requests, connections
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func planFor(t *testing.T, address string, plan Plan) *Plan {
	t.Helper()
	plan.Addresses = []netip.AddrPort{netip.MustParseAddrPort(address)}
	if plan.Requests == nil {
		plan.Requests = []Request{{Name: "list", Idempotent: true, ExpectStatus: 200}}
	}
	if plan.Work == nil {
		plan.Work = inTurn(t, &plan)
	}
	if plan.EndRate == 0 {
		plan.EndRate = plan.Rate
	}
	if plan.Timeout == 0 {
		plan.Timeout = 10 * time.Second
	}
	return &plan
}

// inTurn gets each request, by its name where that is a path.
func inTurn(t *testing.T, plan *Plan) *session.Work {
	t.Helper()
	var requests []session.Request
	for _, r := range plan.Requests {
		path := "/"
		if strings.HasPrefix(r.Name, "/") {
			path = r.Name
		}
		requests = append(requests, session.Request{
			Name: r.Name, Method: http.MethodGet, Target: "http://test", Path: path, KeepAlive: plan.KeepAlive,
		})
	}
	return workOf(t, requests, nil, nil)
}

// workOf makes work; without sessions each request is one of its own.
func workOf(t *testing.T, requests []session.Request, feeders []*session.Feeder, sessions []session.Session) *session.Work {
	t.Helper()
	if sessions == nil {
		for _, r := range requests {
			sessions = append(sessions, session.Session{Name: r.Name, Weight: 1, Steps: []string{r.Name}})
		}
	}
	work, err := session.New(requests, feeders, sessions)
	if err != nil {
		t.Fatal(err)
	}
	for _, feeder := range work.Feeders() {
		feeder.Share(0, feeder.Rows(), 1)
	}
	return work
}

func drive(t *testing.T, address string, plan Plan) *result.Phase {
	t.Helper()
	phase, _, err := Run(context.Background(), planFor(t, address, plan))
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, phase)
	return phase
}

// checkSums holds for every phase, whatever happened in it.
func checkSums(t *testing.T, p *result.Phase) {
	t.Helper()
	failed, requests, inSeconds := int64(0), int64(0), int64(0)
	for _, n := range p.Errors {
		failed += n
	}
	for name, ep := range p.Endpoints {
		requests += ep.Requests
		if n := decode(t, ep.Latency).TotalCount(); n != ep.Requests-ep.Errors {
			t.Errorf("%s: %d latencies of %d good answers", name, n, ep.Requests-ep.Errors)
		}
	}
	for _, s := range p.Seconds {
		inSeconds += s.Requests
	}
	if p.Requests != requests || p.Requests != inSeconds || p.Responses != p.Requests-failed {
		t.Errorf("requests %d, of endpoints %d, of seconds %d, responses %d, errors %d",
			p.Requests, requests, inSeconds, p.Responses, failed)
	}
}

func decode(t *testing.T, encoded string) *hdrhistogram.Histogram {
	t.Helper()
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func only(t *testing.T, p *result.Phase, kind string, want int64) {
	t.Helper()
	for name, n := range p.Errors {
		expected := int64(0)
		if name == kind {
			expected = want
		}
		if n != expected {
			t.Errorf("%d errors of kind %s, expected %d", n, name, expected)
		}
	}
}

func TestClosedLoadSendsExactlyAsManyRequestsAsAsked(t *testing.T) {
	for _, keepAlive := range []bool{true, false} {
		total := int64(50_000)
		if !keepAlive {
			total = 5_000
		}
		server, requests, connections := serve(t, hello)
		p := drive(t, server.Listener.Addr().String(), Plan{Connections: 10, Total: total, KeepAlive: keepAlive})
		if requests.Load() != total || p.Requests != total || p.Responses != total {
			t.Errorf("keep-alive %v: the server saw %d, reported %d, %d answers", keepAlive, requests.Load(), p.Requests, p.Responses)
		}
		wantConnections := int64(10)
		if !keepAlive {
			wantConnections = total
		}
		if connections.Load() != wantConnections {
			t.Errorf("keep-alive %v: %d connections, expected %d", keepAlive, connections.Load(), wantConnections)
		}
		if n := decode(t, p.Endpoints["list"].Connect).TotalCount(); n != wantConnections {
			t.Errorf("keep-alive %v: %d connect times, expected %d", keepAlive, n, wantConnections)
		}
		if p.StatusCodes["200"] != total || p.CompletedInWindow != total {
			t.Errorf("status codes %v, %d in the window", p.StatusCodes, p.CompletedInWindow)
		}
		only(t, p, "", 0)
	}
}

func TestTimedClosedLoadByDurationFinishesWhatIsUnderWay(t *testing.T) {
	server, requests, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		hello(w, nil)
	})
	untilTrue(t, func(noise func() float64) (wrong []string) {
		requests.Store(0)
		p := drive(t, server.Listener.Addr().String(), Plan{Connections: 4, Duration: 500 * time.Millisecond, KeepAlive: true})
		if p.Requests != requests.Load() || p.WindowSeconds != 0.5 || p.CompletedInWindow >= p.Requests {
			t.Errorf("%d requests (server %d), %d within %v s", p.Requests, requests.Load(), p.CompletedInWindow, p.WindowSeconds)
		}
		// A third round begins 0.1 s before the end, unless all of that is lost.
		if noise() > 100e3 {
			return nil
		}
		if p.Requests != 12 || p.CompletedInWindow != 8 {
			wrong = append(wrong, fmt.Sprintf("%d requests, expected 12, and %d of 8 in the window", p.Requests, p.CompletedInWindow))
		}
		if took := p.LastResponseAt - p.FirstRequestAt; took < 0.6 || took > 0.9 {
			wrong = append(wrong, fmt.Sprintf("first request to last response took %v s, expected 0.6 s", took))
		}
		return wrong
	})
}

func TestTimedOpenLoadHasItsRateWhenAnswersTakeLong(t *testing.T) {
	server, _, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(300 * time.Millisecond)
		hello(w, nil)
	})
	plan := Plan{Connections: 50, Rate: 50, Duration: time.Second, KeepAlive: true}
	untilTrue(t, func(noise func() float64) (wrong []string) {
		p := drive(t, server.Listener.Addr().String(), plan)
		if p.Responses != 50 || p.WindowSeconds != 1 {
			t.Errorf("%d answers, window %v s", p.Responses, p.WindowSeconds)
		}
		// One that takes longer than the shortest by more than the 20 ms between two is not in it.
		if missing := 50 - p.CompletedInWindow; float64(missing) > noise()/20e3 {
			wrong = append(wrong, fmt.Sprintf("%d of 50 answers within the window", p.CompletedInWindow))
		}
		return wrong
	})
}

func TestEndpointsAreSentInTurn(t *testing.T) {
	server, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	p := drive(t, server.Listener.Addr().String(), Plan{
		Connections: 3, Total: 300, KeepAlive: true, Threads: 1,
		Requests: []Request{
			{Name: "/", ExpectStatus: 200}, {Name: "/missing", ExpectStatus: 200}, {Name: "/missing?c", ExpectStatus: 404},
		},
	})
	for _, name := range []string{"/", "/missing", "/missing?c"} {
		if p.Endpoints[name].Requests != 100 {
			t.Errorf("endpoint %s: %d requests, expected 100", name, p.Endpoints[name].Requests)
		}
	}
	only(t, p, "status", 100)
	if p.Endpoints["/missing"].Errors != 100 || p.StatusCodes["404"] != 200 || p.StatusCodes["200"] != 100 {
		t.Errorf("errors %d, status codes %v", p.Endpoints["/missing"].Errors, p.StatusCodes)
	}
}

func TestTimeoutsAreCountedAndCloseTheConnection(t *testing.T) {
	var slow, cancelled atomic.Int64
	server, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if slow.Add(1)%5 != 0 {
			return
		}
		<-r.Context().Done()
		cancelled.Add(1)
	})
	p := drive(t, server.Listener.Addr().String(), Plan{Connections: 4, Total: 40, KeepAlive: true, Timeout: time.Second})
	only(t, p, "timeout", 8)
	for wait := 0; cancelled.Load() < 8 && wait < 100; wait++ {
		time.Sleep(10 * time.Millisecond)
	}
	if cancelled.Load() != 8 {
		t.Errorf("the server saw %d of 8 connections close", cancelled.Load())
	}
}

func TestRefusedConnectionsAreCountedWithoutSpinning(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	began := time.Now()
	p := drive(t, address, Plan{Connections: 2, Total: 100})
	only(t, p, "connect", 100)
	if took := time.Since(began); took < 45*time.Millisecond {
		t.Errorf("50 refusals in a row took only %s", took)
	}
}

// raw starts a server that answers each request, whatever it is, with these bytes and closes.
func raw(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
					_, _ = io.WriteString(connection, answer)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func TestBrokenAnswersAreCountedByKind(t *testing.T) {
	for answer, kind := range map[string]string{
		"": "reset",
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf":                                         "reset",
		"HTTP/1.1 200 OK\r\nContent-Le":                                                             "reset",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n":                       "reset",
		"SSH-2.0-OpenSSH\r\n\r\n":                                                                   "body",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nmore than said":                                "body",
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n":                             "status",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end":                                                      "",
		"HTTP/1.1 200 OK\nContent-Length: 5\n\n12345":                                               "",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":              "",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n" + "12345":               "",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n12345": "",
	} {
		for _, keepAlive := range []bool{false, true} {
			p := drive(t, raw(t, answer), Plan{Connections: 2, Total: 20, KeepAlive: keepAlive})
			want := int64(20)
			if kind == "" {
				want = 0
			}
			only(t, p, kind, want)
			if t.Failed() {
				t.Fatalf("answer %q, keep-alive %v", answer, keepAlive)
			}
		}
	}
}

// An interim answer says nothing of how long the server takes for the answer itself.
func TestAnInterimAnswerDoesNotEndTheTimeOfTheServer(t *testing.T) {
	const pause = 50 * time.Millisecond
	check := func(name string, p *result.Phase) {
		only(t, p, "", 0)
		if shortest := decode(t, p.Endpoints["list"].ServerTime).Min(); shortest < 49_000 {
			t.Errorf("%s: the server took %d µs, expected 50,000", name, shortest)
		}
	}
	for _, pieces := range [][]string{
		{"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{"HTTP/1.1 103 Ear", "ly Hints\r\n\r\nHTTP/1.1 200 O", "K\r\nContent-Length: 2\r\n\r\nok"},
		{"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
	} {
		server, _, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = connection.Close() }()
			for i, piece := range pieces {
				if i > 0 {
					time.Sleep(pause)
				}
				_, _ = io.WriteString(connection, piece)
			}
		})
		check(pieces[0], drive(t, server.Listener.Addr().String(), Plan{Connections: 1, Total: 5}))
	}
	address, _ := peers(t, noSettings, func(p *peer) {
		p.requests(func(stream uint32) {
			p.head(stream, false, ":status", "103", "link", "</x>")
			time.Sleep(pause)
			p.good(stream)
		})
	})
	check("HTTP/2", drive(t, address, Plan{HTTP2: true, Connections: 1, Total: 5, KeepAlive: true}))
}

func TestConnectionsClosedWhileIdleAreMadeAnew(t *testing.T) {
	server, requests, connections := serveWith(t, 10*time.Millisecond, hello)
	p := drive(t, server.Listener.Addr().String(), Plan{
		Connections: 1, Rate: 20, Duration: time.Second, KeepAlive: true,
	})
	only(t, p, "", 0)
	if requests.Load() != 20 || p.Responses != 20 || connections.Load() < 10 {
		t.Errorf("the server saw %d requests on %d connections, %d answers, expected 20", requests.Load(), connections.Load(), p.Responses)
	}
}

// A server that closes instead of answering the second request of a connection did not see it, as
// far as a client can know: it is sent once more, unless sending it twice could do harm.
func TestRequestOnAConnectionJustClosedIsSentOnceMore(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				reader := bufio.NewReader(connection)
				if _, err := http.ReadRequest(reader); err != nil {
					return
				}
				_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				_, _ = http.ReadRequest(reader)
			}()
		}
	}()
	for _, c := range []struct {
		idempotent      bool
		retried, resets int64
	}{{true, 99, 0}, {false, 0, 50}} {
		p := drive(t, listener.Addr().String(), Plan{
			Connections: 1, Total: 100, KeepAlive: true,
			Requests: []Request{{Name: "list", ExpectStatus: 200, Idempotent: c.idempotent}},
		})
		only(t, p, "reset", c.resets)
		if p.Retried != c.retried {
			t.Errorf("idempotent %v: %d sent again, expected %d", c.idempotent, p.Retried, c.retried)
		}
	}
}

func TestBodyChecks(t *testing.T) {
	var n atomic.Int64
	server, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/same":
			hello(w, r)
		case "/ordered":
			_, _ = io.WriteString(w, []string{`{"a":1,"b":2}`, `{"b":2,"a":1}`}[n.Add(1)%2])
		case "/changing":
			_, _ = io.WriteString(w, strings.Repeat("x", int(n.Add(1))))
		}
	})
	request := func(path string, check Check) Request {
		return Request{Name: path, ExpectStatus: 200, Check: check}
	}
	for _, c := range []struct {
		request Request
		fails   bool
	}{
		{request("/same", Same), false},
		{request("/same", NonEmpty), false},
		{request("/ordered", Same), false},
		{request("/changing", Same), true},
		{request("/changing", NonEmpty), false},
		{request("/empty", NonEmpty), true},
		{request("/empty", NoCheck), false},
	} {
		p := drive(t, server.Listener.Addr().String(), Plan{
			Connections: 2, Total: 200, KeepAlive: true, Requests: []Request{c.request},
		})
		if (p.Errors["check"] > 0) != c.fails {
			t.Errorf("%s check %d: %d check errors, expected some: %v", c.request.Name, c.request.Check, p.Errors["check"], c.fails)
		}
		only(t, p, "check", p.Errors["check"])
	}
}

// What is wrong with the length of a body is known of every answer, over both protocols and on any connection.
func TestAllAnswersWithoutABodyOrOfAnotherLengthAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		check   Check
		body    string
		threads int
	}{
		"none":                 {NonEmpty, "", 2},
		"none instead of same": {Same, "", 2},
		"another length":       {Same, "hell", 1}, // each thread has a first answer, which is to be a right one
	} {
		var n, odd atomic.Int64
		handler := func(w http.ResponseWriter, _ *http.Request) {
			body := "hello"
			if n.Add(1)%10 == 0 {
				odd.Add(1)
				body = c.body
			}
			_, _ = io.WriteString(w, body)
		}
		plan := Plan{
			Connections: 8, Total: 2000, KeepAlive: true, Threads: c.threads,
			Requests: []Request{{Name: "list", ExpectStatus: 200, Check: c.check}},
		}
		server, _, _ := serve(t, handler)
		only(t, drive(t, server.Listener.Addr().String(), plan), "check", odd.Swap(0))
		n.Store(0)
		plan.HTTP2, plan.Connections, plan.Streams = true, 2, 4
		address, _, _, _ := serve2(t, false, 0, handler)
		only(t, drive(t, address, plan), "check", odd.Load())
		if odd.Load() != 200 || t.Failed() {
			t.Fatalf("%s: %d other answers over HTTP/2, expected 200", name, odd.Load())
		}
	}
}

// One of 17 is summed up, until one of them is of other bytes: from then on all are.
func TestOtherBytesOfTheSameLengthAreAllCountedOnceOneWasFound(t *testing.T) {
	for _, protocol2 := range []bool{false, true} {
		for _, count := range []int{1, 2, 3, 4, 16} {
			seen := map[string]int{}
			handler := func(w http.ResponseWriter, r *http.Request) {
				seen[r.URL.Path]++
				switch seen[r.URL.Path] {
				case 17, 18, 19, 40: // the 18th is looked at
					_, _ = io.WriteString(w, "jello")
				default:
					_, _ = io.WriteString(w, "hello")
				}
			}
			plan := Plan{HTTP2: protocol2, Connections: 1, Total: int64(64 * count), KeepAlive: true}
			for i := range count {
				plan.Requests = append(plan.Requests, Request{Name: fmt.Sprint("/", i), ExpectStatus: 200, Check: Same})
			}
			var address string
			if protocol2 {
				address, _, _, _ = serve2(t, false, 0, handler)
			} else {
				server, _, _ := serve(t, handler)
				address = server.Listener.Addr().String()
			}
			p := drive(t, address, plan)
			for name, endpoint := range p.Endpoints {
				if endpoint.Errors != 3 || p.Errors["check"] != int64(3*count) {
					t.Errorf("HTTP/2 %v, %d endpoints: %d of %d answers of %s were found, expected 3", protocol2, count, endpoint.Errors, endpoint.Requests, name)
				}
			}
		}
	}
}

func TestLargeRequestsAndAnswersArriveWhole(t *testing.T) {
	const size = 4 << 20
	var got atomic.Int64
	server, _, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Add(n)
		_, _ = w.Write(make([]byte, size))
	})
	body := strings.Repeat("b", size)
	post := session.Request{Name: "post", Method: http.MethodPost, Target: "http://test", Path: "/", Body: &body, KeepAlive: true}
	p := drive(t, server.Listener.Addr().String(), Plan{
		Connections: 2, Total: 10, KeepAlive: true,
		Requests: []Request{{Name: "post", ExpectStatus: 200}},
		Work:     workOf(t, []session.Request{post}, nil, nil),
	})
	only(t, p, "", 0)
	if got.Load() != 10*size || p.BytesReceived < 10*size {
		t.Errorf("sent %d, received %d bytes, expected %d of each", got.Load(), p.BytesReceived, 10*size)
	}
}

// Connections that are opened over a while are there before the first request, each on its own time.
func TestTimedConnectionsAreOpenedOneAfterTheOtherBeforeTheLoad(t *testing.T) {
	const count, over = 40, 400 * time.Millisecond
	for name, plan := range map[string]Plan{
		"closed": {Connections: count, Threads: 2, Total: 400},
		"open":   {Connections: count, Threads: 2, Rate: 400, Duration: time.Second},
	} {
		var mutex sync.Mutex
		var opened []time.Time
		var first time.Time
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mutex.Lock()
			defer mutex.Unlock()
			if first.IsZero() {
				first = time.Now()
			}
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				mutex.Lock()
				defer mutex.Unlock()
				opened = append(opened, time.Now())
			}
		}
		server.Start()
		plan.KeepAlive, plan.ConnectOver = true, over
		untilTrue(t, func(noise func() float64) (wrong []string) {
			opened, first = nil, time.Time{}
			p := drive(t, server.Listener.Addr().String(), plan)
			only(t, p, "", 0)
			mutex.Lock()
			defer mutex.Unlock()
			if len(opened) > count {
				t.Errorf("%s: %d connections", name, len(opened))
			}
			wrong = append(wrong, unopened(int64(len(opened)), count, over, noise)...)
			used := decode(t, p.Endpoints["list"].Connect).TotalCount()
			if used != int64(len(opened)) {
				t.Errorf("%s: %d times to connect are known, expected %d", name, used, len(opened))
			}
			for i, at := range opened {
				late := at.Sub(opened[0]) - time.Duration(i)*over/count
				if math.Abs(float64(late.Microseconds())) > 5000+noise() {
					wrong = append(wrong, fmt.Sprintf("%s: connection %d came %s late", name, i, late))
				}
			}
			if !first.After(opened[len(opened)-1]) {
				wrong = append(wrong, name+": a request came before the last connection")
			}
			return wrong
		})
		server.Close()
	}
}

func TestConnectionsThatCannotBeOpenedBeforeAreErrorsOfTheRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	p := drive(t, address, Plan{Connections: 4, Total: 40, KeepAlive: true, ConnectOver: 50 * time.Millisecond})
	only(t, p, "connect", 40)
}

func TestStoppedRunGivesNoFigures(t *testing.T) {
	server, _, _ := serve(t, hello)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, err := Run(ctx, planFor(t, server.Listener.Addr().String(), Plan{Connections: 2, Duration: time.Minute, KeepAlive: true}))
	if err != ErrStopped || time.Since(began) > 2*time.Second {
		t.Errorf("error %v after %s", err, time.Since(began))
	}
}

func TestThreadsFollowWhatCanBeUnderWay(t *testing.T) {
	for _, c := range []struct {
		plan             Plan
		processors, want int
	}{
		{Plan{Connections: 1}, 8, 1},
		{Plan{Connections: 16}, 8, 1},
		{Plan{Connections: 17}, 8, 2},
		{Plan{Connections: 64}, 8, 4},
		{Plan{Connections: 64}, 2, 2},
		{Plan{Connections: 5000}, 32, 8},
		{Plan{Connections: 2, Streams: 100}, 8, 2},
		{Plan{Connections: 10, Streams: 10}, 8, 7},
		{Plan{Connections: 2, Threads: 3}, 1, 2},
	} {
		if got := c.plan.threads(c.processors); got != c.want {
			t.Errorf("%d connections of %d streams, %d processors: %d threads, expected %d",
				c.plan.Connections, c.plan.Streams, c.processors, got, c.want)
		}
	}
}
