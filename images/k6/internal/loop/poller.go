package loop

import (
	"errors"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller waits for events with nanosecond time-outs, which a precise arrival schedule needs.
type poller struct {
	fd     int
	coarse bool // no epoll_pwait2: sleep whole milliseconds, poll for the rest
	events []unix.EpollEvent
}

func newPoller() (poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return poller{}, err
	}
	return poller{fd: fd, events: make([]unix.EpollEvent, batch)}, nil
}

func (p *poller) close() { _ = unix.Close(p.fd) }

// sharpen takes the kernel's usual 50 µs of timer slack from this thread.
func (p *poller) sharpen() {
	// Best effort: without it arrivals are issued up to 50 µs late, which the lateness shows.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// wait gives the events that came within ns nanoseconds, none when none came.
func (p *poller) wait(ns int64) ([]unix.EpollEvent, error) {
	ns = max(ns, 0)
	if !p.coarse {
		n, errno := p.pwait2(ns)
		switch errno {
		case 0:
			return p.events[:n], nil
		case unix.EINTR:
			return nil, nil
		case unix.ENOSYS, unix.EPERM: // an old kernel, or a seccomp profile older than the call
			p.coarse = true
		default:
			return nil, errno
		}
	}
	n, err := unix.EpollWait(p.fd, p.events, int(ns/int64(time.Millisecond)))
	if errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.events[:n], nil
}

// pwait2 sleeps without telling Go's scheduler. Told, it would take the processor from the loop after
// 20 µs and give it back at every event, with a monitor thread awake all the time for that; so each
// loop just keeps one of the GOMAXPROCS that Run has added. A stop of the world still gets through:
// its signal ends the wait with EINTR.
func (p *poller) pwait2(ns int64) (int, unix.Errno) {
	timeout := unix.NsecToTimespec(ns)
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	return int(n), errno
}

const reads = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff

// add watches a socket once and for all, edge-triggered: no further epoll_ctl per request.
func (p *poller) add(fd int, id, gen int32, writes bool) error {
	events := uint32(reads)
	if writes {
		events |= unix.EPOLLOUT
	}
	return p.control(unix.EPOLL_CTL_ADD, fd, unix.EpollEvent{Events: events, Fd: id, Pad: gen})
}

// watchWrites also asks for events when a full socket takes bytes again.
func (p *poller) watchWrites(fd int, id, gen int32) error {
	return p.control(unix.EPOLL_CTL_MOD, fd, unix.EpollEvent{Events: reads | unix.EPOLLOUT, Fd: id, Pad: gen})
}

func (p *poller) control(op, fd int, event unix.EpollEvent) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.fd), uintptr(op), uintptr(fd),
		uintptr(unsafe.Pointer(&event)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
