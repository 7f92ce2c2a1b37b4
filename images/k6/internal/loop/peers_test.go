package loop

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"laptime.dev/k6/internal/session"
)

// peer is one connection of a server that does what a test says.
type peer struct {
	net.Conn
	*http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	opened  int64 // this connection, from 1
}

// peers serves connections with what behave does; none: they are closed without a word.
func peers(t *testing.T, greeting []http2.Setting, behave func(*peer)) (address string, connections *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connections = &atomic.Int64{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			p := &peer{Conn: connection, Framer: http2.NewFramer(connection, connection), opened: connections.Add(1)}
			p.AllowIllegalWrites = true
			p.encoder = hpack.NewEncoder(&p.block)
			go func() {
				defer func() { _ = connection.Close() }()
				if _, err := io.ReadFull(connection, make([]byte, len(http2.ClientPreface))); err != nil {
					return
				}
				if greeting != nil {
					_ = p.WriteSettings(greeting...)
				}
				behave(p)
			}()
		}
	}()
	return listener.Addr().String(), connections
}

// requests calls answer with the stream of each request, its head and body read.
func (p *peer) requests(answer func(stream uint32)) {
	for {
		frame, err := p.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				answer(f.StreamID)
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				answer(f.StreamID)
			}
		}
	}
}

// fields is a block of header fields: names and values in turn.
func (p *peer) fields(fields ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// head sends header fields, the whole of them in one frame.
func (p *peer) head(stream uint32, ends bool, fields ...string) {
	_ = p.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: p.fields(fields...), EndHeaders: true, EndStream: ends,
	})
}

// good is an answer as it should be.
func (p *peer) good(stream uint32) {
	p.head(stream, false, ":status", "200", "content-length", "5", "x-of", "this")
	_ = p.WriteData(stream, true, []byte("hello"))
}

var noSettings = []http2.Setting{}

// posting sends a body of so many bytes with each request.
func posting(t *testing.T, size int) *session.Work {
	t.Helper()
	body := strings.Repeat("b", size)
	return workOf(t, []session.Request{{
		Name: "list", Method: "POST", Target: "http://test", Path: "/", Body: &body, KeepAlive: true,
	}}, nil, nil)
}

