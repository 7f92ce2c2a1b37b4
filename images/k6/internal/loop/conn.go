package loop

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/result"
)

// fingerprint is what the answers of an endpoint are made of that are to be the same: how many bytes, by the first
// one, and which, by the first one that was summed up. It says nothing of their order, since the keys of a JSON
// object have none: some servers write them in another one each time.
type fingerprint struct {
	summed bool
	broken bool  // one was another: all are summed up, so that those are counted and not guessed from a few
	length int64 // 0: none has come
	sum    uint64
}

// issue starts the next request of a user's session, or the next session, on its connection; due is
// when it should have gone out.
func (e *engine) issue(id int32, now, due int64) {
	c := &e.conns[id]
	work := e.plan.Work
	if c.user.Between() {
		work.Begin(&c.user, e.session())
		c.began = due
	}
	endpoint, ok := work.Draw(&c.user)
	if !ok {
		// Only sessions that failed can have used more than was reckoned: what is left of the load is
		// not sent.
		e.usedUp.Store(true)
		if e.plan.Rate > 0 && due == c.began {
			e.drop(c.user.Session(), now)
		}
		work.Advance(&c.user, false)
		e.release(id)
		return
	}
	c.due, c.issued = due, now
	c.busy, c.retried = true, false
	c.endpoint = endpoint
	message := work.Messages[endpoint]
	if e.places != nil {
		c.wire = nil // put together when its stream begins
	} else if c.wire = message.Fixed(); c.wire == nil {
		c.made = message.Append(c.made[:0], &c.user, &e.scratch)
		c.wire = c.made
	}
	// The first one and every 17th after it of each endpoint, as long as they are all the same.
	c.summing = e.plan.Requests[endpoint].Check == Same && (e.sent[endpoint]%sumEvery == 0 || e.firsts[endpoint].broken)
	e.sent[endpoint]++
	e.active++
	e.attempt(id, c, now)
}

// attempt sends the request of c, on a new connection when there is none.
func (e *engine) attempt(id int32, c *conn, now int64) {
	c.sent, c.received, c.first = 0, 0, 0
	c.set, c.openedIn = c.openedIn, 0
	c.parser.reset(c.summing, e.plan.Work.Captures(c.endpoint))
	switch {
	case e.places != nil:
		c.stream = 0
		e.attemptStream(id, c, now)
	case c.state == idle:
		c.begun = now
		e.send(id, c)
	default:
		e.connect(id, c)
	}
}

// dial begins to set up a connection; fresh: its socket is not watched yet. errno, where it is not 0, says why
// it cannot be set up.
func (e *engine) dial(id int32, c *conn) (fresh bool, errno unix.Errno) {
	which := int(id) % len(e.addresses)
	fresh = c.fd < 0
	if fresh {
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(e.families[which]),
			unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if errno != 0 {
			return fresh, errno
		}
		c.fd, c.gen, c.writable = int(fd), c.gen+1, false
		stampArrivals(c.fd)
		if e.longRequests || e.plan.TLS != nil {
			// What follows something that is not acknowledged is held back by Nagle's algorithm: the rest of a
			// request of several segments, and the first request after a handshake, whose last words are the client's.
			_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		}
	}
	c.state, c.served, c.disorder = connecting, false, 0
	c.dialed = e.now()
	return fresh, connect(c.fd, e.addresses[which])
}

// kindOfFailure is what a request failed by whose connection could not be begun. A machine has so many
// ports for connections from one address to another, and one that has used them up says nothing of
// the server.
func kindOfFailure(errno unix.Errno) result.Kind {
	if errno == unix.EADDRNOTAVAIL {
		return result.Port
	}
	return result.Connect
}

// open sets up a connection for later.
func (e *engine) open(id int32, c *conn, now int64) {
	c.issued = now
	_, errno := e.dial(id, c)
	ok := errno == 0
	if ok {
		c.writable = true
		ok = e.poller.add(c.fd, id, c.gen, true) == nil
	}
	if !ok {
		e.unconnected(id, c)
	}
}

