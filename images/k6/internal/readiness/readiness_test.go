package readiness

import (
	"context"
	"errors"
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

func TestATargetWithAHealthPortIsOnlyConnectedTo(t *testing.T) {
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

func TestATargetThatTakesNoConnectionsIsNotReadyWhateverItsHealthPortSays(t *testing.T) {
	var asked atomic.Int64
	server := Server{Target: "http://127.0.0.1:1", Health: saying(t, &asked), Path: "/ready"}
	_, err := Wait(context.Background(), server, 300*time.Millisecond)
	if !errors.Is(err, ErrNotReachable) || !strings.Contains(err.Error(), "or http://127.0.0.1:1 took no connection") || asked.Load() < 3 {
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
