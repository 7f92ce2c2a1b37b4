package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// mostProfileSeconds is more than anybody waits for a profile.
const mostProfileSeconds = 600

// listenForProfiles serves profiles on a port of their own; 0 is none.
func listenForProfiles(host string, port int) error {
	if port == 0 {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: profiles(), ReadHeaderTimeout: 30 * time.Second}
	go func() {
		slog.Error("profiles are not served any more", "error", server.Serve(listener))
	}()
	return nil
}

// profiles answers `GET /profile?seconds=N` with what the CPU did in the N seconds from then on.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /profile", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.URL.Query().Get("seconds"))
		if err != nil || seconds < 1 || seconds > mostProfileSeconds {
			http.Error(w, fmt.Sprintf("seconds must be 1 to %d", mostProfileSeconds), http.StatusBadRequest)
			return
		}
		var sampled bytes.Buffer
		if err := pprof.StartCPUProfile(&sampled); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-r.Context().Done():
		}
		pprof.StopCPUProfile()
		var folded bytes.Buffer
		if err := fold(&sampled, &folded); err != nil {
			fail(w, http.StatusInternalServerError, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if _, err := folded.WriteTo(w); err != nil {
			slog.Debug("the client went away", "error", err)
		}
	})
	return mux
}

// fold writes a profile as folded stacks: the functions of a stack from the outermost one on, and
// how many samples have it.
func fold(sampled io.Reader, folded io.Writer) error {
	parsed, err := profile.Parse(sampled)
	if err != nil {
		return err
	}
	var failures []error
	for _, sample := range parsed.Sample {
		var frames []string
		// The innermost function comes first, in the stack and among those inlined in one place.
		for i := len(sample.Location) - 1; i >= 0; i-- {
			lines := sample.Location[i].Line
			for j := len(lines) - 1; j >= 0; j-- {
				// As in `struct { a int; b int }`, an argument of a generic function.
				frames = append(frames, strings.ReplaceAll(lines[j].Function.Name, ";", ","))
			}
		}
		_, err := fmt.Fprintf(folded, "%s %d\n", strings.Join(frames, ";"), sample.Value[0])
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}