func TestBrokenAnswersOverHTTP2AreCountedByKind(t *testing.T) {
	fill := strings.Repeat("x", 60_000)
	for name, test := range map[string]struct {
		kind   string
		answer func(p *peer, stream uint32)
	}{
		"as it should be": {"", (*peer).good},
		"no length, padding": {"", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200")
			_ = p.WriteDataPadded(s, true, []byte("hello"), make([]byte, 99))
		}},
		"a body in pieces": {"", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "content-length", "10")
			_ = p.WriteData(s, false, []byte("hello"))
			_ = p.WriteData(s, false, nil)
			_ = p.WriteData(s, true, []byte("hello"))
		}},
		"interim answers": {"", func(p *peer, s uint32) {
			p.head(s, false, ":status", "103", "link", "a")
			p.head(s, false, ":status", "100")
			p.good(s)
		}},
		"trailers": {"", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200")
			_ = p.WriteData(s, false, []byte("hello"))
			p.head(s, true, "x-sum", "1")
		}},
		"a head in pieces": {"", func(p *peer, s uint32) {
			block := p.fields(":status", "200", "x-long", fill)
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: block[:1], EndStream: true})
			for rest := block[1:]; len(rest) > 0; {
				n := min(len(rest), 9999)
				_ = p.WriteContinuation(s, n == len(rest), rest[:n])
				rest = rest[n:]
			}
		}},
		"padding and a priority": {"", func(p *peer, s uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{
				StreamID: s, BlockFragment: p.fields(":status", "200"), EndHeaders: true, PadLength: 9,
				Priority: http2.PriorityParam{StreamDep: s + 2, Weight: 7},
			})
			_ = p.WriteData(s, true, []byte("hello"))
		}},
		"frames nobody knows": {"", func(p *peer, s uint32) { _ = p.WriteRawFrame(0x77, 0, s, []byte("?")); p.good(s) }},
		"frames of streams that have ended": {"", func(p *peer, s uint32) {
			p.good(s)
			_ = p.WriteWindowUpdate(s, 9)
			_ = p.WriteRSTStream(s, http2.ErrCodeNo)
			_ = p.WriteData(s, true, []byte("more"))
			p.head(s, true, ":status", "200", "x-other", "that")
		}},
		"another status":        {"status", func(p *peer, s uint32) { p.head(s, true, ":status", "503") }},
		"no status":             {"body", func(p *peer, s uint32) { p.head(s, true, "x-of", "this") }},
		"two of them":           {"body", func(p *peer, s uint32) { p.head(s, true, ":status", "200", ":status", "200") }},
		"one that is none":      {"body", func(p *peer, s uint32) { p.head(s, true, ":status", "2xx") }},
		"one that is too late":  {"body", func(p *peer, s uint32) { p.head(s, true, "x-of", "this", ":status", "200") }},
		"one in trailers":       {"body", func(p *peer, s uint32) { p.head(s, false, ":status", "200"); p.head(s, true, ":status", "200") }},
		"a request's":           {"body", func(p *peer, s uint32) { p.head(s, true, ":status", "200", ":path", "/") }},
		"an upgrade":            {"body", func(p *peer, s uint32) { p.head(s, false, ":status", "101") }},
		"capital letters":       {"body", func(p *peer, s uint32) { p.head(s, true, ":status", "200", "X-Of", "this") }},
		"a connection's":        {"body", func(p *peer, s uint32) { p.head(s, true, ":status", "200", "connection", "close") }},
		"a length that is none": {"body", func(p *peer, s uint32) { p.head(s, true, ":status", "200", "content-length", "-1") }},
		"less than announced": {"body", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "content-length", "6")
			_ = p.WriteData(s, true, []byte("hello"))
		}},
		"more than announced": {"body", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "content-length", "4")
			_ = p.WriteData(s, true, []byte("hello"))
		}},
		"a body without a head": {"body", func(p *peer, s uint32) { _ = p.WriteData(s, true, []byte("hello")) }},
		"trailers, and no end":  {"body", func(p *peer, s uint32) { p.head(s, false, ":status", "200"); p.head(s, false, "x-sum", "1") }},
		"a window too wide":     {"body", func(p *peer, s uint32) { _ = p.WriteWindowUpdate(s, 1<<31-1) }},
		"a huge head": {"body", func(p *peer, s uint32) {
			// Each after the first one is a byte, and the list 300 KB.
			p.head(s, true, append([]string{":status", "200"}, slices.Repeat([]string{"a", fill[:3000]}, 100)...)...)
		}},
		"a field that is huge": {"body", func(p *peer, s uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte{0x40, 1, 'a', 0x7f, 0xff, 0xff, 0xff, 0x7f}})
			for range 40 {
				_ = p.WriteContinuation(s, false, make([]byte, 16<<10))
			}
		}},
		"no table": {"body", func(p *peer, s uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, s, []byte{0xff, 0xff, 0x01})
		}},
		"a table too large": {"body", func(p *peer, s uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, s, []byte{0x3f, 0xe2, 0xff, 0x03})
		}},
		"a head that is not over": {"body", func(p *peer, s uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: p.fields(":status", "200")})
			_ = p.WritePing(false, [8]byte{})
		}},
		"a body in the middle of a head": {"body", func(p *peer, s uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: p.fields(":status", "200")})
			_ = p.WriteData(s, true, []byte("hello"))
		}},
		"a head in the middle of a head": {"body", func(p *peer, s uint32) {
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: p.fields(":status", "200")})
			p.head(s, true, ":status", "200")
		}},
		"frames of no stream": {"body", func(p *peer, s uint32) { _ = p.WriteData(0, true, []byte("hello")) }},
		"a promise": {"body", func(p *peer, s uint32) {
			_ = p.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, BlockFragment: p.fields(":method", "GET"), EndHeaders: true})
		}},
		"a stream nobody began":   {"body", func(p *peer, s uint32) { p.head(s+200, true, ":status", "200") }},
		"a stream of the server":  {"body", func(p *peer, s uint32) { p.head(2, true, ":status", "200") }},
		"a frame too long":        {"body", func(p *peer, s uint32) { _ = p.WriteRawFrame(http2.FrameData, 0, s, make([]byte, 1<<15)) }},
		"settings that are wrong": {"body", func(p *peer, s uint32) { _ = p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}) }},
		"not HTTP/2 any more":     {"body", func(p *peer, s uint32) { _, _ = io.WriteString(p, "HTTP/1.1 200 OK\r\n\r\n") }},
		"reset":                   {"reset", func(p *peer, s uint32) { _ = p.WriteRSTStream(s, http2.ErrCodeInternal) }},
		"refused, always":         {"reset", func(p *peer, s uint32) { _ = p.WriteRSTStream(s, http2.ErrCodeRefusedStream) }},
		"reset under the answer":  {"reset", func(p *peer, s uint32) { p.head(s, false, ":status", "200"); _ = p.WriteRSTStream(s, http2.ErrCodeNo) }},
		"closed":                  {"reset", func(p *peer, _ uint32) { _ = p.Close() }},
		"closed under the answer": {"reset", func(p *peer, s uint32) { p.head(s, false, ":status", "200"); _ = p.Close() }},
		"closed under a frame":    {"reset", func(p *peer, s uint32) { _, _ = p.Write([]byte{0, 0, 9, 1}); _ = p.Close() }},
	} {
		address, _ := peers(t, noSettings, func(p *peer) { p.requests(func(stream uint32) { test.answer(p, stream) }) })
		phase := drive(t, address, Plan{
			HTTP2: true, Connections: 2, Total: 12, KeepAlive: true, Threads: 1,
			Requests: []Request{{Name: "list", ExpectStatus: 200}},
		})
		want := int64(12)
		if test.kind == "" {
			want = 0
		}
		only(t, phase, test.kind, want)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestWhatIsNotHTTP2AtAllIsCounted(t *testing.T) {
	for says, kind := range map[string]string{
		"": "reset",
		"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n": "body",
		"SSH-2.0-OpenSSH\r\n":                  "body",
		strings.Repeat("\x00", 100):            "body", // frames of data, before settings
		"\x00\x00\x00\x04\x01\x00\x00\x00\x00": "body", // settings are acknowledged that were never sent
	} {
		address, _ := peers(t, nil, func(p *peer) { _, _ = io.WriteString(p, says); _, _ = p.ReadFrame() })
		phase := drive(t, address, Plan{
			HTTP2: true, Connections: 2, Streams: 2, Total: 12, KeepAlive: true,
			Requests: []Request{{Name: "list", ExpectStatus: 200}},
		})
		only(t, phase, kind, 12)
		if t.Failed() {
			t.Fatalf("%q", says)
		}
	}
}

// Of each connection every tenth stream is reset: those and no others are errors, and the connection stays.
func TestAResetStreamIsOneError(t *testing.T) {
	address, connections := peers(t, noSettings, func(p *peer) {
		n := 0
		p.requests(func(stream uint32) {
			if n++; n%10 == 0 {
				_ = p.WriteRSTStream(stream, http2.ErrCodeCancel)
				return
			}
			p.good(stream)
		})
	})
	phase := drive(t, address, Plan{HTTP2: true, Connections: 1, Streams: 4, Total: 200, KeepAlive: true})
	only(t, phase, "reset", 20)
	if phase.Responses != 180 || connections.Load() != 1 {
		t.Errorf("%d answers on %d connections", phase.Responses, connections.Load())
	}
}

// What a server says it has not worked on is sent once more, whatever the method.
func TestARefusedStreamIsSentOnceMore(t *testing.T) {
	address, connections := peers(t, noSettings, func(p *peer) {
		n := 0
		p.requests(func(stream uint32) {
			if n++; n%10 == 0 {
				_ = p.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
				return
			}
			p.good(stream)
		})
	})
	phase := drive(t, address, Plan{
		HTTP2: true, Connections: 1, Total: 90, KeepAlive: true, Requests: []Request{{Name: "list", ExpectStatus: 200}},
		Work: posting(t, 10),
	})
	only(t, phase, "", 0)
	if phase.Retried != 9 && phase.Retried != 10 || connections.Load() != 1 {
		t.Errorf("%d sent again on %d connections", phase.Retried, connections.Load())
	}
}

// A server that says goodbye answers what it has begun; all else goes elsewhere, and nothing is lost.
func TestGoodbyeInTheMiddleLosesNothing(t *testing.T) {
	var answered atomic.Int64
	address, connections := peers(t, noSettings, func(p *peer) {
		var held []uint32
		n := 0
		p.requests(func(stream uint32) {
			n++
			switch {
			case n < 8:
				answered.Add(1)
				p.good(stream)
			case n < 11:
				held = append(held, stream)
			case n == 11:
				// This one it has not begun; those that it holds it answers, the last one first.
				_ = p.WriteGoAway(stream-2, http2.ErrCodeNo, nil)
				for i := range held {
					answered.Add(1)
					p.good(held[len(held)-1-i])
				}
			}
		})
	})
	phase := drive(t, address, Plan{
		HTTP2: true, Connections: 1, Streams: 4, Total: 100, KeepAlive: true, Threads: 1, Timeout: 2 * time.Second,
		Requests: []Request{{Name: "list", ExpectStatus: 200}},
	})
	// Of the last connection it may hold some for ever.
	lost := phase.Errors["timeout"]
	only(t, phase, "timeout", lost)
	if lost > 3 || answered.Load() != phase.Responses || connections.Load() < 9 || phase.Retried < 8 {
		t.Errorf("%d answers of %d, on %d connections, %d sent again, %v", phase.Responses, answered.Load(), connections.Load(), phase.Retried, phase.Errors)
	}
}

func TestAServerThatSaysGoodbyeAtOnceIsNotAskedForEver(t *testing.T) {
	address, connections := peers(t, noSettings, func(p *peer) {
		p.requests(func(uint32) { _ = p.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) })
	})
	phase := drive(t, address, Plan{HTTP2: true, Connections: 1, Streams: 2, Total: 20, KeepAlive: true})
	only(t, phase, "reset", 20)
	if n := connections.Load(); n > 40 {
		t.Errorf("%d connections for 20 requests", n)
	}
}

