package loop

import (
	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/result"
)

// With HTTP/2 a conn is a user, and users share links: each place has a connection and so many users. A
// link that is left for another one stays until its streams have ended.

// users are those of a place, first and behind the last.
func (e *engine) users(place int) (first, end int32) {
	return int32(place * e.streams), int32((place + 1) * e.streams)
}

// ready says whether a user has a connection that is there.
func (e *engine) ready(id int32) bool {
	if e.places == nil {
		return e.conns[id].state == idle
	}
	l := e.places[int(id)/e.streams]
	return l != nil && l.state == idle
}

// attemptStream sends the request of c on the connection of its place.
func (e *engine) attemptStream(id int32, c *conn, now int64) {
	place := int(id) / e.streams
	l := e.places[place]
	if l == nil {
		var errno unix.Errno
		if l, errno = e.dialLink(place, now); l == nil {
			e.fail(id, c, e.now(), kindOfFailure(errno))
			return
		}
	}
	c.link = l
	if l.state != idle || !l.room() || len(l.waiting) > 0 {
		l.waiting = append(l.waiting, id)
		return
	}
	e.beginStream(l, id, c)
	e.flush(l)
}

// dialLink begins to set up the connection of a place; nil: that cannot be, and errno says why where the
// socket was refused.
func (e *engine) dialLink(place int, now int64) (l *link, errno unix.Errno) {
	which := place % len(e.addresses)
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(e.families[which]),
		unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errno != 0 {
		return nil, errno
	}
	l = newLink(place, len(e.plan.Requests))
	l.fd, l.began, l.state, l.writable = int(fd), now, connecting, true
	stampArrivals(l.fd)
	// Frames are written as they come: none may wait for the acknowledgement of another.
	_ = unix.SetsockoptInt(l.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if len(e.spareLinks) > 0 {
		l.id = e.spareLinks[len(e.spareLinks)-1]
		e.spareLinks = e.spareLinks[:len(e.spareLinks)-1]
	} else {
		l.id = int32(len(e.links))
		e.links = append(e.links, nil)
	}
	e.linkGen++
	l.gen = e.linkGen
	e.links[l.id], e.places[place] = l, l
	errno = connect(l.fd, e.addresses[which])
	if errno != 0 || e.poller.add(l.fd, l.id, l.gen, true) != nil {
		e.hangUpLink(l)
		return nil, errno
	}
	return l, 0
}

// openLink sets up the connection of a place for later.
func (e *engine) openLink(place int, now int64) {
	if l, _ := e.dialLink(place, now); l != nil {
		l.early = true
		return
	}
	e.restPlace(place)
}

func (e *engine) restPlace(place int) {
	until := e.now() + restAfterFailure
	for id, end := e.users(place); id < end; id++ {
		e.resting = append(e.resting, rest{id, until})
	}
}

// handleLink acts on the events of a connection.
func (e *engine) handleLink(l *link, events uint32) {
	ended := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	if l.secure != nil && l.state != handshaking {
		l.secure.hear(ended)
	}
	switch l.state {
	case connecting:
		switch {
		case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
			e.unreachable(l)
		case events&unix.EPOLLOUT == 0:
		case e.plan.TLS != nil:
			l.state = handshaking
			l.secure = &secure{fd: l.fd, id: l.id, ready: make(chan struct{}, 1)}
			go l.secure.shake(e.plan.TLS, e.doorbell)
		default:
			e.linked(l)
		}
	case handshaking:
		l.secure.wake()
	case idle:
		l.corked = true
		if ended || events&unix.EPOLLIN != 0 {
			e.receiveLink(l, ended)
		}
		l.corked = false
		if l.fd >= 0 {
			e.flush(l)
		}
	}
}

// shakenLink goes on with a connection whose handshake is over.
func (e *engine) shakenLink(s *secure) {
	l := e.links[s.id]
	switch {
	case l == nil || l.secure != s:
		_ = unix.Close(s.fd) // given up meanwhile
	case s.err != nil || s.tls.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS:
		l.state = connecting // the socket is the loop's again
		e.unreachable(l)
	default:
		e.linked(l)
	}
}

// linked goes on with a connection that is there now.
func (e *engine) linked(l *link) {
	l.state, l.corked = idle, true
	l.set = max(e.now()-l.began, 1)
	l.greet()
	if l.early {
		l.served = true // it may be closed by the time it is used, as any that was kept
	}
	e.shareLink(l)
	e.beginWaiting(l)
	// The server may have spoken first.
	e.receiveLink(l, false)
	l.corked = false
	if l.fd >= 0 {
		e.flush(l)
	}
}

// shareLink lets the users of a connection that is there now be found as such.
func (e *engine) shareLink(l *link) {
	first, end := e.users(l.place)
	switch {
	case l.early:
		for id := first; id < end; id++ {
			e.release(id)
		}
	case e.plan.Rate > 0 && e.streams > 1:
		kept := e.free[:0]
		for _, id := range e.free {
			if first <= id && id < end {
				e.idle.push(id)
			} else {
				kept = append(kept, id)
			}
		}
		e.free = kept
	}
}

// unreachable gives a connection up that could not be set up.
func (e *engine) unreachable(l *link) {
	if l.early {
		e.restPlace(l.place)
	}
	e.give(l, result.Connect)
}

// give hangs up and counts all that was under way on a connection as a failure.
func (e *engine) give(l *link, kind result.Kind) {
	now := e.now()
	for _, id := range e.hangUpLink(l) {
		e.fail(id, &e.conns[id], now, kind)
	}
}

// severed ends a connection that was closed or reset by the server.
func (e *engine) severed(l *link) {
	now, kept := e.now(), l.served
	for _, id := range e.hangUpLink(l) {
		c := &e.conns[id]
		sent := c.stream != 0
		if !sent || kept && c.received == 0 && e.plan.Requests[c.endpoint].Idempotent {
			e.again(id, c, now, sent)
		} else {
			e.fail(id, c, now, result.Reset)
		}
	}
}

// again sends a request once more that the server has not worked on, as far as anybody can know. Its
// latency goes on from the first try.
func (e *engine) again(id int32, c *conn, now int64, sent bool) {
	if c.retried {
		e.fail(id, c, now, result.Reset)
		return
	}
	if sent {
		e.rec.Retry()
	}
	c.retried = true
	e.attempt(id, c, now)
}

// resetByServer ends a stream that the server did.
func (e *engine) resetByServer(l *link, stream uint32, code http2.ErrCode) {
	id, ours := l.streams[stream]
	if !ours {
		return
	}
	c := &e.conns[id]
	delete(l.streams, stream)
	c.link = nil
	if code == http2.ErrCodeRefusedStream {
		// Not worked on (RFC 9113, section 8.7).
		e.again(id, c, e.now(), true)
	} else {
		e.fail(id, c, e.now(), result.Reset)
	}
	e.settleLink(l)
}

// malformed ends a stream whose answer is not what HTTP/2 has.
func (e *engine) malformed(l *link, stream uint32, code http2.ErrCode) {
	_ = l.framer.WriteRSTStream(stream, code)
	id, ours := l.streams[stream]
	if !ours {
		return
	}
	c := &e.conns[id]
	delete(l.streams, stream)
	c.link = nil
	e.fail(id, c, e.now(), result.Body)
	e.settleLink(l)
}

// goAway leaves a connection that the server will close: what it has not worked on begins elsewhere.
func (e *engine) goAway(l *link, last uint32) {
	var moving []int32
	for stream, id := range l.streams {
		if stream > last {
			moving = append(moving, id)
			delete(l.streams, stream)
		}
	}
	e.leave(l)
	now := e.now()
	for _, id := range moving {
		e.conns[id].link = nil
		e.again(id, &e.conns[id], now, true)
	}
	e.settleLink(l)
}

// leave lets no stream begin on a connection any more: who waits for one goes elsewhere.
func (e *engine) leave(l *link) {
	l.leaving = true
	if e.places[l.place] == l {
		e.places[l.place] = nil
	}
	waiting := l.waiting
	l.waiting = nil
	now := e.now()
	for _, id := range waiting {
		e.conns[id].link = nil
		e.again(id, &e.conns[id], now, false)
	}
}

// settleLink goes on when a stream has ended.
func (e *engine) settleLink(l *link) {
	if l.fd >= 0 && l.leaving && len(l.streams) == 0 {
		e.hangUpLink(l)
		return
	}
	e.beginWaiting(l)
}

// beginWaiting begins the streams of users who wait, as far as the server takes them.
func (e *engine) beginWaiting(l *link) {
	for len(l.waiting) > 0 && l.fd >= 0 && l.room() && !l.leaving {
		id := l.waiting[0]
		l.waiting = append(l.waiting[:0], l.waiting[1:]...)
		e.beginStream(l, id, &e.conns[id])
	}
	if l.fd >= 0 {
		e.flush(l)
	}
}

// beginStream says what a request is, and as much of its body as the server takes.
func (e *engine) beginStream(l *link, id int32, c *conn) {
	c.stream, c.window, c.takes = l.next, l.initial, streamWindow
	l.streams[l.next] = id
	if l.next += 2; l.next > mostStreams {
		e.leave(l)
	}
	c.begun = e.now()
	c.set, l.set = l.set, 0
	block, body := e.fieldsOf(l, c)
	c.unsent = body
	now := min(len(block), l.frameSize)
	_ = l.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: c.stream, BlockFragment: block[:now], EndStream: len(body) == 0, EndHeaders: now == len(block),
	})
	for block = block[now:]; len(block) > 0; block = block[now:] {
		now = min(len(block), l.frameSize)
		_ = l.framer.WriteContinuation(c.stream, now == len(block), block[:now])
	}
	e.sendBody(l, c)
}

