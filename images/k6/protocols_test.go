package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"laptime.dev/k6/internal/result"
)

// cost checks that a generator knows what it cost, whatever its script spoke.
func cost(t *testing.T, r *result.Result) {
	t.Helper()
	if of := r.Generator; of.CPUSeconds <= 0 || of.WallSeconds <= 0 {
		t.Errorf("%+v", of)
	}
}

// A WebSocket is no request: what it is for, and when an answer has come, only its script knows. It is in k6's own
// metrics, and those are what k6 says.
func TestWebSocketsAreInK6sOwnMetrics(t *testing.T) {
	t.Parallel()
	server := serve(t, echo)
	raw := filepath.Join(t.TempDir(), "raw.json")
	out, k6s := own(t, []string{"TARGET=" + server.URL}, "testdata/talk.js", "--env=WS_URL=ws"+strings.TrimPrefix(server.URL, "http")+"/talk", "--out=json="+raw)
	read(t, raw).compare(t, out.result, k6s)
	cost(t, out.result)
	said := out.result.Script
	for name, want := range map[string]float64{"ws_sessions": 20, "ws_msgs_sent": 120 /* k6 counts the end */, "ws_msgs_received": 100} {
		if said.Metrics[name] == nil || said.Metrics[name].Sum != want {
			t.Errorf("%s: %+v", name, said.Metrics[name])
		}
	}
	for name, want := range map[string]int64{"ws_connecting": 20, "ws_session_duration": 20, "heard_after": 100} {
		if said.Metrics[name] == nil || said.Metrics[name].Samples != want {
			t.Errorf("%s: %+v", name, said.Metrics[name])
		}
	}
	if check := said.Checks["the same word"]; said.Iterations != 20 || check.Passed != 100 || check.Failed != 0 {
		t.Errorf("%d iterations, %+v", said.Iterations, check)
	}
	if p := out.result.Phases["measured"]; p.Requests != 0 || p.LastResponseAt <= p.FirstRequestAt || p.BytesReceived == 0 || len(said.OtherHosts) != 0 || len(said.Thresholds) != 2 {
		t.Errorf("%d requests, %d bytes, others %v, thresholds %v", p.Requests, p.BytesReceived, said.OtherHosts, said.Thresholds)
	}
}

// A call of gRPC is a request of the server, with an endpoint of its own; a stream is not, nor is what k6 itself asks.
func TestCallsOfGRPCAreRequests(t *testing.T) {
	t.Parallel()
	address := speakGRPC(t, "testdata/echo.proto")
	raw := filepath.Join(t.TempDir(), "raw.json")
	environment := []string{"TARGET=http://" + address, "LAPTIME_WARMUP_SECONDS=0"}
	out, k6s := own(t, environment, "testdata/calls.js", "--env=GRPC_ADDR="+address, "--env=STREAMS=1", "--env=WRONG=4", "--out=json="+raw)
	read(t, raw).compare(t, out.result, k6s)
	cost(t, out.result)
	p, said := out.result.Phases["measured"], out.result.Script
	wrong := said.Checks["the same word"].Failed
	if p.Requests != 100 || wrong == 0 || p.Errors["timeout"] != wrong || p.Responses != 100-wrong || len(said.OtherHosts) != 0 {
		t.Errorf("%d requests, %d right, errors %v, checks %+v, others %v", p.Requests, p.Responses, p.Errors, said.Checks["the same word"], said.OtherHosts)
	}
	if call := p.Endpoints["/echo.Echo/Say"]; len(p.Endpoints) != 1 || call == nil || decode(t, call.Latency).TotalCount() != 100-wrong {
		t.Errorf("%+v", p.Endpoints)
	}
	if m := said.Metrics; m["grpc_streams"].Sum != 100 || m["grpc_streams_msgs_received"].Sum != 300 || m["grpc_req_duration"].Samples != 200 {
		t.Errorf("%+v, %+v, %+v", m["grpc_streams"], m["grpc_streams_msgs_received"], m["grpc_req_duration"])
	}
	if said.Checks["the same word in a stream"].Passed != 300 || said.RequestSeconds <= 0 {
		t.Errorf("%+v, requests took %v s", said.Checks["the same word in a stream"], said.RequestSeconds)
	}
}

// Who answers a call is told by the address in its URL, which has no scheme.
func TestCallsOfGRPCToAnotherHostAreCountedApart(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	other := speakGRPC(t, "testdata/echo.proto")
	out, _ := own(t, []string{"TARGET=" + server.URL}, "testdata/calls.js", "--env=GRPC_ADDR="+other, "--env=WRONG=14")
	there := out.result.Script.OtherHosts[other]
	if wrong := out.result.Script.Checks["the same word"].Failed; there == nil || there.Requests != 100 || there.Errors != wrong || wrong == 0 {
		t.Errorf("%+v, checks %+v", out.result.Script.OtherHosts, out.result.Script.Checks)
	}
	if p := out.result.Phases["measured"]; p.Requests != 0 {
		t.Errorf("%d requests of the server", p.Requests)
	}
}
