package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// start runs the program with one link to an address and gives the link's port.
func start(t *testing.T, to string, delay time.Duration) int {
	t.Helper()
	wanted := configuration{
		HealthPort: freePort(t),
		Links:      []link{{Port: freePort(t), To: to, DelayMs: int(delay.Milliseconds())}},
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, wanted) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for {
		response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", wanted.HealthPort))
		if err == nil {
			_ = response.Body.Close()
			return wanted.Links[0].Port
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestEveryRoundTripTakesTheDelayLongerAndNotTwice(t *testing.T) {
	const delay = time.Second
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	url := fmt.Sprintf("http://127.0.0.1:%d", start(t, server.Listener.Addr().String(), delay))
	body := strings.Repeat("x", 1<<20)
	// A large answer is delayed as a whole, not piece by piece.
	fastest := time.Hour
	for range 5 {
		began := time.Now()
		response, err := http.Post(url, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		echo, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(echo) != body {
			t.Fatalf("%d bytes came back, %v", len(echo), err)
		}
		took := time.Since(began)
		if took < delay {
			t.Errorf("a round trip took %v", took)
		}
		fastest = min(fastest, took)
		if fastest < 2*delay {
			break
		}
	}
	if fastest > 2*delay {
		t.Errorf("the fastest of five round trips took %v", fastest)
	}
}

func TestAServerThatClosesIsSeenToClose(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "bye\n")
			_ = conn.Close()
		}
	}()
	port := start(t, listener.Addr().String(), 10*time.Millisecond)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text, err := io.ReadAll(bufio.NewReader(conn))
	if err != nil || string(text) != "bye\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":           "EOF",
		`{}`:         "name at least one",
		`{"link":1}`: "unknown field",
		`{"links":[{"port":1,"to":"nowhere","delayMs":1}]}`:                   "links[0].to",
		`{"links":[{"port":1,"to":"a:1","delayMs":-1}]}`:                      "links[0].delayMs",
		`{"links":[{"port":1,"to":"a:1","delayMs":10001}]}`:                   "links[0].delayMs",
		`{"links":[{"port":0,"to":"a:1","delayMs":1}]}`:                       "links[0].port",
		`{"links":[{"port":7,"to":"a:1","delayMs":1},{"port":7,"to":"b:1"}]}`: "links[1].port",
		`{"healthPort":7,"links":[{"port":7,"to":"a:1","delayMs":1}]}`:        "links[0].port",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", text, err, says)
		}
	}
	if _, err := parse(`{"healthPort":8080,"links":[{"port":8001,"to":"demo-haproxy:8001","delayMs":22}]}`); err != nil {
		t.Error(err)
	}
}