// fieldsOf is the block of a request's header fields, and its body. A block of nothing but places in the table of
// the connection is the same the next time, and kept, as long as nothing else comes into that table.
func (e *engine) fieldsOf(l *link, c *conn) (block, body []byte) {
	if ready := &l.ready[c.endpoint]; ready.table == l.table {
		return ready.block, ready.body
	}
	l.block = l.block[:0]
	message := e.plan.Work.Messages[c.endpoint]
	// Into memory, which never fails.
	body, _ = message.Fields(l.encoder, &c.user, &c.made)
	if !onlyPlaces(l.block) {
		l.table++
	} else if message.Fixed() != nil {
		ready := &l.ready[c.endpoint]
		ready.table, ready.body, ready.block = l.table, body, append(ready.block[:0], l.block...)
	}
	return l.block, body
}

// onlyPlaces says whether each field of a block is a place in the table (RFC 7541, section 6.1), with one byte.
func onlyPlaces(block []byte) bool {
	for _, b := range block {
		if b <= 0x80 || b == 0xff {
			return false
		}
	}
	return true
}

// sendBody sends what the server takes of a body.
func (e *engine) sendBody(l *link, c *conn) {
	for len(c.unsent) > 0 {
		most := min(l.window, c.window, int64(l.frameSize), int64(len(c.unsent)))
		if most <= 0 {
			l.blocked = append(l.blocked, c.stream)
			return
		}
		_ = l.framer.WriteData(c.stream, int(most) == len(c.unsent), c.unsent[:most])
		c.unsent = c.unsent[most:]
		l.window -= most
		c.window -= most
	}
}

