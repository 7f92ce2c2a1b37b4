package loop

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/result"
)

// link is a connection that speaks HTTP/2. Frames are read and written by http2.Framer, header fields by
// hpack; what they mean is here, and what becomes of users in streams.go.
type link struct {
	id       int32 // by which epoll knows it
	gen      int32
	place    int
	fd       int
	secure   *secure // nil: no TLS
	state    connState
	writable bool // epoll reports when the socket takes bytes
	corked   bool // what is to be sent waits until all that was read is dealt with
	early    bool // opened before the load begins
	served   bool // it has carried an answer, or was there before it was needed
	leaving  bool // no stream is begun any more; it ends with those that are there
	greeted  bool // the server's settings have come
	halfway  bool // a head is not over: more of it, and nothing else, must follow
	began    int64
	set      int64 // connection set-up time, until the first stream has it
	heard    int64 // when something of an answer was read last
	disorder uint32

	framer  *http2.Framer
	source  source // of the framer
	in      []byte // an incomplete frame
	out     sink   // what the socket is to take
	encoder *hpack.Encoder
	block   sink          // header fields of a request
	ready   []readyFields // those of requests that are always the same, by endpoints
	table   int           // another one each time that of the encoder may have changed
	decoder *hpack.Decoder
	head    responseHead

	streams map[uint32]int32 // users by their streams
	waiting []int32          // users whose requests have no stream yet
	blocked []uint32         // streams whose bodies wait for a window
	next    uint32           // stream

	limit     uint32 // of streams at once, the server's
	window    int64  // bytes of bodies that the server takes
	initial   int64  // of a stream
	frameSize int
	received  int64 // bytes that we take, until the server hears of more
	owed      int64 // of them: dealt with
}

// readyFields are the block of header fields and the body of a request, right for one state of the table.
type readyFields struct {
	table       int
	block, body []byte
}

// source hands the framer the frame that is there.
type source struct{ b []byte }

func (s *source) Read(to []byte) (int, error) {
	n := copy(to, s.b)
	s.b = s.b[n:]
	return n, nil
}

// sink collects bytes.
type sink []byte

func (s *sink) Write(b []byte) (int, error) {
	*s = append(*s, b...)
	return len(b), nil
}

// responseHead is the header fields that are being read.
type responseHead struct {
	stream    uint32
	user      int32 // -1: of a stream that nobody waits for any more
	ends      bool  // the stream ends with it
	trailers  bool
	malformed bool
	regular   bool // a field that is no pseudo-header has come
	keeping   bool
	status    int
	length    int64 // announced; -1: not
	bytes     int   // on the wire
	size      int   // of the list
	kept      *[]byte
}

const (
	headerSize    = 9
	mostFrame     = 16 << 10
	mostStreams   = math.MaxInt32 - 2
	defaultWindow = 64<<10 - 1
	// What Go's own client takes of a body, and of all bodies of a connection, before it has to say more.
	streamWindow = 4 << 20
	linkWindow   = 1 << 30
)

// errProtocol says that the peer does not speak HTTP/2 as it should.
var errProtocol = errors.New("not as HTTP/2 has it")

func newLink(place, endpoints int) *link {
	l := &link{
		place: place, fd: -1, next: 1, streams: map[uint32]int32{},
		ready: make([]readyFields, endpoints), table: 1,
		limit: math.MaxUint32, window: defaultWindow, initial: defaultWindow, frameSize: mostFrame, received: linkWindow,
	}
	l.framer = http2.NewFramer(&l.out, &l.source)
	l.framer.SetReuseFrames()
	l.framer.SetMaxReadFrameSize(mostFrame)
	l.encoder = hpack.NewEncoder(&l.block)
	l.decoder = hpack.NewDecoder(4096, l.field)
	l.decoder.SetMaxStringLength(maxHead)
	return l
}

// greet says what a client says first. Writing into memory never fails.
func (l *link) greet() {
	l.out = append(l.out, http2.ClientPreface...)
	_ = l.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHead},
	)
	_ = l.framer.WriteWindowUpdate(0, linkWindow-defaultWindow)
}

// room says whether another stream can begin.
func (l *link) room() bool { return uint32(len(l.streams)) < l.limit }

// idleStream says whether a stream was never begun: a peer that speaks of it is wrong.
func (l *link) idleStream(stream uint32) bool { return stream&1 == 0 || stream >= l.next }

