package loop

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laptime.dev/k6/internal/session"
)

// serveSecured is serve with TLS of a version; trusting is what trusts it.
func serveSecured(t *testing.T, version uint16, handler http.HandlerFunc) (address string, trusting *tls.Config, requests, connections *atomic.Int64) {
	t.Helper()
	requests, connections = &atomic.Int64{}, &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.TLS == nil || r.TLS.Version != version || r.TLS.DidResume {
			t.Errorf("%+v", r.TLS)
		}
		handler(w, r)
	}))
	server.TLS = &tls.Config{MaxVersion: version}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"}, requests, connections
}

// files is how many files this process has open.
func files(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func TestClosedLoadsOverTLSSendExactlyAsManyRequestsAsAsked(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		address, trusting, requests, connections := serveSecured(t, version, hello)
		for _, keepAlive := range []bool{true, false} {
			total := int64(2000)
			if !keepAlive {
				total = 100
			}
			requests.Store(0)
			connections.Store(0)
			before := files(t)
			p := drive(t, address, Plan{TLS: trusting, Connections: 5, Total: total, KeepAlive: keepAlive, Threads: 2})
			only(t, p, "", 0)
			wanted := int64(5)
			if !keepAlive {
				wanted = total
			}
			if requests.Load() != total || p.Responses != total || connections.Load() != wanted {
				t.Errorf("version %x, keep-alive %v: the server saw %d requests on %d connections, %d answers, expected %d on %d",
					version, keepAlive, requests.Load(), connections.Load(), p.Responses, total, wanted)
			}
			set := decode(t, p.Endpoints["list"].Connect)
			if n := set.TotalCount(); n != wanted || set.Min() < 100 {
				t.Errorf("%d times to connect, the shortest %d µs: a handshake takes longer", n, set.Min())
			}
			if after := files(t); after > before+10 {
				t.Errorf("%d files were open before, %d after", before, after)
			}
		}
	}
}

func TestTimedResponseTimesOverTLSAreThoseOfTheServer(t *testing.T) {
	untilTrue(t, func(noise func() float64) (wrong []string) {
		var truth slowness
		address, trusting, _, _ := serveSecured(t, tls.VersionTLS13, truth.of(100*time.Millisecond))
		p := drive(t, address, Plan{TLS: trusting, Connections: 5, Total: 50, KeepAlive: true, ConnectOver: 200 * time.Millisecond})
		only(t, p, "", 0)
		return truth.missedBy(t, p, noise)
	})
}

// A handshake's last words are not acknowledged when the request follows them: it must not wait for that. Held back,
// each would take the 40 ms of a delayed acknowledgement, so that no noise need be allowed for.
func TestTimedFirstRequestsOverTLSAreNotHeldBack(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		untilTrue(t, func(func() float64) (wrong []string) {
			address, trusting, _, _ := serveSecured(t, version, hello)
			p := drive(t, address, Plan{TLS: trusting, Connections: 1, Total: 30})
			only(t, p, "", 0)
			if took := decode(t, p.Endpoints["list"].ServerTime).ValueAtQuantile(50); took > 10_000 {
				wrong = append(wrong, complain("server time", 0.5, float64(took), 0))
			}
			return wrong
		})
	}
}

// The last connection is due shortly before the load: who is not awake then does without it, and needs it no more.
func TestTimedOpenLoadsOverTLSOnConnectionsOpenedBefore(t *testing.T) {
	address, trusting, requests, connections := serveSecured(t, tls.VersionTLS13, hello)
	const over = 300 * time.Millisecond
	untilTrue(t, func(noise func() float64) (wrong []string) {
		requests.Store(0)
		connections.Store(0)
		p := drive(t, address, Plan{
			TLS: trusting, Connections: 10, Rate: 200, Duration: time.Second, KeepAlive: true, ConnectOver: over,
		})
		only(t, p, "", 0)
		if requests.Load() != 200 || p.Responses != 200 {
			t.Errorf("%d requests, %d answers", requests.Load(), p.Responses)
		}
		return unopened(connections.Load(), 10, over, noise)
	})
}

