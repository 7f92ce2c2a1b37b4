// Command server answers every request after a set amount of arithmetic, on one core: servers that
// differ by nothing, or by a known share of work. It prints the address that it listens on
// (loopback only) and ends when its standard input does.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

func main() {
	rounds := flag.Uint64("rounds", 500_000, "multiplications for each request")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	handler := http.NewServeMux()
	handler.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {})
	handler.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strconv.FormatUint(work(*rounds), 16))
	})
	fmt.Fprintln(os.Stderr, http.Serve(listener, handler))
	os.Exit(1)
}

// work is a linear congruential generator: each step needs the one before, so that its time is
// proportional to rounds.
func work(rounds uint64) uint64 {
	x := uint64(1)
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