// missing is how many bytes are missing, of a frame's header or of the frame; 0: it is whole, or too long.
func missing(b []byte) int {
	if len(b) < headerSize {
		return headerSize - len(b)
	}
	if length := frameLength(b); length <= headerSize+mostFrame {
		return max(length-len(b), 0)
	}
	return 0
}

func frameLength(b []byte) int { return headerSize + int(b[0])<<16 + int(b[1])<<8 + int(b[2]) }

// feed deals with the frames in what was read; what is there of the last one is kept.
func (e *engine) feed(l *link, b []byte, at moment) error {
	for l.fd >= 0 {
		piece := b
		if len(l.in) > 0 {
			for n := missing(l.in); n > 0 && len(b) > 0; n = missing(l.in) {
				n = min(n, len(b))
				l.in, b = append(l.in, b[:n]...), b[n:]
			}
			piece = l.in
		}
		if missing(piece) > 0 {
			if len(l.in) == 0 {
				l.in = append(l.in, b...)
			}
			return nil
		}
		length := frameLength(piece)
		if length > headerSize+mostFrame {
			return http2.ErrFrameTooLarge
		}
		if len(l.in) > 0 {
			l.in = l.in[:0]
		} else {
			b = b[length:]
		}
		if err := e.frame(l, piece[:length], at); err != nil {
			var wrong http2.StreamError
			if !errors.As(err, &wrong) {
				return err
			}
			e.malformed(l, wrong.StreamID, wrong.Code)
		}
	}
	return nil
}

// frame deals with one frame. The two kinds that answers are made of are read where they lie, since the framer
// copies each and allocates; those with something rare about them are left to it, and all other kinds.
func (e *engine) frame(l *link, b []byte, at moment) error {
	kind, flags, stream := http2.FrameType(b[3]), http2.Flags(b[4]), binary.BigEndian.Uint32(b[5:])&math.MaxInt32
	const rare = http2.FlagDataPadded | http2.FlagHeadersPriority
	if l.greeted && !l.halfway && flags&rare == 0 {
		switch {
		case kind == http2.FrameData:
			return e.data(l, stream, b[headerSize:], len(b), flags.Has(http2.FlagDataEndStream), at)
		case kind == http2.FrameHeaders && flags.Has(http2.FlagHeadersEndHeaders):
			return e.headers(l, stream, b[headerSize:], len(b), flags, at)
		}
	}
	if kind == http2.FrameHeaders || kind == http2.FrameContinuation {
		l.halfway = !flags.Has(http2.FlagHeadersEndHeaders)
	}
	l.source.b = b
	frame, err := l.framer.ReadFrame()
	if err != nil {
		return err
	}
	return e.rareFrame(l, frame, len(b), at)
}

// rareFrame deals with one frame of so many bytes.
func (e *engine) rareFrame(l *link, frame http2.Frame, length int, at moment) error {
	if settings, is := frame.(*http2.SettingsFrame); !l.greeted && (!is || settings.IsAck()) {
		return errProtocol
	}
	switch f := frame.(type) {
	case *http2.DataFrame:
		return e.data(l, f.StreamID, f.Data(), length, f.StreamEnded(), at)
	case *http2.HeadersFrame:
		return e.headers(l, f.StreamID, f.HeaderBlockFragment(), length, f.Flags, at)
	case *http2.ContinuationFrame:
		return e.headPart(l, f.HeaderBlockFragment(), f.HeadersEnded(), length, at)
	case *http2.SettingsFrame:
		return e.settings(l, f)
	case *http2.WindowUpdateFrame:
		return e.windowUpdate(l, f)
	case *http2.RSTStreamFrame:
		if l.idleStream(f.StreamID) {
			return errProtocol
		}
		e.resetByServer(l, f.StreamID, f.ErrCode)
	case *http2.GoAwayFrame:
		e.goAway(l, f.LastStreamID)
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = l.framer.WritePing(true, f.Data)
		}
	case *http2.PushPromiseFrame:
		return errProtocol // it was told not to
	}
	return nil
}