// connected goes on with a connection that is there now: with its request, or, opened before the
// first one, by waiting for it.
func (e *engine) connected(id int32, c *conn) {
	now := e.now()
	if c.busy {
		c.begun, c.set = now, now-c.dialed
		e.send(id, c)
		return
	}
	// It may be closed by the time it is used, as any that was kept.
	c.openedIn = max(now-c.dialed, 1)
	c.state, c.served = idle, true
	e.release(id)
}

// unconnected gives a connection up that could not be set up.
func (e *engine) unconnected(id int32, c *conn) {
	if c.busy {
		e.fail(id, c, e.now(), result.Connect)
		return
	}
	e.hangUp(c)
	e.resting = append(e.resting, rest{id, e.now() + restAfterFailure})
}

// connect begins to set up a connection and sends the request as soon as there is one.
func (e *engine) connect(id int32, c *conn) {
	c.set = 0
	fresh, errno := e.dial(id, c)
	if errno != 0 {
		e.fail(id, c, e.now(), kindOfFailure(errno))
		return
	}
	// A peer on the same node has answered by now, and writing at once saves a round through
	// epoll; else the write says EAGAIN and the connection is waited for.
	connected := e.now()
	n := 0
	errno = unix.EAGAIN
	if e.plan.TLS == nil {
		n, errno = write(c.fd, c.wire)
	}
	switch errno {
	case 0:
		c.sent = n
		c.begun, c.set = connected, connected-c.dialed
		c.state = waiting
		if c.sent < len(c.wire) {
			c.state = sending
		}
	case unix.EAGAIN:
	default:
		e.fail(id, c, e.now(), result.Connect)
		return
	}
	writes := c.state != waiting
	var err error
	switch {
	case fresh:
		c.writable = writes
		err = e.poller.add(c.fd, id, c.gen, writes)
	case writes && !c.writable:
		c.writable = true
		err = e.poller.watchWrites(c.fd, id, c.gen)
	}
	if err != nil {
		e.fail(id, c, e.now(), result.Other)
	}
}

// connect begins to connect a socket; 0: it did, or is done.
func connect(fd int, raw []byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	if errno == unix.EINPROGRESS {
		return 0
	}
	return errno
}

// unspecified as an address to connect to makes the kernel drop a connection (connect(2)).
var unspecified = make([]byte, unix.SizeofSockaddrInet4)

// disconnect drops the connection as hangUp does, and keeps the socket for the next one: to the
// server that is a new connection like any other, but it saves making, watching and closing a
// socket.
func (e *engine) disconnect(c *conn) {
	if e.completed%pathEvery == 0 {
		e.path.see(c.fd)
	}
	if c.secure != nil || connect(c.fd, unspecified) != 0 {
		e.hangUp(c)
		return
	}
	c.state = unconnected
}

// send writes what is left of the request.
func (e *engine) send(id int32, c *conn) {
	if c.secure != nil {
		e.sendSecured(id, c)
		return
	}
	for c.sent < len(c.wire) {
		n, errno := write(c.fd, c.wire[c.sent:])
		switch errno {
		case 0:
			c.sent += n
		case unix.EAGAIN:
			e.sendLater(id, c)
			return
		case unix.EINTR:
		default:
			// The answer may be there all the same (a server that refuses a body and closes).
			c.state = waiting
			e.receive(id, c, true)
			return
		}
	}
	c.state = waiting
}

// sendLater goes on when the socket takes bytes again.
func (e *engine) sendLater(id int32, c *conn) {
	c.state = sending
	if !c.writable {
		c.writable = true
		if err := e.poller.watchWrites(c.fd, id, c.gen); err != nil {
			e.fail(id, c, e.now(), result.Other)
		}
	}
}

// sendSecured encrypts the request, and writes what the socket takes of it.
func (e *engine) sendSecured(id int32, c *conn) {
	var err error
	if c.sent == 0 {
		c.sent = len(c.wire)
		_, err = c.secure.tls.Write(c.wire)
	} else {
		err = c.secure.flush()
	}
	switch {
	case err != nil:
		c.state = waiting
		e.receive(id, c, true)
	case len(c.secure.rest) > 0:
		e.sendLater(id, c)
	default:
		c.state = waiting
	}
}

