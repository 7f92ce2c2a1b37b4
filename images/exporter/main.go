// Command exporter says how Postgres or PgBouncer of a run is doing, for Prometheus.
//
// It runs beside the database in the same pod and asks when it is scraped, once and in one round
// trip: at one scrape a second, the exporters that ask for everything cost several times as much as
// the node agent does for all pods.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const shutdownTimeout = time.Second

func main() {
	log.SetFlags(0)
	listen := flag.String("listen", ":9187", "address of /metrics")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: exporter [-listen ADDRESS] postgres|pgbouncer\n\n"+
			"The password of user laptime is read from $POSTGRES_PASSWORD.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	source, err := newSource(flag.Arg(0), os.Getenv("POSTGRES_PASSWORD"))
	if err != nil || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := serve(*listen, source); err != nil {
		log.Fatal(err)
	}
}

// newSource returns what `kind` names, on this pod's loopback.
func newSource(kind, password string) (*source, error) {
	switch kind {
	case "postgres":
		return newPostgres("127.0.0.1:5432", password), nil
	case "pgbouncer":
		return newPgBouncer("127.0.0.1:6432", password), nil
	default:
		return nil, fmt.Errorf("no source is called %q", kind)
	}
}

func serve(listen string, source *source) error {
	server := &http.Server{
		Addr:              listen,
		Handler:           handler(source),
		ReadHeaderTimeout: 5 * time.Second,
	}
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		<-stopped.Done()
		ending, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ending)
	}()
	err := server.ListenAndServe()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// handler answers /metrics from `source`, and /healthz.
func handler(source *source) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(source)
	mux := http.NewServeMux()
	// Compression would cost more than the loopback or the pod network saves.
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	return mux
}