func (e *engine) settings(l *link, f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	l.greeted = true
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return err
		}
		switch s.ID {
		case http2.SettingHeaderTableSize:
			l.table++
			l.encoder.SetMaxDynamicTableSizeLimit(s.Val)
			l.encoder.SetMaxDynamicTableSize(min(s.Val, 4096))
		case http2.SettingEnablePush:
			if s.Val != 0 {
				return errProtocol // no server may
			}
		case http2.SettingMaxConcurrentStreams:
			l.limit = s.Val
		case http2.SettingMaxFrameSize:
			l.frameSize = int(s.Val)
		case http2.SettingInitialWindowSize:
			more := int64(s.Val) - l.initial
			l.initial += more
			for _, id := range l.streams {
				c := &e.conns[id]
				if c.window += more; c.window > math.MaxInt32 {
					return errProtocol
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_ = l.framer.WriteSettingsAck()
	e.unblock(l)
	e.beginWaiting(l)
	return nil
}

func (e *engine) windowUpdate(l *link, f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if l.window += int64(f.Increment); l.window > math.MaxInt32 {
			return errProtocol
		}
		e.unblock(l)
		return nil
	}
	if l.idleStream(f.StreamID) {
		return errProtocol
	}
	if id, ours := l.streams[f.StreamID]; ours {
		c := &e.conns[id]
		if c.window += int64(f.Increment); c.window > math.MaxInt32 {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
		}
		e.unblock(l)
	}
	return nil
}

// unblock sends on what waited for a window.
func (e *engine) unblock(l *link) {
	blocked := l.blocked
	l.blocked = nil
	for _, stream := range blocked {
		if id, ours := l.streams[stream]; ours {
			e.sendBody(l, &e.conns[id])
		}
	}
}

// data takes a piece of a body, from a frame of so many bytes.
func (e *engine) data(l *link, stream uint32, body []byte, length int, ends bool, at moment) error {
	l.heard = at.read
	// Padding counts in both windows.
	taken := int64(length - headerSize)
	if l.received -= taken; l.received < 0 || l.idleStream(stream) {
		return errProtocol
	}
	if l.owed += taken; l.owed >= linkWindow/2 {
		_ = l.framer.WriteWindowUpdate(0, uint32(l.owed))
		l.received, l.owed = l.received+l.owed, 0
	}
	id, ours := l.streams[stream]
	if !ours {
		return nil // given up before
	}
	c := &e.conns[id]
	c.received += int64(length)
	c.parser.body(body)
	wrong := c.parser.status == 0 || len(body) > 0 && e.plan.Requests[c.endpoint].HeadOnly ||
		c.parser.left >= 0 && c.parser.bodyBytes > c.parser.left
	if wrong {
		return http2.StreamError{StreamID: stream, Code: http2.ErrCodeProtocol}
	}
	if c.takes -= taken; c.takes < 0 {
		return http2.StreamError{StreamID: stream, Code: http2.ErrCodeFlowControl}
	}
	if ends {
		return e.whole(l, id, c, at)
	}
	if dealt := streamWindow - c.takes; dealt >= streamWindow/2 {
		_ = l.framer.WriteWindowUpdate(stream, uint32(dealt))
		c.takes += dealt
	}
	return nil
}

// headers takes header fields, or the first of them, from a frame of so many bytes.
func (e *engine) headers(l *link, stream uint32, fragment []byte, length int, flags http2.Flags, at moment) error {
	if l.idleStream(stream) {
		return errProtocol
	}
	e.beginHead(l, stream, flags.Has(http2.FlagHeadersEndStream))
	return e.headPart(l, fragment, flags.Has(http2.FlagHeadersEndHeaders), length, at)
}

// beginHead makes ready for header fields: of an answer, an interim one, or of what follows a body.
func (e *engine) beginHead(l *link, stream uint32, ends bool) {
	l.head = responseHead{stream: stream, user: -1, ends: ends, length: -1}
	if id, ours := l.streams[stream]; ours {
		c := &e.conns[id]
		l.head.user, l.head.trailers = id, c.parser.status != 0
		l.head.keeping, l.head.kept = c.parser.keeping && !l.head.trailers, &c.parser.keptHead
	}
	// Also what nobody waits for is read: the table of both sides must stay the same.
	l.decoder.SetEmitEnabled(l.head.user >= 0)
}

// headPart reads header fields, and deals with them when they are all there.
func (e *engine) headPart(l *link, fragment []byte, last bool, length int, at moment) error {
	h := &l.head
	l.heard = at.read
	if h.bytes += length; h.bytes > 2*maxHead {
		return errTooLong
	}
	if h.user >= 0 {
		c := &e.conns[h.user]
		if c.first == 0 {
			c.first = at.since(c.begun).arrived
		}
		c.received += int64(length)
	}
	if _, err := l.decoder.Write(fragment); err != nil {
		return err
	}
	if !last {
		return nil
	}
	if err := l.decoder.Close(); err != nil {
		return err
	}
	if h.user < 0 {
		return nil
	}
	id, c := h.user, &e.conns[h.user]
	interim := !h.trailers && h.status >= 100 && h.status < 200
	switch {
	case h.malformed || h.size > maxHead, h.trailers && !h.ends, !h.trailers && h.status == 0,
		interim && (h.ends || h.status == 101):
		return http2.StreamError{StreamID: h.stream, Code: http2.ErrCodeProtocol}
	case interim:
		c.parser.keptHead = c.parser.keptHead[:0]
		c.first = 0
		return nil
	case !h.trailers:
		c.parser.status, c.parser.left = h.status, h.length
	}
	if h.ends {
		return e.whole(l, id, c, at)
	}
	return nil
}

// field takes one header field.
func (l *link) field(f hpack.HeaderField) {
	h := &l.head
	h.size += int(f.Size())
	if h.size > maxHead {
		return
	}
	if f.IsPseudo() {
		status, err := strconv.Atoi(f.Value)
		if f.Name != ":status" || err != nil || len(f.Value) != 3 || status < 100 || h.status != 0 || h.regular || h.trailers {
			h.malformed = true
		}
		h.status = status
		return
	}
	h.regular = true
	for i := range len(f.Name) {
		if 'A' <= f.Name[i] && f.Name[i] <= 'Z' {
			h.malformed = true
		}
	}
	if f.Name == "content-length" && !h.trailers {
		length, err := strconv.ParseUint(f.Value, 10, 62)
		if err != nil || h.length >= 0 && h.length != int64(length) {
			h.malformed = true
		}
		h.length = int64(length)
	}
	switch f.Name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		h.malformed = true
	}
	if h.keeping {
		kept := append(append(*h.kept, f.Name...), ": "...)
		*h.kept = append(append(kept, f.Value...), '\n')
	}
}