// Bodies go out as far as windows open, and not at all where none does.
func TestWindowsOfTheServerAreHonoured(t *testing.T) {
	const size, first = 100_000, 65_535
	for _, how := range []string{"updates", "settings", "never"} {
		var got atomic.Int64
		address, _ := peers(t, noSettings, func(p *peer) {
			all, each, initial := int64(first), map[uint32]int64{}, int64(first)
			for {
				frame, err := p.ReadFrame()
				if err != nil {
					return
				}
				if begun, is := frame.(*http2.HeadersFrame); is {
					each[begun.StreamID] = 0
				}
				f, is := frame.(*http2.DataFrame)
				if !is {
					continue
				}
				n := int64(f.Length)
				got.Add(n)
				all -= n
				each[f.StreamID] -= n
				if all < 0 || each[f.StreamID]+initial < 0 {
					t.Errorf("%s: %d and %d bytes more than it takes", how, -all, -each[f.StreamID]-initial)
				}
				if f.StreamEnded() {
					p.good(f.StreamID)
				}
				if how == "never" {
					continue
				}
				all += n
				_ = p.WriteWindowUpdate(0, uint32(n))
				if how == "updates" {
					each[f.StreamID] += n
					_ = p.WriteWindowUpdate(f.StreamID, uint32(n))
				} else if initial == first {
					initial = size
					_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: size})
				}
			}
		})
		timeout := time.Minute
		if how == "never" {
			timeout = 500 * time.Millisecond
		}
		phase := drive(t, address, Plan{
			HTTP2: true, Connections: 1, Streams: 2, Total: 4, KeepAlive: true, Timeout: timeout, Work: posting(t, size),
		})
		if how == "never" {
			only(t, phase, "timeout", 4)
			continue
		}
		only(t, phase, "", 0)
		if got.Load() != 4*size {
			t.Errorf("%s: %d bytes, expected %d", how, got.Load(), 4*size)
		}
	}
}

