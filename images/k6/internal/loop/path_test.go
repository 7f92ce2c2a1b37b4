package loop

import (
	"context"
	"testing"
	"time"
)

func TestTheKernelSaysHowFarTheServerIs(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		address, requests := "", int64(2000)
		if http2 {
			address, _, _, _ = serve2(t, false, 100, hello)
		} else {
			server, _, _ := serve(t, hello)
			address = server.Listener.Addr().String()
		}
		plan := Plan{Connections: 4, Total: requests, KeepAlive: true, HTTP2: http2}
		_, cost, err := Run(context.Background(), planFor(t, address, plan))
		if err != nil {
			t.Fatal(err)
		}
		path := cost.Path
		if path.Shortest <= 0 || path.Shortest > 100*time.Millisecond {
			t.Errorf("HTTP/2 %v: %v there and back on this machine", http2, path.Shortest)
		}
		if path.Sent < requests {
			t.Errorf("HTTP/2 %v: %d segments for %d requests", http2, path.Sent, requests)
		}
	}
}

func TestOfConnectionsForOneRequestEverySixteenthIsAsked(t *testing.T) {
	server, _, _ := serve(t, hello)
	_, cost, err := Run(context.Background(), planFor(t, server.Listener.Addr().String(), Plan{Connections: 2, Total: 1600}))
	if err != nil {
		t.Fatal(err)
	}
	if cost.Path.Shortest <= 0 || cost.Path.Sent < 50 || cost.Path.Sent > 200 {
		t.Errorf("%+v of 1,600 connections", cost.Path)
	}
}

func TestWhatTheKernelDoesNotKnowIsLeftOut(t *testing.T) {
	var path Path
	path.see(-1)
	path.add(Path{})
	if path != (Path{}) {
		t.Errorf("%+v", path)
	}
	path.add(Path{Shortest: 3, Sent: 1})
	path.add(Path{Shortest: 2, SentAgain: 1, OutOfOrder: 4})
	path.add(Path{})
	if path != (Path{Shortest: 2, Sent: 1, SentAgain: 1, OutOfOrder: 4}) {
		t.Errorf("%+v", path)
	}
}
