// Command bandwidth measures what two nodes of a cluster exchange: one of it serves on the node of a server, one asks
// on the node of a generator.
//
//	bandwidth serve ADDRESS                 serve one measurement
//	bandwidth ask ADDRESS SECONDS [FILE]    wait SECONDS at most for who serves; write what was measured to FILE
//
// Each direction is filled for a second, or with 256 MiB, whatever comes first, by eight connections: a path may give
// one connection less than it has. What arrived counts, from the first byte of them all until the first of them has
// ended: behind that some wait for a lost packet to be sent again, and the path has nothing to carry. Where either of
// the two used a CPU for more than half of that time, the path may carry more.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	connections = 8
	pings       = 20
	longest     = time.Second
	mostBytes   = 256 << 20
	chunkBytes  = 256 << 10
	// Who neither sends nor takes anything for so long is gone.
	silence = 10 * time.Second
	// Buffers of a slow path are still full when the last byte was sent.
	draining = 30 * time.Second
	// Of one CPU: who used more than that may have been the limit.
	busy = 0.5

	ping, toServer, fromServer, used = 'p', 't', 'f', 'u'

	terminationLog = "/dev/termination-log"
)

// Found is what was measured. Of what was not there is a reason instead.
type Found struct {
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
	// The shortest time until an answer of one byte was there.
	RoundTripSeconds float64 `json:"roundTripSeconds,omitempty"`
	ToServer         float64 `json:"toServerBytesPerSecond,omitempty"`
	FromServer       float64 `json:"fromServerBytesPerSecond,omitempty"`
	// Whether the CPUs of the two may have been what kept more from coming.
	ToServerAtLeast   bool `json:"toServerAtLeast,omitempty"`
	FromServerAtLeast bool `json:"fromServerAtLeast,omitempty"`
}

// cpuTime is what this process has used of CPUs so far.
func cpuTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func main() {
	args := os.Args[1:]
	switch {
	case len(args) == 2 && args[0] == "serve":
		listener, err := net.Listen("tcp", args[1])
		if err == nil {
			err = newServer().serve(listener)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case (len(args) == 3 || len(args) == 4) && args[0] == "ask":
		to := terminationLog
		if len(args) == 4 {
			to = args[3]
		}
		seconds, err := strconv.ParseFloat(args[2], 64)
		if err == nil {
			err = write(ask(args[1], time.Duration(seconds*float64(time.Second))), to)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: bandwidth serve ADDRESS, or bandwidth ask ADDRESS SECONDS [FILE]")
		os.Exit(2)
	}
}

// write stores what was found; that nothing could be measured is an answer, too.
func write(found Found, to string) error {
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

// server serves one measurement: what it sends is bounded for all that ask it together.
type server struct {
	got   meter
	left  atomic.Int64
	until sync.Once
	end   time.Time
	// What the process had used of CPUs when it began to send.
	before atomic.Int64
}

func newServer() *server {
	one := &server{got: meter{began: time.Now()}}
	one.left.Store(mostBytes)
	return one
}

func (s *server) serve(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			// Whoever asked sees that its answer is missing.
			_ = s.answer(connection)
		}()
	}
}

func (s *server) answer(connection net.Conn) error {
	if err := connection.SetDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	what := make([]byte, 1)
	for {
		if _, err := io.ReadFull(connection, what); err != nil {
			return err
		}
		switch what[0] {
		case ping:
			if _, err := connection.Write(what); err != nil {
				return err
			}
		case toServer:
			if err := s.got.receive(connection); err != nil {
				return err
			}
			got := s.got.found()
			if err := connection.SetWriteDeadline(time.Now().Add(silence)); err != nil {
				return err
			}
			return binary.Write(connection, binary.BigEndian, got)
		case fromServer:
			s.until.Do(func() {
				s.before.Store(cpuTime())
				s.end = time.Now().Add(longest)
			})
			return send(connection, &s.left, s.end)
		case used:
			// Since then nothing else was done here.
			return binary.Write(connection, binary.BigEndian, cpuTime()-s.before.Load())
		default:
			return fmt.Errorf("nobody asks for %q", what)
		}
	}
}

// received is what came over all connections: how much, when, and what this process used of CPUs meanwhile. Times are in
// nanoseconds since a time that all connections share.
type received struct {
	Bytes, First, Last, CPU int64
}

// meter counts what all connections of a direction receive, until the first of them ends.
type meter struct {
	began time.Time

	mutex  sync.Mutex
	got    received
	before int64
	over   bool
}

func (m *meter) add(bytes int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.over {
		return
	}
	now := int64(time.Since(m.began))
	if m.got.Bytes == 0 {
		m.got.First, m.before = now, cpuTime()
	}
	m.got.Bytes += int64(bytes)
	m.got.Last = now
}

func (m *meter) end() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.over {
		m.over = true
		m.got.CPU = cpuTime() - m.before
	}
}

