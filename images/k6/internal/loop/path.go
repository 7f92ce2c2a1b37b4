package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// Path is what the kernel knows of the way to the servers, of connections that it was asked about: all
// that are kept, and of those that are made for each request every 16th.
type Path struct {
	Shortest   time.Duration // of a segment there and back, its acknowledgement's; 0: not known
	Sent       int64         // segments with something in them
	SentAgain  int64         // also the first of a connection that nobody took
	OutOfOrder int64         // segments that came before others: those were late, or lost and sent again
}

const pathEvery = 16

// see asks the kernel about a connection. Best effort: what it does not know is left out.
func (p *Path) see(fd int) {
	if fd < 0 {
		return
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return
	}
	// Where nothing was measured all bits are set.
	if shortest := time.Duration(info.Min_rtt) * time.Microsecond; info.Min_rtt > 0 && shortest < time.Hour {
		if p.Shortest == 0 || shortest < p.Shortest {
			p.Shortest = shortest
		}
	}
	p.Sent += int64(info.Data_segs_out)
	p.SentAgain += int64(info.Total_retrans)
	p.OutOfOrder += int64(info.Rcv_ooopack)
}

func (p *Path) add(other Path) {
	if p.Shortest == 0 || other.Shortest > 0 && other.Shortest < p.Shortest {
		p.Shortest = other.Shortest
	}
	p.Sent += other.Sent
	p.SentAgain += other.SentAgain
	p.OutOfOrder += other.OutOfOrder
}

// seePath asks about all connections that are there.
func (e *engine) seePath() {
	for i := range e.conns {
		e.path.see(e.conns[i].fd)
	}
	for _, l := range e.links {
		if l != nil {
			e.path.see(l.fd)
		}
	}
}