// A server that ends the connection after each answer: kept ones are made anew, what is under way is
// sent once more where that does no harm.
func TestAServerThatEndsItsConnections(t *testing.T) {
	address, connections := peers(t, noSettings, func(p *peer) {
		n := 0
		p.requests(func(stream uint32) {
			if n++; n > 5 {
				_ = p.Close()
				return
			}
			p.good(stream)
		})
	})
	for _, idempotent := range []bool{true, false} {
		before := connections.Load()
		phase := drive(t, address, Plan{
			HTTP2: true, Connections: 1, Total: 60, KeepAlive: true,
			Requests: []Request{{Name: "list", ExpectStatus: 200, Idempotent: idempotent}},
		})
		if idempotent {
			only(t, phase, "", 0)
			if phase.Retried != 11 {
				t.Errorf("%d sent again, expected 11", phase.Retried)
			}
		} else {
			only(t, phase, "reset", 10)
		}
		if n := connections.Load() - before; n < 10 || n > 12 {
			t.Errorf("%d connections", n)
		}
	}
}

// Tables of header fields: one as small as can be, and one that changes.
func TestTheServersTableOfHeadersIsHonoured(t *testing.T) {
	for _, greeting := range [][]http2.Setting{{{ID: http2.SettingHeaderTableSize, Val: 0}}, noSettings} {
		address, _ := peers(t, greeting, func(p *peer) {
			decoder := hpack.NewDecoder(4096, nil)
			n := 0
			for {
				frame, err := p.ReadFrame()
				if err != nil {
					return
				}
				if settings, is := frame.(*http2.SettingsFrame); is && settings.IsAck() && n >= 5 {
					decoder.SetMaxDynamicTableSize(60) // of two fields one is gone
				}
				f, is := frame.(*http2.HeadersFrame)
				if !is {
					continue
				}
				fields, err := decoder.DecodeFull(f.HeaderBlockFragment())
				if err != nil || len(fields) < 5 || fields[0].Value != "GET" {
					_ = p.WriteRSTStream(f.StreamID, http2.ErrCodeCompression)
					continue
				}
				if n++; n == 5 {
					decoder.SetAllowedMaxDynamicTableSize(60)
					_ = p.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 60})
				}
				p.good(f.StreamID)
			}
		})
		phase := drive(t, address, Plan{HTTP2: true, Connections: 1, Total: 50, KeepAlive: true, ConnectOver: 50 * time.Millisecond})
		only(t, phase, "", 0)
	}
}