func (m *meter) found() received {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.got
}

// receive counts what comes over a connection until its end.
func (m *meter) receive(from net.Conn) error {
	buffer := make([]byte, chunkBytes)
	for bytes := 0; bytes < 2*mostBytes; {
		if err := from.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		n, err := from.Read(buffer)
		if n > 0 {
			m.add(n)
			bytes += n
		}
		if errors.Is(err, io.EOF) {
			m.end()
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d bytes", 2*mostBytes)
}

// send sends until the time is over or nothing is left of what all connections may send together.
func send(connection net.Conn, left *atomic.Int64, end time.Time) error {
	if err := connection.SetWriteDeadline(end); err != nil {
		return err
	}
	buffer := make([]byte, chunkBytes)
	for left.Add(-chunkBytes) >= 0 {
		_, err := connection.Write(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return err
		}
	}
	if tcp, ok := connection.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// ask measures the path to who serves at an address, which may not serve yet.
func ask(address string, patience time.Duration) Found {
	trip, err := roundTrip(address, time.Now().Add(patience))
	if err != nil {
		return Found{Message: err.Error()}
	}
	to, toLeast, err := fill(address, toServer)
	if err != nil {
		return Found{Message: err.Error()}
	}
	from, fromLeast, err := fill(address, fromServer)
	if err != nil {
		return Found{Message: err.Error()}
	}
	return Found{
		OK:                true,
		RoundTripSeconds:  trip.Seconds(),
		ToServer:          to,
		FromServer:        from,
		ToServerAtLeast:   toLeast,
		FromServerAtLeast: fromLeast,
	}
}

func roundTrip(address string, until time.Time) (time.Duration, error) {
	var connection net.Conn
	for {
		var err error
		if connection, err = net.DialTimeout("tcp", address, time.Second); err == nil {
			break
		}
		if time.Now().After(until) {
			return 0, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	shortest := silence
	one := []byte{ping}
	for range pings {
		began := time.Now()
		if _, err := connection.Write(one); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(connection, one); err != nil {
			return 0, err
		}
		shortest = min(shortest, time.Since(began))
	}
	return shortest, nil
}

// fill fills one direction and returns bytes per second as who received them saw them, and whether that may have been
// as many as it had CPU time for.
func fill(address string, direction byte) (float64, bool, error) {
	opened := make([]net.Conn, 0, connections)
	defer func() {
		for _, one := range opened {
			one.Close()
		}
	}()
	for range connections {
		connection, err := net.DialTimeout("tcp", address, silence)
		if err != nil {
			return 0, false, err
		}
		opened = append(opened, connection)
		if err := connection.SetDeadline(time.Now().Add(silence)); err != nil {
			return 0, false, err
		}
	}
	var (
		left    atomic.Int64
		waiting sync.WaitGroup
		failed  [connections]error
		told    [connections]received
	)
	left.Store(mostBytes)
	here := meter{began: time.Now()}
	before := cpuTime()
	for index, connection := range opened {
		waiting.Go(func() {
			if _, failed[index] = connection.Write([]byte{direction}); failed[index] != nil {
				return
			}
			if direction == fromServer {
				failed[index] = here.receive(connection)
				return
			}
			told[index], failed[index] = sendAndAsk(connection, &left, here.began.Add(longest))
		})
	}
	waiting.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return 0, false, err
	}
	if direction == toServer {
		// After the first connection has ended all are told the same.
		return rate(told[0], cpuTime()-before)
	}
	sending, err := usedBySending(address)
	if err != nil {
		return 0, false, err
	}
	return rate(here.found(), sending)
}

// usedBySending asks who served what it used of CPUs while it sent.
func usedBySending(address string) (int64, error) {
	connection, err := net.DialTimeout("tcp", address, silence)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	if _, err := connection.Write([]byte{used}); err != nil {
		return 0, err
	}
	var found int64
	err = binary.Read(connection, binary.BigEndian, &found)
	return found, err
}

// sendAndAsk sends over a connection and returns what arrived of all of them.
func sendAndAsk(connection net.Conn, left *atomic.Int64, end time.Time) (received, error) {
	if err := send(connection, left, end); err != nil {
		return received{}, err
	}
	if err := connection.SetReadDeadline(time.Now().Add(draining)); err != nil {
		return received{}, err
	}
	var got received
	err := binary.Read(connection, binary.BigEndian, &got)
	return got, err
}

// rate returns what arrived in a second; `sending` is what who sent it used of CPUs.
func rate(got received, sending int64) (float64, bool, error) {
	if got.Last <= got.First {
		return 0, false, errors.New("nothing arrived")
	}
	took := float64(got.Last - got.First)
	perSecond := float64(got.Bytes) / (took / float64(time.Second))
	return perSecond, float64(max(got.CPU, sending)) > busy*took, nil
}
