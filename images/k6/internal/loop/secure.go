package loop

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// secure is the TLS of one connection: crypto/tls on a socket that a loop watches.
//
// A handshake cannot be left and gone on with, so a goroutine does it and sleeps where the socket has
// nothing; the loop wakes it. After that the loop reads and writes: what crypto/tls cannot finish, since
// the socket has or takes no more, it goes on with at the next event.
type secure struct {
	fd      int
	id      int32
	tls     *tls.Conn
	state   atomic.Int32
	ready   chan struct{} // the socket has something to read
	err     error         // of the handshake
	drained bool          // nothing is to be read until the next event
	ended   bool          // the peer has closed: no further event says so
	rest    []byte        // what the socket did not take
	reader  reader
}

// Of a secure: who closes its socket depends on who has done with it first.
const (
	shaking int32 = iota
	shaken
	abandoned
)

// again says that a socket has or takes no more. It is temporary, so that crypto/tls goes on after it.
type again struct{}

func (again) Error() string   { return "nothing to read" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

var errAgain net.Error = again{}

// shake does the handshake and tells the loop when it is over.
func (s *secure) shake(config *tls.Config, to *doorbell) {
	s.tls = tls.Client(s, config)
	s.err = s.tls.Handshake()
	if s.state.CompareAndSwap(shaking, shaken) {
		to.ring(s)
		return
	}
	_ = unix.Close(s.fd)
}

// wake lets the handshake read on.
func (s *secure) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// abandon leaves socket and handshake to themselves; false: the handshake is over, the socket is the
// caller's.
func (s *secure) abandon() bool {
	if !s.state.CompareAndSwap(shaking, abandoned) {
		return false
	}
	s.wake() // it finds that nobody waits for it
	return true
}

// hear takes in an event of the socket, and whether the peer has closed it.
func (s *secure) hear(ended bool) {
	s.drained = false
	s.ended = s.ended || ended
}

// Read implements net.Conn.
func (s *secure) Read(to []byte) (int, error) {
	for {
		if s.drained {
			return 0, errAgain
		}
		n, errno := s.reader.read(s.fd, to)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			if s.state.Load() != shaking {
				return 0, errAgain
			}
			<-s.ready
		case errno != 0:
			return 0, errno
		case n == 0:
			return 0, io.EOF
		default:
			s.drained = n < len(to) && !s.ended && s.state.Load() == shaken
			return n, nil
		}
	}
}

// Write implements net.Conn. It takes all: what the socket does not take is kept for flush.
func (s *secure) Write(b []byte) (int, error) {
	s.rest = append(s.rest, b...)
	return len(b), s.flush()
}

// flush writes what is left; rest says whether something still is.
func (s *secure) flush() error {
	for len(s.rest) > 0 {
		n, errno := write(s.fd, s.rest)
		switch errno {
		case 0:
			s.rest = s.rest[:copy(s.rest, s.rest[n:])]
		case unix.EAGAIN:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
	return nil
}

// read is read(2) of what was meant.
func (s *secure) read(to []byte) (int, unix.Errno) {
	n, err := s.tls.Read(to)
	switch {
	case n > 0 || err == nil:
		return n, 0 // what is wrong is said again the next time
	case errors.Is(err, errAgain):
		return 0, unix.EAGAIN
	case err == io.EOF:
		return 0, 0
	}
	return 0, unix.ECONNRESET
}

// Close, LocalAddr, RemoteAddr, SetDeadline, SetReadDeadline and SetWriteDeadline implement net.Conn:
// the loop closes sockets and looks for time-outs.
func (*secure) Close() error                     { return nil }
func (*secure) LocalAddr() net.Addr              { return nil }
func (*secure) RemoteAddr() net.Addr             { return nil }
func (*secure) SetDeadline(time.Time) error      { return nil }
func (*secure) SetReadDeadline(time.Time) error  { return nil }
func (*secure) SetWriteDeadline(time.Time) error { return nil }

// doorbell tells a loop of the handshakes that are over.
type doorbell struct {
	mutex  sync.Mutex
	fd     int
	closed bool
	over   []*secure
}

// doorbellID is what epoll says instead of a connection.
const doorbellID = -1

func newDoorbell(p *poller) (*doorbell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &doorbell{fd: fd}, p.add(fd, doorbellID, 0, false)
}

func (d *doorbell) ring(s *secure) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.closed {
		_ = unix.Close(s.fd)
		return
	}
	d.over = append(d.over, s)
	_, _ = write(d.fd, binary.NativeEndian.AppendUint64(nil, 1))
}

// take gives the handshakes that are over, and waits for the next ones.
func (d *doorbell) take() []*secure {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var count [8]byte
	_, _ = unix.Read(d.fd, count[:])
	over := d.over
	d.over = nil
	return over
}

func (d *doorbell) close() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.closed = true
	for _, s := range d.over {
		_ = unix.Close(s.fd)
	}
	_ = unix.Close(d.fd)
}

// secured goes on with the connections whose handshakes are over.
func (e *engine) secured() {
	for _, s := range e.doorbell.take() {
		if e.places != nil {
			e.shakenLink(s)
			continue
		}
		c := &e.conns[s.id]
		switch {
		case c.secure != s:
			_ = unix.Close(s.fd) // given up meanwhile
		case s.err != nil:
			c.state = connecting // the socket is the loop's again
			e.unconnected(s.id, c)
		default:
			c.state = connecting
			e.connected(s.id, c)
		}
	}
}