func TestLargeBodiesOverTLSArriveWhole(t *testing.T) {
	const size = 4 << 20
	var got atomic.Int64
	address, trusting, _, _ := serveSecured(t, tls.VersionTLS13, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Add(n)
		_, _ = w.Write(make([]byte, size))
	})
	body := strings.Repeat("b", size)
	post := session.Request{Name: "post", Method: http.MethodPost, Target: "https://test", Path: "/", Body: &body, KeepAlive: true}
	p := drive(t, address, Plan{
		TLS: trusting, Connections: 2, Total: 10, KeepAlive: true,
		Requests: []Request{{Name: "post", ExpectStatus: 200}}, Work: workOf(t, []session.Request{post}, nil, nil),
	})
	only(t, p, "", 0)
	if got.Load() != 10*size || p.BytesReceived < 10*size {
		t.Errorf("sent %d, received %d bytes, expected %d of each", got.Load(), p.BytesReceived, 10*size)
	}
}

// A server that answers before it has the whole request: a connection with the rest of it is no place for another one.
func TestAnAnswerBeforeTheWholeRequestEndsItsConnectionOverTLS(t *testing.T) {
	lender := httptest.NewTLSServer(http.NotFoundHandler())
	defer lender.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: lender.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	var connections atomic.Int64
	anew := make(chan struct{})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if connections.Add(1) == 2 {
				close(anew)
			}
			go func() {
				defer func() { _ = connection.Close() }()
				reader := bufio.NewReader(connection)
				for {
					request, err := http.ReadRequest(reader)
					if err != nil {
						return
					}
					_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					select { // slowly, or for the next connection to come
					case <-anew:
					case <-time.After(3 * time.Second):
					}
					_, _ = io.Copy(io.Discard, request.Body)
				}
			}()
		}
	}()
	body := strings.Repeat("b", 16<<20) // more than the sockets of both sides hold
	post := session.Request{Name: "post", Method: http.MethodPost, Target: "https://test", Path: "/", Body: &body, KeepAlive: true}
	p := drive(t, listener.Addr().String(), Plan{
		TLS: &tls.Config{InsecureSkipVerify: true}, Connections: 1, Total: 2, KeepAlive: true,
		Requests: []Request{{Name: "post", ExpectStatus: 200}}, Work: workOf(t, []session.Request{post}, nil, nil),
	})
	only(t, p, "", 0)
	if connections.Load() != 2 {
		t.Errorf("%d connections, expected one for each of two requests", connections.Load())
	}
}

func TestACertificateThatIsNotTrustedIsAnError(t *testing.T) {
	address, _, requests, _ := serveSecured(t, tls.VersionTLS13, hello)
	before := files(t)
	p := drive(t, address, Plan{TLS: &tls.Config{ServerName: "example.com"}, Connections: 2, Total: 20, KeepAlive: true})
	only(t, p, "connect", 20)
	if requests.Load() != 0 {
		t.Errorf("%d requests to a server that nobody trusts", requests.Load())
	}
	if after := files(t); after > before+10 {
		t.Errorf("%d files were open before, %d after", before, after)
	}
}

// A server that takes connections and says nothing: handshakes are given up like requests.
func TestHandshakesTimeOut(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	before := files(t)
	p := drive(t, listener.Addr().String(), Plan{
		TLS: &tls.Config{ServerName: "test"}, Connections: 4, Total: 40, Timeout: 50 * time.Millisecond, KeepAlive: true,
	})
	only(t, p, "timeout", 40)
	time.Sleep(50 * time.Millisecond)
	if after := files(t); after > before+10 {
		t.Errorf("%d files were open before, %d after", before, after)
	}
}

func TestConnectionsOverTLSThatWereClosedWhileIdleAreMadeAnew(t *testing.T) {
	requests := &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		hello(w, r)
	}))
	server.Config.IdleTimeout = 10 * time.Millisecond
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	p := drive(t, server.Listener.Addr().String(), Plan{
		TLS: &tls.Config{InsecureSkipVerify: true}, Connections: 1, Rate: 20, Duration: time.Second, KeepAlive: true,
	})
	only(t, p, "", 0)
	if requests.Load() != 20 || p.Responses != 20 {
		t.Errorf("%d requests, %d answers, expected 20", requests.Load(), p.Responses)
	}
}

func TestASessionOverTLS(t *testing.T) {
	shop := newShop()
	address, trusting, requests, _ := serveSecured(t, tls.VersionTLS13, shop.ServeHTTP)
	list, work := shopping(t, 100, session.Once, session.Think{})
	p := drive(t, address, Plan{TLS: trusting, Requests: list, Work: work, Connections: 3, Threads: 1, Total: 291, KeepAlive: true})
	shop.check(t)
	only(t, p, "", 0)
	if requests.Load() != 291 {
		t.Errorf("%d requests", requests.Load())
	}
}
