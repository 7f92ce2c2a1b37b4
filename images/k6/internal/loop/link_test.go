package loop

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"laptime.dev/k6/internal/session"
)

// What an answer in two frames and the next request cost, without the kernel, by what is asked of the body.
func BenchmarkAnswerOverHTTP2(b *testing.B) {
	for check, name := range []string{NoCheck: "noCheck", NonEmpty: "nonEmpty", Same: "same"} {
		b.Run(name, func(b *testing.B) { answerOverHTTP2(b, Check(check)) })
	}
}

func answerOverHTTP2(b *testing.B, check Check) {
	b.Helper()
	work, err := session.New([]session.Request{{Name: "list", Method: "GET", Target: "http://test", Path: "/", KeepAlive: true}}, nil,
		[]session.Session{{Name: "list", Weight: 1, Steps: []string{"list"}}})
	if err != nil {
		b.Fatal(err)
	}
	s := &shared{epoch: time.Now(), plan: &Plan{
		HTTP2: true, Connections: 1, KeepAlive: true, Timeout: time.Minute, Work: work,
		Requests: []Request{{Name: "list", ExpectStatus: 200, Check: check}},
	}}
	e, err := newEngine(s, 0, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	e.begin(0, []string{"list"})
	l := newLink(0, 1)
	l.fd, l.state, l.corked, l.greeted = 1<<20, idle, true, true // nothing is written
	e.places[0] = l
	e.issue(e.pop(), e.now(), e.now())
	var answer, block bytes.Buffer
	framer, encoder := http2.NewFramer(&answer, nil), hpack.NewEncoder(&block)
	fields := []hpack.HeaderField{
		{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/json"},
		{Name: "content-length", Value: "65"}, {Name: "date", Value: "Wed, 25 Nov 2026 03:00:00 GMT"},
	}
	b.ReportAllocs()
	for b.Loop() {
		answer.Reset()
		block.Reset()
		for _, f := range fields {
			_ = encoder.WriteField(f)
		}
		stream := e.conns[0].stream
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
		head := answer.Len()
		_ = framer.WriteData(stream, true, make([]byte, 65))
		for _, piece := range [][]byte{answer.Bytes()[:head], answer.Bytes()[head:]} {
			if err := e.feed(l, piece, e.moment(0)); err != nil {
				b.Fatal(err)
			}
		}
		l.out = l.out[:0]
	}
	if e.completed < int64(b.N) {
		b.Fatal(e.completed)
	}
}
