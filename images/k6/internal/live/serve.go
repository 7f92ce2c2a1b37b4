package live

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// Who connects is not known: no client may hold a scrape open.
	longestScrape = 5 * time.Second
	// A scrape takes CPU from the load.
	scrapesAtOnce = 2
)

// Serve shows the figures of the named phases at http://address/metrics until stop is called. With an
// empty address, or where it cannot listen, the figures are nil. What goes wrong is one line in notes
// and never an error: a trial without live figures is as good.
func Serve(address string, notes io.Writer, phases ...string) (figures *Figures, stop func()) {
	if address == "" {
		return nil, func() {}
	}
	note := newNote(notes)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		note.Print(err)
		return nil, func() {}
	}
	figures = New(phases...)
	server := &http.Server{
		Handler: figures.handler(note), ErrorLog: note,
		ReadTimeout: longestScrape, WriteTimeout: longestScrape, MaxHeaderBytes: 16 << 10,
	}
	var serving sync.WaitGroup
	serving.Add(1)
	go func() {
		defer serving.Done()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			note.Print(err)
		}
	}()
	return figures, func() {
		_ = server.Close()
		serving.Wait()
	}
}

func (f *Figures) handler(note *log.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(f)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: note, ErrorHandling: promhttp.HTTPErrorOnError,
		MaxRequestsInFlight: scrapesAtOnce,
		// Packing the few kilobytes would cost more than sending them.
		DisableCompression: true,
	}))
	return mux
}

func newNote(to io.Writer) *log.Logger {
	return log.New(&firstWrite{to: to}, "laptime: no live figures: ", 0)
}

// firstWrite passes the first write on: what fails at one scrape fails at each.
type firstWrite struct {
	once sync.Once
	to   io.Writer
}

func (w *firstWrite) Write(text []byte) (int, error) {
	w.once.Do(func() { _, _ = w.to.Write(text) })
	return len(text), nil
}