// read reads what has arrived on a connection, or else on its TLS, into the buffer.
func (e *engine) read(fd int, secure *secure) (int, moment, unix.Errno) {
	from := &e.reader
	var n int
	var errno unix.Errno
	if secure != nil {
		from = &secure.reader
		n, errno = secure.read(e.buffer)
	} else {
		n, errno = from.read(fd, e.buffer)
	}
	if errno != 0 {
		return n, moment{}, errno
	}
	return n, e.moment(from.stamp), 0
}

func write(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

// handle acts on the events of one connection.
func (e *engine) handle(id int32, c *conn, events uint32) {
	ended := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	if c.secure != nil && c.state != handshaking {
		c.secure.hear(ended)
	}
	switch c.state {
	case connecting:
		switch {
		case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
			e.unconnected(id, c)
		case events&unix.EPOLLOUT == 0:
		case e.plan.TLS != nil:
			c.state = handshaking
			c.secure = &secure{fd: c.fd, id: id, ready: make(chan struct{}, 1)}
			go c.secure.shake(e.plan.TLS, e.doorbell)
		default:
			e.connected(id, c)
		}
	case handshaking:
		c.secure.wake()
	case sending, waiting:
		if c.state == sending && events&unix.EPOLLOUT != 0 {
			e.send(id, c)
		}
		if c.fd >= 0 && c.busy && (ended || events&unix.EPOLLIN != 0) {
			e.receive(id, c, ended)
		}
	case idle:
		if c.secure != nil && events&unix.EPOLLIN != 0 && !ended {
			// Of TLS itself, such as a ticket, and nothing else.
			if _, _, errno := e.read(c.fd, c.secure); errno == unix.EAGAIN {
				return
			}
		}
		if ended || events&unix.EPOLLIN != 0 {
			// Closed by the server while nothing was under way, or bytes nobody asked for.
			e.hangUp(c)
		}
	}
}

// receive reads what has arrived; ended says that the server has closed its side.
func (e *engine) receive(id int32, c *conn, ended bool) {
	for {
		n, at, errno := e.read(c.fd, c.secure)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			e.broken(id, c)
			return
		case n == 0:
			if c.parser.end() {
				e.finish(id, c, moment{at.read, at.read}, ended)
			} else {
				e.broken(id, c)
			}
			return
		}
		at = at.since(c.begun).inOrder(c.fd, &c.disorder)
		if c.first == 0 {
			c.first = at.arrived
		}
		c.received += int64(n)
		rest, err := c.parser.feed(e.buffer[:n], e.plan.Requests[c.endpoint].HeadOnly)
		if c.parser.interim {
			c.parser.interim = false
			if c.first = at.arrived; !c.parser.begun() {
				c.first = 0
			}
		}
		switch {
		case err != nil || len(rest) > 0:
			e.fail(id, c, at.read, result.Body)
			return
		case c.parser.state == complete:
			e.finish(id, c, at, ended)
			return
		case c.secure == nil && n < len(e.buffer) && !ended:
			return // drained: the next bytes bring an event of their own
		}
	}
}

// broken ends a request whose connection was closed or reset. A kept connection may have been
// closed just before the request reached the server: then it is sent once more, as all HTTP
// clients do (RFC 9112, section 9.3.1), and its latency goes on from the first try.
func (e *engine) broken(id int32, c *conn) {
	if c.served && !c.retried && c.received == 0 && e.plan.Requests[c.endpoint].Idempotent {
		e.rec.Retry()
		e.hangUp(c)
		c.retried = true
		e.attempt(id, c, e.now())
		return
	}
	e.fail(id, c, e.now(), result.Reset)
}

// finish counts a complete answer and goes on.
func (e *engine) finish(id int32, c *conn, at moment, ended bool) {
	kind := result.OK
	request := &e.plan.Requests[c.endpoint]
	if c.parser.status != request.ExpectStatus {
		kind = result.Status
	} else if request.Check != NoCheck && !e.bodyRight(c, request.Check) {
		kind = result.Check
	} else if c.parser.keeping && !e.plan.Work.Capture(&c.user, c.endpoint, c.parser.keptHead, c.parser.keptBody) {
		kind = result.Capture
	}
	e.unread += at.read - at.arrived
	e.record(c, at.arrived, kind)
	if e.places != nil {
		l := e.endStream(c)
		e.proceed(id, c, at.read, kind == result.OK)
		e.settleLink(l)
		return
	}
	c.state, c.served = idle, true
	unsent := c.sent < len(c.wire) || c.secure != nil && len(c.secure.rest) > 0
	if !e.plan.KeepAlive || c.parser.closeAfter || ended || unsent {
		e.disconnect(c)
	}
	e.proceed(id, c, at.read, kind == result.OK)
}