// whole deals with an answer that is all there.
func (e *engine) whole(l *link, id int32, c *conn, at moment) error {
	empty := e.plan.Requests[c.endpoint].HeadOnly || c.parser.status == 204 || c.parser.status == 304
	if c.parser.left >= 0 && !empty && c.parser.bodyBytes != c.parser.left {
		return http2.StreamError{StreamID: c.stream, Code: http2.ErrCodeProtocol}
	}
	c.parser.state = complete
	l.served = true
	e.finish(id, c, at.since(c.begun), false)
	return nil
}

// receiveLink reads what has arrived; ended says that the server has closed its side.
func (e *engine) receiveLink(l *link, ended bool) {
	for l.fd >= 0 {
		n, at, errno := e.read(l.fd, l.secure)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0 || n == 0:
			e.severed(l)
			return
		}
		at = at.inOrder(l.fd, &l.disorder)
		if err := e.feed(l, e.buffer[:n], at); err != nil && l.fd >= 0 {
			code := http2.ErrCodeProtocol
			var wrong http2.ConnectionError
			if errors.As(err, &wrong) {
				code = http2.ErrCode(wrong)
			}
			_ = l.framer.WriteGoAway(0, code, nil)
			e.flushOnce(l)
			e.give(l, result.Body)
			return
		}
		if l.secure == nil && n < len(e.buffer) && !ended {
			return // drained: the next bytes bring an event of their own
		}
	}
}

// flush writes what there is to say; what the socket does not take goes out when it does.
func (e *engine) flush(l *link) {
	nothing := len(l.out) == 0 && (l.secure == nil || len(l.secure.rest) == 0)
	if l.corked || nothing || l.state != idle {
		return
	}
	if !e.flushOnce(l) {
		// The answers may be there all the same. That it is closed, an event says.
		l.out = l.out[:0]
	}
}

// flushOnce says whether the connection still takes bytes, now or later.
func (e *engine) flushOnce(l *link) bool {
	if l.secure != nil {
		var err error
		if len(l.out) > 0 {
			_, err = l.secure.tls.Write(l.out)
			l.out = l.out[:0]
		} else {
			err = l.secure.flush()
		}
		return err == nil && (len(l.secure.rest) == 0 || e.watchLinkWrites(l))
	}
	for sent := 0; ; {
		if sent == len(l.out) {
			l.out = l.out[:0]
			return true
		}
		n, errno := write(l.fd, l.out[sent:])
		switch errno {
		case 0:
			sent += n
		case unix.EAGAIN:
			l.out = l.out[:copy(l.out, l.out[sent:])]
			return e.watchLinkWrites(l)
		case unix.EINTR:
		default:
			return false
		}
	}
}

func (e *engine) watchLinkWrites(l *link) bool {
	if l.writable {
		return true
	}
	l.writable = true
	return e.poller.watchWrites(l.fd, l.id, l.gen) == nil
}
