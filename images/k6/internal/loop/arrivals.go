package loop

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reader reads from sockets, and hears from the kernel when what it reads arrived. Between that moment and
// the reading lies what is no server's: the loop wakes up, gets its turn on a CPU that others use too, and
// deals first with what came before.
type reader struct {
	header  unix.Msghdr
	vector  unix.Iovec
	control [8]uint64 // aligned as a control message has to be
	stamp   int64     // of what was read last: Unix time in nanoseconds; 0: the kernel did not say
}

// stampArrivals asks for these moments. Best effort: where the kernel says none, those of the reading count.
func stampArrivals(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }

func (r *reader) read(fd int, b []byte) (int, unix.Errno) {
	r.vector.Base = &b[0]
	r.vector.SetLen(len(b))
	r.header.Iov, r.header.Iovlen = &r.vector, 1
	r.header.Control = (*byte)(unsafe.Pointer(&r.control))
	r.header.SetControllen(int(unsafe.Sizeof(r.control)))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.header)), 0)
	if errno == 0 {
		r.stamp = r.stamped()
	}
	return int(n), errno
}

// stamped is the time that the kernel gave with the last of what was read.
func (r *reader) stamped() int64 {
	const head = unsafe.Sizeof(unix.Cmsghdr{})
	if uintptr(r.header.Controllen) < head+unsafe.Sizeof(unix.Timespec{}) {
		return 0
	}
	one := (*unix.Cmsghdr)(unsafe.Pointer(&r.control))
	if one.Level != unix.SOL_SOCKET || one.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	at := (*unix.Timespec)(unsafe.Add(unsafe.Pointer(&r.control), head))
	return at.Nano()
}

// moment is when something arrived and when it was read, in nanoseconds since the epoch.
type moment struct{ arrived, read int64 }

// moment is that of something that is read now. The kernel's stamp is a time of day: how long ago that is
// holds on the monotonic clock as well, unless the time of day was set meanwhile.
func (s *shared) moment(stamp int64) moment {
	now := time.Now()
	read := int64(now.Sub(s.epoch))
	if ago := now.UnixNano() - stamp; stamp > 0 && ago > 0 {
		return moment{read - ago, read}
	}
	return moment{read, read}
}

// mostUnread is for how long an answer may have been there before somebody asks whether all of it was.
const mostUnread = int64(time.Millisecond)

// inOrder is the moment of what was read from a socket. The kernel's stamp is that of the last segment of the stream,
// and one before it may have come later: lost and sent again, it lets all be read. Then the moment of the reading
// counts. disorder is how many segments had come before their turn by the last time that somebody asked.
func (m moment) inOrder(fd int, disorder *uint32) moment {
	if m.read-m.arrived <= mostUnread {
		return m
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err == nil && info.Rcv_ooopack != *disorder {
		*disorder = info.Rcv_ooopack
		m.arrived = m.read
	}
	return m
}

// since is the moment of something that cannot have arrived before: if the clock was set, it was when it
// was read.
func (m moment) since(earliest int64) moment {
	if m.arrived < earliest {
		m.arrived = m.read
	}
	return m
}
