package generator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/spec"
)

// answerNames has this process ask a DNS that knows every name to be 127.0.0.1, and counts the questions.
func answerNames(t *testing.T) *atomic.Int64 {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	questions := &atomic.Int64{}
	go func() {
		packet := make([]byte, 512)
		for {
			n, from, err := socket.ReadFrom(packet)
			if err != nil {
				return
			}
			var message dnsmessage.Message
			if message.Unpack(packet[:n]) != nil {
				continue
			}
			questions.Add(1)
			message.Response, message.Additionals = true, nil
			if one := message.Questions[0]; one.Type == dnsmessage.TypeA {
				message.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: one.Name, Class: one.Class, TTL: 0},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if packed, err := message.Pack(); err == nil {
				_, _ = socket.WriteTo(packed, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", socket.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = socket.Close()
	})
	return questions
}

// A name is asked for while the generator waits for the server, and never under load, not even for connections
// that are made anew for each request: what a cluster's DNS takes is in no figure.
func TestNoNameIsAskedForUnderLoad(t *testing.T) {
	questions := answerNames(t)
	var beforeLoad atomic.Int64
	var first sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			first.Do(func() { beforeLoad.Store(questions.Load()) })
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	trial, err := spec.Parse(fmt.Sprintf(`{"trial": "demo-trial-001", "target": "http://server.laptime.test.:%d", "waitSeconds": 10,
		"requests": [{"name": "list", "method": "GET", "path": "/", "expectStatus": 200}], "warmupSeconds": 0.2, "timeoutSeconds": 5,
		"load": {"closed": {"connections": 5, "requests": 500, "durationSeconds": null, "keepAlive": false}}}`,
		server.Listener.Addr().(*net.TCPAddr).Port), "")
	if err != nil {
		t.Fatal(err)
	}
	segment, err := trial.Segment("")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := Run(context.Background(), trial, segment, &said, io.Discard); err != nil {
		t.Fatal(err)
	}
	var measured *result.Result
	for line := range bytes.Lines(said.Bytes()) {
		if bytes.HasPrefix(line, []byte(result.LinePrefix)) {
			if measured, err = result.ParseLine(string(line)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if measured == nil || measured.Phases["measured"].Responses != 500 {
		t.Fatalf("no 500 answers:\n%s", said.String())
	}
	if asked := beforeLoad.Load(); asked == 0 || questions.Load() != asked {
		t.Errorf("%d questions before the load, %d at its end", asked, questions.Load())
	}
}