// It is told that a ping came.
func TestPingsAreAnswered(t *testing.T) {
	var answered atomic.Int64
	address, _ := peers(t, noSettings, func(p *peer) {
		for {
			frame, err := p.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.PingFrame:
				if f.IsAck() && f.Data == [8]byte{1, 2, 3} {
					answered.Add(1)
				}
			case *http2.HeadersFrame:
				_ = p.WritePing(false, [8]byte{1, 2, 3})
				p.good(f.StreamID)
			}
		}
	})
	phase := drive(t, address, Plan{HTTP2: true, Connections: 1, Total: 20, KeepAlive: true})
	only(t, phase, "", 0)
	if answered.Load() < 19 {
		t.Errorf("%d of 20 pings were answered", answered.Load())
	}
}

// A server that stands still: the connection is made anew after a time-out in which nothing came.
func TestAConnectionThatIsDeadIsLeft(t *testing.T) {
	address, connections := peers(t, noSettings, func(p *peer) {
		if p.opened == 1 {
			_, _ = io.Copy(io.Discard, p)
			return
		}
		p.requests(p.good)
	})
	phase := drive(t, address, Plan{HTTP2: true, Connections: 1, Streams: 3, Total: 30, KeepAlive: true, Timeout: 2 * time.Second})
	only(t, phase, "timeout", 3)
	if connections.Load() != 2 {
		t.Errorf("%d connections, expected 2", connections.Load())
	}
}
