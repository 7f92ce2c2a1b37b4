package spec

import (
	"strings"
	"testing"
)

func TestALoadSaysItsProtocol(t *testing.T) {
	for load, says := range map[string]string{
		`{"closed":{"connections":2,"requests":9,"keepAlive":true},"protocol":"http2","streams":5}`:       "",
		`{"closed":{"connections":2,"requests":9},"protocol":"http1"}`:                                    "",
		`{"closed":{"connections":2,"requests":9},"protocol":"http3"}`:                                    `"http3"; write http1 or http2`,
		`{"closed":{"connections":2,"requests":9},"streams":2}`:                                           "only with protocol http2",
		`{"closed":{"connections":2,"requests":9,"keepAlive":true},"protocol":"http2","streams":-1}`:      "at least 1",
		`{"closed":{"connections":2,"requests":9},"protocol":"http2"}`:                                    "write keepAlive true, or protocol http1",
		`{"closed":{"connections":61,"requests":9,"keepAlive":true},"protocol":"http2","streams":1000}`:   "more than 60000 users",
		`{"open":{"rate":1,"durationSeconds":1,"maxConnections":9,"keepAlive":false},"protocol":"http2"}`: "keepAlive",
	} {
		trial, err := trialWith(load, "null")
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", load, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: %v, expected %q", load, err, says)
		case says == "" && trial.Load.HTTP2() && trial.Load.Users() != 10:
			t.Errorf("%s: %d users", load, trial.Load.Users())
		}
	}
}

func TestHTTP2HasNoHeadersOfConnections(t *testing.T) {
	closing := `{"name":"r","path":"/","headers":{"TE":"trailers"}}`
	const load = `{"closed":{"connections":1,"requests":1,"keepAlive":true},"protocol":"%"}`
	if _, err := parse(closing, strings.Replace(load, "%", "http2", 1)); err == nil || !strings.Contains(err.Error(), "HTTP/2 has no header TE; leave it out") {
		t.Error(err)
	}
	if _, err := parse(closing, strings.Replace(load, "%", "http1", 1)); err != nil {
		t.Error(err)
	}
}

// With TLS one protocol is offered and no other.
func TestTheProtocolIsOfferedToTheServer(t *testing.T) {
	for protocol, offered := range map[string]string{"http1": "http/1.1", "http2": "h2"} {
		trial, err := Parse(`{"target":"https://x","requests":[{"name":"r","path":"/"}],
			"load":{"closed":{"connections":1,"requests":1,"keepAlive":true},"protocol":"`+protocol+`"}}`, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := trial.Secured().NextProtos; len(got) != 1 || got[0] != offered {
			t.Errorf("%s: %v", protocol, got)
		}
	}
}

// Each stream has a user, who may have begun a session and taken a row.
func TestUsersOfStreamsAreReckonedWith(t *testing.T) {
	const three = login + "," + create + "," + read
	rows := `{"name":"users","use":"once","csv":{"text":"name\n` + strings.Repeat(`ada\n`, 100) + `"}}`
	load := func(requests string) string {
		return `{"closed":{"connections":1,"requests":` + requests + `,"keepAlive":true},"protocol":"http2","streams":10}`
	}
	if err := work(three, rows, shop, load("246")); err != nil {
		t.Error(err)
	}
	if err := work(three, rows, shop, load("247")); err == nil || !strings.Contains(err.Error(), "at most 246") {
		t.Error(err)
	}
}
