package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/net/bpf"
)

// callers know when each connection was asked for: when the kernel took in its first packet. What
// accept(2) gives comes after the answer to that, and when a thread has woken up.
type callers struct {
	mutex sync.Mutex
	asked map[int]int64 // by the caller's port, unix time in nanoseconds
}

// since gives when the connection of a port was asked for; port 0 is none, and so is its time.
func (c *callers) since(port int) int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.asked[port]
}

const (
	offsetProtocol = 9 // of IPv4
	offsetTo       = 2 // of TCP
	offsetFlags    = 13
	flagSyn        = 0x02
	flagAck        = 0x10
	kept           = 64 // bytes of a packet
)

// watchCallers watches the loopback device for who asks for connections to a port.
func watchCallers(port int) (*callers, error) {
	device, err := net.InterfaceByName("lo")
	if err != nil {
		return nil, err
	}
	protocol := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, syscall.ETH_P_IP))
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetProtocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: syscall.IPPROTO_TCP, SkipTrue: 7},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: offsetTo, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 4},
		bpf.LoadIndirect{Off: offsetFlags, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: flagSyn | flagAck},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: flagSyn, SkipTrue: 1},
		bpf.RetConstant{Val: kept},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return nil, err
	}
	filter := make([]syscall.SockFilter, len(program))
	for i, one := range program {
		filter[i] = syscall.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	if err := syscall.AttachLsf(fd, filter); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1); err != nil {
		return nil, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: protocol, Ifindex: device.Index}); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	c := &callers{asked: map[int]int64{}}
	go c.watch(fd)
	return c, nil
}

func (c *callers) watch(fd int) {
	packet, control := make([]byte, kept), make([]byte, 128)
	for {
		n, controls, _, from, err := syscall.Recvmsg(fd, packet, control, 0)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			fatal(fmt.Errorf("watching for callers: %w", err))
		}
		link, known := from.(*syscall.SockaddrLinklayer)
		header := int(packet[0]&0xf) * 4
		// Each packet of this device is seen twice, as it leaves and as it arrives.
		if !known || link.Pkttype != syscall.PACKET_HOST || n < header+2 {
			continue
		}
		port := int(binary.BigEndian.Uint16(packet[header:]))
		at := received(control[:controls])
		c.mutex.Lock()
		c.asked[port] = at
		c.mutex.Unlock()
	}
}