// proceed goes on after an answer: with the user's next request, at once or after a while, or, in the
// open model, without the user once the session is over.
func (e *engine) proceed(id int32, c *conn, now int64, good bool) {
	goesOn := e.plan.Work.Advance(&c.user, good)
	open := e.plan.Rate > 0
	if open && !goesOn {
		e.release(id)
		return
	}
	if pause := e.think(c.endpoint); pause > 0 {
		e.thinking.push(rest{id, now + pause})
		return
	}
	if open || e.take(now, !goesOn) {
		e.issue(id, now, now)
		return
	}
	e.release(id)
}

// think is how long a user waits after an answer of an endpoint.
func (e *engine) think(endpoint int) int64 {
	think := &e.plan.Work.Think[endpoint]
	if think.Most == think.Least {
		return int64(think.Least)
	}
	return int64(think.Least) + e.random.Int64N(int64(think.Most-think.Least)+1)
}

// bodyRight says whether there is a body and, where it is to be the same, it is so as far as is known.
func (e *engine) bodyRight(c *conn, check Check) bool {
	length := c.parser.bodyBytes
	if length == 0 || check == NonEmpty {
		return length > 0
	}
	first := &e.firsts[c.endpoint]
	if first.length == 0 {
		first.length = length
	}
	right := length == first.length
	if right && c.summing {
		if !first.summed {
			first.summed, first.sum = true, c.parser.sum
		}
		right = c.parser.sum == first.sum
	}
	first.broken = first.broken || !right
	return right
}

// fail counts a request that got no whole answer, closes its connection, or ends its stream, and lets the
// user think, as after an answer, or at least rest.
func (e *engine) fail(id int32, c *conn, now int64, kind result.Kind) {
	e.record(c, now, kind)
	if e.places != nil {
		e.abandonStream(id, c)
	} else {
		e.hangUp(c)
	}
	e.plan.Work.Advance(&c.user, false)
	if e.plan.Rate == 0 {
		if pause := e.think(c.endpoint); pause > restAfterFailure {
			e.thinking.push(rest{id, now + pause})
			return
		}
	}
	e.resting = append(e.resting, rest{id, now + restAfterFailure})
}

// record counts a request that was over at a moment.
func (e *engine) record(c *conn, done int64, kind result.Kind) {
	sample := result.Sample{
		Endpoint: c.endpoint, Issued: c.due, Before: c.due - c.began, Done: done, Server: c.first - c.begun, Connect: c.set,
		Late: c.issued - c.due, Bytes: c.received, Kind: kind,
	}
	if c.parser.state == complete {
		sample.Status = c.parser.status
	}
	e.rec.Record(&sample)
	if kind == result.OK && e.plan.Latencies != nil {
		e.latencies = append(e.latencies, sample.Done-sample.Issued)
	}
	c.busy = false
	e.active--
	e.completed++
}

// hangUp closes the connection with a reset.
func (e *engine) hangUp(c *conn) {
	if c.fd < 0 {
		c.state = unconnected
		return
	}
	e.path.see(c.fd)
	if s := c.secure; s != nil {
		c.secure = nil
		if s.abandon() || c.state == handshaking {
			// Its socket is closed when the handshake is over.
			c.fd, c.gen, c.state = -1, c.gen+1, unconnected
			return
		}
	}
	reset(c.fd)
	c.fd, c.gen, c.state = -1, c.gen+1, unconnected
}

// reset closes a socket with a reset rather than a FIN: nothing is left to say, and each ordinary close
// would keep its port for a minute in TIME_WAIT, so that a load without keep-alive would run out of ports
// after some 28,000 requests.
func reset(fd int) {
	linger := unix.Linger{Onoff: 1, Linger: 0}
	_, _, _ = unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_LINGER,
		uintptr(unsafe.Pointer(&linger)), unsafe.Sizeof(linger), 0)
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}
