package readiness

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serving starts a server that speaks some protocols.
func serving(t *testing.T, secured bool, protocols func(*http.Protocols), streams int) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.Protocols = &http.Protocols{}
	protocols(server.Config.Protocols)
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	if !secured {
		server.Start()
		return server.URL
	}
	server.EnableHTTP2 = server.Config.Protocols.HTTP2()
	server.StartTLS()
	return server.URL
}

func TestAServerIsAskedOverHTTP2BeforeALoadIsSentSo(t *testing.T) {
	one := func(p *http.Protocols) { p.SetHTTP1(true) }
	both := func(p *http.Protocols) { p.SetHTTP1(true); p.SetHTTP2(true); p.SetUnencryptedHTTP2(true) }
	two := func(p *http.Protocols) { p.SetHTTP2(true); p.SetUnencryptedHTTP2(true) }
	for _, test := range []struct {
		secured   bool
		protocols func(*http.Protocols)
		streams   int
		says      string
	}{
		{false, two, 100, ""},
		{false, both, 100, ""},
		{true, both, 100, ""},
		{true, two, 100, ""},
		{false, one, 1, "have it speak HTTP/2 without TLS (h2c, with prior knowledge), or write protocol: http1"},
		{true, one, 1, "have it choose h2 by ALPN, or write protocol: http1"},
		{false, two, 101, "takes 100 streams at once of a connection, and the load has 101; write streams: 100, and more connections"},
		{true, two, 101, "write streams: 100"},
	} {
		target := serving(t, test.secured, test.protocols, 100)
		server := Server{Target: target, Path: "/", HTTP2: true, Streams: test.streams}
		if test.secured {
			server.TLS = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
		}
		began := time.Now()
		addresses, err := Wait(context.Background(), server, time.Minute)
		if test.says == "" {
			if err != nil || len(addresses) != 1 {
				t.Errorf("%+v: %v, %v", test, addresses, err)
			}
			continue
		}
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v, expected %q", err, test.says)
		}
		if took := time.Since(began); took > 40*time.Second {
			t.Errorf("%s until it was said", took)
		}
	}
}

// A server that knows nothing of ALPN takes the connection, and answers what it can.
func TestAServerWithoutALPNIsToldWhatToWriteAtOnce(t *testing.T) {
	donor := httptest.NewTLSServer(nil)
	defer donor.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: donor.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = connection.Close() }()
				_, _ = connection.Read(make([]byte, 4096))
				_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				_, _ = connection.Read(make([]byte, 4096))
			}()
		}
	}()
	server := Server{
		Target: "https://" + listener.Addr().String(), Path: "/", HTTP2: true, Streams: 1,
		TLS: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}},
	}
	_, err = Wait(context.Background(), server, time.Minute)
	if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "does not choose h2") {
		t.Error(err)
	}
}

func TestAServerThatIsNotThereIsNotSaidToSpeakAnotherProtocol(t *testing.T) {
	server := Server{Target: "http://127.0.0.1:1", Path: "/", HTTP2: true, Streams: 1}
	if _, err := Wait(context.Background(), server, 100*time.Millisecond); !errors.Is(err, ErrNotReachable) {
		t.Error(err)
	}
}
