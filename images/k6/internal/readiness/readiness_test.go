package readiness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// saying starts a server that says so at a port of its own, after it has said twice that it does not yet.
func saying(t *testing.T, asked *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 || r.URL.Path != "/ready" || r.ProtoMajor != 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// taking listens, and has each connection in turn answered by the next of the answers, the last by all
// after it; an empty one is none.
func taking(t *testing.T, answers ...string) (string, *atomic.Int64) {
	t.Helper()
	listening, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listening.Close() })
	asked := &atomic.Int64{}
	go func() {
		for {
			connection, err := listening.Accept()
			if err != nil {
				return
			}
			request, err := http.ReadRequest(bufio.NewReader(connection))
			if err != nil || request.URL.Path != "/" {
				t.Errorf("asked for %v, %v", request, err)
			}
			answer := answers[min(int(asked.Add(1)), len(answers))-1]
			_, _ = io.WriteString(connection, answer)
			_ = connection.Close()
		}
	}()
	return "http://" + listening.Addr().String(), asked
}

func page(status string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\ncache-control: no-cache\r\ncontent-type: text/html\r\n\r\n<html><body><h1>%s</h1>\nNo server is available to handle this request.\n</body></html>\n", status, status)
}

const (
	nobody   = "503 Service Unavailable"
	gone     = "502 Bad Gateway"
	notFound = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
)

func TestATargetWithAHealthPortIsAskedUntilItTakesARequestItself(t *testing.T) {
	for name, test := range map[string]struct {
		answers []string
		times   int64
	}{
		"any answer is one":       {[]string{notFound}, 1},
		"behind HAProxy":          {[]string{page(nobody), page(gone), page(nobody), notFound}, 4},
		"behind a delay":          {[]string{"", "", notFound}, 3},
		"that says 503 itself":    {[]string{"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\n<html"}, 1},
		"that says 502 itself":    {[]string{"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"}, 1},
		"that speaks HTTP/2 only": {[]string{"\x00\x00\x00\x04\x00\x00\x00\x00\x00"}, 1},
	} {
		var asked atomic.Int64
		target, taken := taking(t, test.answers...)
		server := Server{Target: target, Health: saying(t, &asked), Path: "/ready"}
		addresses, err := Wait(context.Background(), server, time.Minute)
		if err != nil || len(addresses) != 1 || "http://"+addresses[0].String() != target {
			t.Errorf("%s: %v, %v", name, addresses, err)
		}
		if taken.Load() != test.times || asked.Load() != 2+test.times {
			t.Errorf("%s: asked %d times, and its health port %d times", name, taken.Load(), asked.Load())
		}
	}
}

func TestATargetThatNeverAnswersIsMeasuredAfterTheWait(t *testing.T) {
	for _, answer := range []string{"", page(gone)} {
		var asked atomic.Int64
		target, taken := taking(t, answer)
		server := Server{Target: target, Health: saying(t, &asked), Path: "/ready"}
		addresses, err := Wait(context.Background(), server, 300*time.Millisecond)
		if err != nil || len(addresses) != 1 || taken.Load() < 2 {
			t.Errorf("%v, %v, asked %d times", addresses, err, taken.Load())
		}
	}
}

func TestATargetThatHoldsARequestTakesIt(t *testing.T) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	var asked atomic.Int64
	server := Server{Target: "http://" + target.Addr().String(), Health: saying(t, &asked), Path: "/ready"}
	addresses, err := Wait(context.Background(), server, time.Minute)
	if err != nil || len(addresses) != 1 || addresses[0].String() != target.Addr().String() || asked.Load() != 3 {
		t.Errorf("%v, %v, asked %d times", addresses, err, asked.Load())
	}
}

func TestATargetThatIsNotThereBehindHAProxyIsNotReady(t *testing.T) {
	var asked atomic.Int64
	target, taken := taking(t, page(nobody))
	server := Server{Target: target, Health: saying(t, &asked), Path: "/ready"}
	_, err := Wait(context.Background(), server, 300*time.Millisecond)
	if !errors.Is(err, ErrNotReachable) || !strings.Contains(err.Error(), "HAProxy says 503") || taken.Load() < 2 {
		t.Errorf("%v, asked %d times", err, taken.Load())
	}
}

func TestATargetThatTakesNoConnectionsIsNotReadyWhateverItsHealthPortSays(t *testing.T) {
	var asked atomic.Int64
	server := Server{Target: "http://127.0.0.1:1", Health: saying(t, &asked), Path: "/ready"}
	_, err := Wait(context.Background(), server, 300*time.Millisecond)
	if !errors.Is(err, ErrNotReachable) || !strings.Contains(err.Error(), "or http://127.0.0.1:1 took no request") || asked.Load() < 3 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

func TestATargetWithAHealthPortIsAskedWhetherItSpeaksHTTP2(t *testing.T) {
	for _, test := range []struct {
		speaks func(*http.Protocols)
		says   string
	}{
		{func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, ""},
		{func(p *http.Protocols) { p.SetHTTP1(true) }, "have it speak HTTP/2 without TLS (h2c, with prior knowledge), or write protocol: http1"},
	} {
		var asked atomic.Int64
		server := Server{
			Target: serving(t, false, test.speaks, 100), Health: saying(t, &asked), Path: "/ready", HTTP2: true, Streams: 1,
		}
		addresses, err := Wait(context.Background(), server, time.Minute)
		if test.says == "" {
			if err != nil || len(addresses) != 1 {
				t.Errorf("%v, %v", addresses, err)
			}
		} else if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v, expected %q", err, test.says)
		}
	}
}
