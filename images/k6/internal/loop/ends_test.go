package loop

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// closing is a server that deals with each connection by itself and then closes its socket, without a word of
// TLS before it: as many libraries do, and any process that is killed.
func closing(t *testing.T, secured bool, behave func(net.Conn)) (address string, trusting *tls.Config) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var config *tls.Config
	if secured {
		made := httptest.NewUnstartedServer(http.HandlerFunc(hello))
		made.StartTLS()
		t.Cleanup(made.Close)
		roots := x509.NewCertPool()
		roots.AddCert(made.Certificate())
		config = &tls.Config{Certificates: made.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
		trusting = &tls.Config{RootCAs: roots, ServerName: "example.com"}
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if secured {
					behave(tls.Server(c, config))
				} else {
					behave(c)
				}
			}()
		}
	}()
	return listener.Addr().String(), trusting
}

// answering reads one request and says this.
func answering(answer string) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, answer)
		}
	}
}

func TestWhatEndsWithItsConnectionIsSeenAtOnce(t *testing.T) {
	for _, secured := range []bool{false, true} {
		whole, trusting := closing(t, secured, answering("HTTP/1.0 200 OK\r\n\r\nhello"))
		plan := Plan{TLS: trusting, Connections: 4, Total: 40, Timeout: 20 * time.Second, Threads: 1}
		if p := drive(t, whole, plan); p.Responses != 40 {
			t.Errorf("TLS %v: %d of 40 answers, %v", secured, p.Responses, p.Errors)
		}
		cut, trusting := closing(t, secured, answering("HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\nhello"))
		plan.TLS = trusting
		only(t, drive(t, cut, plan), "reset", 40)
	}
}

func TestOpenStreamsEndWithTheirConnection(t *testing.T) {
	dying := func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		framer := http2.NewFramer(c, c)
		_ = framer.WriteSettings()
		for streams := 0; streams < 5; {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if _, is := frame.(*http2.HeadersFrame); is {
				streams++
			}
		}
		// What the client is told last and the end of the connection are one event.
		time.Sleep(20 * time.Millisecond)
		_ = framer.WriteWindowUpdate(0, 100)
	}
	address, trusting := closing(t, true, dying)
	trusting.NextProtos = []string{"h2"}
	p := drive(t, address, Plan{
		TLS: trusting, HTTP2: true, Streams: 5, KeepAlive: true, Connections: 2, Total: 40, Timeout: 20 * time.Second, Threads: 1,
	})
	if p.Errors["timeout"] != 0 {
		t.Errorf("%d answers, %v", p.Responses, p.Errors)
	}
}

func TestTheSetUpOfAConnectionBeginsWhenItIsDialled(t *testing.T) {
	const sits = time.Second
	address, _ := closing(t, false, func(c net.Conn) {
		from := bufio.NewReader(c)
		if _, err := http.ReadRequest(from); err != nil {
			return
		}
		_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		if _, err := http.ReadRequest(from); err == nil {
			time.Sleep(sits)
		}
	})
	p := drive(t, address, Plan{Connections: 1, Total: 2, KeepAlive: true})
	connect, latency := decode(t, p.Endpoints["list"].Connect), decode(t, p.Endpoints["list"].Latency)
	if p.Retried == 0 || latency.Max() < sits.Microseconds() {
		t.Fatalf("sent again %d times, %d µs", p.Retried, latency.Max())
	}
	if connect.Max() > sits.Microseconds()/2 {
		t.Errorf("connected after %d µs", connect.Max())
	}
}
