package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// The whole way of a load over HTTP/2, as a Job runs it, to a server that speaks both on one port.
func TestBuiltInTrialOverHTTP2(t *testing.T) {
	t.Parallel()
	var older, requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			older.Add(1)
		}
		if r.URL.Path != "/healthz" {
			requests.Add(1)
			_, _ = io.WriteString(w, "hello")
		}
	}))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 50}
	server.Start()
	defer server.Close()
	load := `{"closed":{"connections":2,"requests":500,"keepAlive":true,"connectSeconds":0.05},"protocol":"http2","streams":%}`
	out := k6(t, trial(t, server.URL, strings.Replace(load, "%", "5", 1), `,"waitSeconds":5,"warmupSeconds":0.2`), nil, "trial.js")
	if out.code != 0 || out.result == nil {
		t.Fatalf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
	warm, p := out.result.Phases["warmup"], out.result.Phases["measured"]
	if p.Requests != 500 || p.Responses != 500 || warm.Requests+500 != requests.Load() || older.Load() != 0 {
		t.Errorf("%d requests, %d answers, %d in warm-up; the server saw %d, %d over HTTP/1.1",
			p.Requests, p.Responses, warm.Requests, requests.Load(), older.Load())
	}
	if decode(t, p.Endpoints["list"].Connect).TotalCount() != 2 {
		t.Error("expected the time of two connections")
	}
	out = k6(t, trial(t, server.URL, strings.Replace(load, "%", "51", 1), `,"waitSeconds":5`), nil, "trial.js")
	if out.code != 5 || out.result != nil || !strings.Contains(out.stdout, `{"reason":"ProtocolNotSpoken"`) ||
		!strings.Contains(out.stdout, "write streams: 50") {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}

func TestAServerOfHTTP1EndsATrialOverHTTP2WithItsReason(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	load := `{"closed":{"connections":1,"requests":10,"keepAlive":true},"protocol":"http2"}`
	out := k6(t, trial(t, server.URL, load, `,"waitSeconds":60`), nil, "trial.js")
	if out.code != 5 || out.result != nil || !strings.Contains(out.stdout, "or write protocol: http1") {
		t.Errorf("exit code %d\n%s\n%s", out.code, out.stdout, out.stderr)
	}
}
