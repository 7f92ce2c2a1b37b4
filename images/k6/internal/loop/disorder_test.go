package loop

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Says to the test's own process that it is in a network of its own.
const apart = "LAPTIME_TEST_NETWORK"

var (
	ours   = [4]byte{10, 9, 9, 1}
	theirs = [4]byte{10, 9, 9, 2}
)

func TestAnAnswerIsNotThereBeforeItsFirstSegmentIs(t *testing.T) {
	if os.Getenv(apart) == "" {
		again := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), apart+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		said, err := again.CombinedOutput()
		if strings.Contains(string(said), "--- SKIP") {
			t.Skipf("%s", said)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, said)
		}
		return
	}
	const late = 300 * time.Millisecond
	wire, err := openWire()
	if err != nil {
		t.Skipf("no network of its own: %v", err)
	}
	for _, first := range []bool{false, true} {
		go wire.answerOne(first, late)
		p := drive(t, "10.9.9.2:80", Plan{Connections: 1, Total: 1, KeepAlive: true, Timeout: 20 * time.Second})
		took := time.Duration(decode(t, p.Endpoints["list"].Latency).Max()) * time.Microsecond
		if took < late {
			t.Errorf("first segment late %v: answered after %v, and all of it was there after %v", first, took, late)
		}
	}
}

// wire is the other end of an interface, where this process is the peer of its own kernel.
type wire struct{ file *os.File }

func openWire() (*wire, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq("test0")
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(socket) }()
	for _, one := range []struct {
		what    uint
		address [4]byte
	}{{unix.SIOCSIFADDR, ours}, {unix.SIOCSIFDSTADDR, theirs}} {
		if err := request.SetInet4Addr(one.address[:]); err != nil {
			return nil, err
		}
		if err := unix.IoctlIfreq(socket, one.what, request); err != nil {
			return nil, err
		}
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_POINTOPOINT | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return nil, err
	}
	return &wire{os.NewFile(uintptr(fd), "tun")}, nil
}

// answerOne takes one connection and answers its request in two segments: the second one late, or the first one
// after it, as if it had been lost and sent again.
func (w *wire) answerOne(firstIsLate bool, late time.Duration) {
	body := strings.Repeat("x", 1900)
	answer := []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	const start = 1000
	packet := make([]byte, 4096)
	for {
		n, err := w.file.Read(packet)
		if err != nil {
			return
		}
		head := int(packet[0]&15) * 4
		if packet[0]>>4 != 4 || packet[9] != unix.IPPROTO_TCP {
			continue
		}
		segment := packet[head:n]
		port := binary.BigEndian.Uint16(segment)
		sequence := binary.BigEndian.Uint32(segment[4:])
		data := segment[int(segment[12]>>4)*4:]
		const syn, push, ack = 2, 8, 16
		switch {
		case segment[13]&syn != 0:
			w.send(port, start-1, sequence+1, syn|ack, nil)
		case len(data) > 0:
			next := sequence + uint32(len(data))
			parts := [][]byte{answer[:1000], answer[1000:]}
			at := []uint32{start, start + 1000}
			which := []int{0, 1}
			if firstIsLate {
				which = []int{1, 0}
			}
			for i, one := range which {
				if i == 1 {
					time.Sleep(late)
				}
				w.send(port, at[one], next, push|ack, parts[one])
			}
			return
		}
	}
}

func (w *wire) send(port uint16, sequence, next uint32, flags byte, data []byte) {
	segment := make([]byte, 20, 20+len(data))
	binary.BigEndian.PutUint16(segment, 80)
	binary.BigEndian.PutUint16(segment[2:], port)
	binary.BigEndian.PutUint32(segment[4:], sequence)
	binary.BigEndian.PutUint32(segment[8:], next)
	segment[12], segment[13] = 5<<4, flags
	binary.BigEndian.PutUint16(segment[14:], 65000)
	segment = append(segment, data...)
	about := append(append(theirs[:], ours[:]...), 0, unix.IPPROTO_TCP, byte(len(segment)>>8), byte(len(segment)))
	binary.BigEndian.PutUint16(segment[16:], sum(append(about, segment...)))
	head := make([]byte, 20, 20+len(segment))
	head[0], head[8], head[9] = 0x45, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(head[2:], uint16(20+len(segment)))
	copy(head[12:], theirs[:])
	copy(head[16:], ours[:])
	binary.BigEndian.PutUint16(head[10:], sum(head))
	_, _ = w.file.Write(append(head, segment...))
}

// sum is the checksum of the Internet (RFC 1071).
func sum(of []byte) uint16 {
	if len(of)%2 == 1 {
		of = append(of, 0)
	}
	total := uint32(0)
	for i := 0; i < len(of); i += 2 {
		total += uint32(binary.BigEndian.Uint16(of[i:]))
	}
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	return ^uint16(total)
}
