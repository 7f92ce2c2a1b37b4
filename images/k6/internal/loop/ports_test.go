package loop

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// In the network of withFewPorts there are so many, one of which is the server's.
const fewPorts = 10

const inFewPorts = "LAPTIME_TEST_FEW_PORTS"

// withFewPorts runs a test once more in a network of its own, in which there are few ports to connect from.
func withFewPorts(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv(inFewPorts) != "" {
		if output, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40009"), 0o644); err != nil {
			t.Fatal(err)
		}
		test(t)
		return
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip(8)")
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inFewPorts+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	output, err := again.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("makes a network namespace: needs root")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// held answers when all that can connect have, so that no port comes free before.
func held(w http.ResponseWriter, _ *http.Request) {
	time.Sleep(20 * time.Millisecond)
	_, _ = io.WriteString(w, "hello")
}

func TestPortsThatRanOutAreTheGenerators(t *testing.T) {
	withFewPorts(t, func(t *testing.T) {
		server, requests, connections := serve(t, held)
		p := drive(t, server.Listener.Addr().String(), Plan{Connections: 2 * fewPorts, Total: 400, KeepAlive: true})
		if p.Responses == 0 || p.Responses != requests.Load() || connections.Load() != fewPorts-1 {
			t.Errorf("%d responses of %d requests over %d connections", p.Responses, requests.Load(), connections.Load())
		}
		only(t, p, "port", 400-p.Responses)
		if p.Errors["port"] == 0 {
			t.Error("no request was without a port")
		}
	})
}

func TestPortsThatRanOutAreTheGeneratorsOverHTTP2(t *testing.T) {
	withFewPorts(t, func(t *testing.T) {
		address, _, _, _ := serve2(t, false, 0, held)
		p := drive(t, address, Plan{Connections: 2 * fewPorts, Total: 400, KeepAlive: true, HTTP2: true, Streams: 1})
		only(t, p, "port", 400-p.Responses)
		if p.Errors["port"] == 0 || p.Responses == 0 {
			t.Errorf("%d without a port, %d answered", p.Errors["port"], p.Responses)
		}
	})
}

// A connection that is dropped leaves its port free at once: a load without keep-alive needs no more ports than
// it has connections, however many requests it sends.
func TestConnectionsGiveTheirPortsBack(t *testing.T) {
	withFewPorts(t, func(t *testing.T) {
		server, _, connections := serve(t, hello)
		p := drive(t, server.Listener.Addr().String(), Plan{Connections: fewPorts / 2, Total: 3_000})
		only(t, p, "", 0)
		if connections.Load() != 3_000 {
			t.Errorf("%d connections", connections.Load())
		}
	})
}