// endStream takes a user from the connection after a whole answer.
func (e *engine) endStream(c *conn) *link {
	l := c.link
	if len(c.unsent) > 0 {
		// The server has answered without the rest of the body.
		_ = l.framer.WriteRSTStream(c.stream, http2.ErrCodeCancel)
		c.unsent = nil
	}
	delete(l.streams, c.stream)
	c.link = nil
	return l
}

// abandonStream takes a user from the connection whose request has failed.
func (e *engine) abandonStream(id int32, c *conn) {
	l := c.link
	c.link, c.unsent = nil, nil
	if l == nil || l.fd < 0 {
		return
	}
	if c.stream == 0 {
		for i, one := range l.waiting {
			if one == id {
				l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
				break
			}
		}
		if l.state != idle && !l.early && len(l.waiting) == 0 {
			e.hangUpLink(l) // nobody waits for it any more
		}
		return
	}
	delete(l.streams, c.stream)
	_ = l.framer.WriteRSTStream(c.stream, http2.ErrCodeCancel)
	if l.heard < c.begun {
		e.leave(l) // no answer has come all this time: it may be that none comes any more
	}
	e.settleLink(l)
}

// hangUpLink closes a connection with a reset, as hangUp does, and gives those who were on it.
func (e *engine) hangUpLink(l *link) (users []int32) {
	if l.fd < 0 {
		return nil
	}
	for stream, id := range l.streams {
		users = append(users, id)
		delete(l.streams, stream)
	}
	for _, id := range l.waiting {
		e.conns[id].stream = 0
		users = append(users, id)
	}
	l.waiting, l.blocked = nil, nil
	for _, id := range users {
		e.conns[id].link, e.conns[id].unsent = nil, nil
	}
	e.leave(l)
	e.links[l.id] = nil
	e.spareLinks = append(e.spareLinks, l.id)
	e.path.see(l.fd)
	fd := l.fd
	l.fd = -1
	if s := l.secure; s != nil {
		l.secure = nil
		if s.abandon() || l.state == handshaking {
			return users // its socket is closed when the handshake is over
		}
	}
	l.state = unconnected
	reset(fd)
	return users
}
