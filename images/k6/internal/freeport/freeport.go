// Package freeport gives tests addresses at which nobody listens, and nobody will by chance.
package freeport

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

const (
	first = 24000
	// many ports end below those that the kernel gives to whoever asks for any (32768).
	many = 8000
)

var given atomic.Uint32

// Address returns an address of this machine with a port that is free. The kernel gives it to no
// other test that asks for any port, and no other test program begins with it.
func Address(t testing.TB) string {
	t.Helper()
	for range many {
		port := first + (uint32(os.Getpid())*61+given.Add(1))%many
		address := fmt.Sprintf("127.0.0.1:%d", port)
		if listener, err := net.Listen("tcp", address); err == nil {
			_ = listener.Close()
			return address
		}
	}
	t.Fatalf("no port from %d to %d is free", first, first+many-1)
	return ""
}
