// Command go-nethttp serves the scenarios hello, upstream and posts with Go's own HTTP server.
//
// What it reads from the environment and promises is in docs/servers.md.
package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// gracePeriod is what requests in flight get to end after SIGTERM.
const gracePeriod = 4 * time.Second

func main() {
	settings, err := readSettings(os.Getenv)
	if err == nil {
		err = run(settings)
	}
	if err != nil {
		slog.Error("the server ended", "error", err)
		os.Exit(1)
	}
}

func run(settings settings) error {
	runtime.GOMAXPROCS(settings.workers)
	store, err := openPosts(settings)
	if err != nil {
		return err
	}
	if err := listenForProfiles(settings.host, settings.profilePort); err != nil {
		return err
	}
	handler := routes(store, newUpstream(settings.upstreamURL))
	if settings.accessLog {
		handler = logAccess(handler)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(settings.host, strconv.Itoa(settings.port)))
	if err != nil {
		return err
	}
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return serve(stopped, listener, handler, gracePeriod)
}

// serve answers until `stopped` is done, and then for at most `grace` those that still wait.
func serve(
	stopped context.Context, listener net.Listener, handler http.Handler, grace time.Duration,
) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second, Protocols: &http.Protocols{}}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := server.Shutdown(ending); errors.Is(err, context.DeadlineExceeded) {
		slog.Warn("requests were still running", "after", grace)
		return nil
	} else if err != nil {
		return err
	}
	return nil
}
