// Command upstream stands for a service that servers under test ask: it answers a JSON document of
// a set size after a set time, to as many at once as come.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const (
	mostLatency = 10 * time.Second
	mostBytes   = 1_000_000
	// Longer than any server under test keeps an unused connection: it is theirs to close.
	idleTimeout = 5 * time.Minute
	grace       = 2 * time.Second
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	settings, err := read(os.Getenv)
	if err != nil {
		return err
	}
	handler, err := newHandler(settings.latency, settings.bytes)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(settings.port))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return serve(ctx, listener, handler)
}

// serve answers until ctx ends, and then finishes what is under way.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, IdleTimeout: idleTimeout, ReadHeaderTimeout: mostLatency}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		deadline, cancel := context.WithTimeout(context.Background(), mostLatency+grace)
		defer cancel()
		stopped <- server.Shutdown(deadline)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

type settings struct {
	port    int
	latency time.Duration
	bytes   int
}

// read takes PORT, LATENCY_SECONDS and ANSWER_BYTES; an error names the variable.
func read(variable func(string) string) (settings, error) {
	found := settings{port: 8080, latency: 50 * time.Millisecond, bytes: 5645}
	if text := variable("PORT"); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return found, fmt.Errorf("PORT: %q is no port", text)
		}
		found.port = port
	}
	if text := variable("LATENCY_SECONDS"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0 && seconds <= mostLatency.Seconds()) {
			return found, fmt.Errorf("LATENCY_SECONDS: %q is not within 0 … %v", text, mostLatency.Seconds())
		}
		found.latency = time.Duration(seconds * float64(time.Second))
	}
	if text := variable("ANSWER_BYTES"); text != "" {
		bytes, err := strconv.Atoi(text)
		if err != nil || bytes < leastBytes || bytes > mostBytes {
			return found, fmt.Errorf("ANSWER_BYTES: %q is not within %d … %d", text, leastBytes, mostBytes)
		}
		found.bytes = bytes
	}
	return found, nil
}

// newHandler answers GET /users with a document of so many bytes after the latency,
// GET /after/25ms/users after that one, and GET /healthz at once.
func newHandler(latency time.Duration, bytes int) (http.Handler, error) {
	document, err := users(bytes)
	if err != nil {
		return nil, err
	}
	answer := func(w http.ResponseWriter, r *http.Request, after time.Duration) {
		if after > 0 {
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context().Done(): // nobody waits for the answer any more
				return
			}
		}
		header := w.Header()
		header["Content-Type"] = []string{"application/json; charset=utf-8"}
		header["Content-Length"] = []string{strconv.Itoa(len(document))}
		_, _ = w.Write(document) // the client may be gone
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, r *http.Request) { answer(w, r, latency) })
	mux.HandleFunc("GET /after/{latency}/users", func(w http.ResponseWriter, r *http.Request) {
		after, err := time.ParseDuration(r.PathValue("latency"))
		if err != nil || after < 0 || after > mostLatency {
			http.Error(w, fmt.Sprintf("the latency is not within 0s … %v", mostLatency), http.StatusBadRequest)
			return
		}
		answer(w, r, after)
	})
	return mux, nil
}
