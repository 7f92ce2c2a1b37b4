package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func serving(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	one := newServer()
	go func() { _ = one.serve(listener) }()
	return listener.Addr().String(), &one.left
}

func TestBothDirectionsAreMeasured(t *testing.T) {
	address, left := serving(t)
	found := ask(address, time.Second)
	if !found.OK || found.ToServer <= 0 || found.FromServer <= 0 || found.RoundTripSeconds <= 0 {
		t.Errorf("found %+v", found)
	}
	if left.Load() > mostBytes-chunkBytes {
		t.Errorf("nothing was sent: %d bytes are left", left.Load())
	}
}

// throttled has everything that leads to an address go through a program that lets through so many bytes a second each way.
func throttled(t *testing.T, address string, bytesPerSecond int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	buckets := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	const piece = 64 << 10
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	for _, bucket := range buckets {
		go func() {
			next := time.Now()
			for {
				// What was not used is not saved up.
				if now := time.Now(); next.Before(now) {
					next = now
				}
				next = next.Add(time.Second * piece / time.Duration(bytesPerSecond))
				time.Sleep(time.Until(next))
				select {
				case bucket <- struct{}{}:
				case <-over:
					return
				}
			}
		}()
	}
	pass := func(to, from *net.TCPConn, bucket chan struct{}) {
		defer to.CloseWrite()
		buffer := make([]byte, piece)
		for {
			// A whole piece counts, however little was there: no more comes through than was said.
			n, err := from.Read(buffer)
			if n > 1 {
				select {
				case <-bucket:
				case <-over:
					return
				}
			}
			if _, wrong := to.Write(buffer[:n]); wrong != nil || err != nil {
				return
			}
		}
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", address)
			if err != nil {
				connection.Close()
				return
			}
			near, far := connection.(*net.TCPConn), behind.(*net.TCPConn)
			for _, one := range []*net.TCPConn{near, far} {
				_ = one.SetReadBuffer(piece)
				_ = one.SetWriteBuffer(piece)
			}
			go pass(far, near, buckets[0])
			go pass(near, far, buckets[1])
		}
	}()
	return listener.Addr().String()
}

func TestNoMoreIsFoundThanAPathLetsThrough(t *testing.T) {
	const most = 64 << 20
	address, _ := serving(t)
	found := ask(throttled(t, address, most), time.Second)
	for name, rate := range map[string]float64{"to": found.ToServer, "from": found.FromServer} {
		// It lets through what a piece is long after it said so.
		if !found.OK || rate > 1.1*most || rate <= 0 {
			t.Errorf("%s the server %.0f bytes a second of %d: %+v", name, rate, most, found)
		}
	}
}

// Beside others that take the CPUs the path of this test itself lets less through.
func TestTimedWhatAPathLetsThroughIsFound(t *testing.T) {
	const most = 64 << 20
	address, _ := serving(t)
	found := ask(throttled(t, address, most), time.Second)
	if !found.OK || found.ToServer < 0.5*most || found.FromServer < 0.5*most {
		t.Errorf("of %d bytes a second: %+v", most, found)
	}
}

func TestAServerServesOneMeasurementAlone(t *testing.T) {
	address, left := serving(t)
	if found := ask(address, time.Second); !found.OK {
		t.Fatalf("found %+v", found)
	}
	left.Store(0)
	if found := ask(address, time.Second); found.OK || !strings.Contains(found.Message, "nothing arrived") {
		t.Errorf("found %+v", found)
	}
}

func TestNobodyServes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	found := ask(address, 300*time.Millisecond)
	if found.OK || !strings.Contains(found.Message, "refused") {
		t.Errorf("found %+v", found)
	}
}

func TestWhoServesMayBeLate(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	late := make(chan error, 1)
	go func() {
		time.Sleep(300 * time.Millisecond)
		again, err := net.Listen("tcp", address)
		late <- err
		if err == nil {
			_ = newServer().serve(again)
		}
	}()
	found := ask(address, 30*time.Second)
	if err := <-late; err != nil {
		t.Skipf("somebody else took the port: %v", err)
	}
	if !found.OK {
		t.Errorf("found %+v", found)
	}
}

func TestWhatIsFoundIsOneLineOfJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "found")
	if err := write(Found{OK: true, RoundTripSeconds: 0.25, ToServer: 5, FromServer: 7}, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%q: %v", text, err)
	}
	if read["fromServerBytesPerSecond"] != 7.0 || read["toServerBytesPerSecond"] != 5.0 || read["ok"] != true {
		t.Errorf("read %v", read)
	}
}

func TestTheRateIsOfWhatArrivedAndAtLeastThatWhereACPUWasBusy(t *testing.T) {
	second := int64(time.Second)
	idle := received{Bytes: 400, First: second, Last: 3 * second, CPU: second / 2}
	if found, atLeast, err := rate(idle, second/2); err != nil || found != 200 || atLeast {
		t.Errorf("%v, %v, %v", found, atLeast, err)
	}
	if found, atLeast, err := rate(idle, 17*second/10); err != nil || found != 200 || !atLeast {
		t.Errorf("%v, %v, %v", found, atLeast, err)
	}
	full := received{Bytes: 400, First: second, Last: 3 * second, CPU: 17 * second / 10}
	if found, atLeast, err := rate(full, 0); err != nil || found != 200 || !atLeast {
		t.Errorf("%v, %v, %v", found, atLeast, err)
	}
	if _, _, err := rate(received{}, 0); err == nil {
		t.Error("nothing arrived, and there is a rate")
	}
}

func TestWhatComesAfterTheFirstConnectionHasEndedDoesNotCount(t *testing.T) {
	one := meter{began: time.Now()}
	one.add(100)
	one.add(50)
	one.end()
	counted := one.found()
	one.add(1000)
	one.end()
	if found := one.found(); found != counted || found.Bytes != 150 {
		t.Errorf("%+v after %+v", found, counted)
	}
}
