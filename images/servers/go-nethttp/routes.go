package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
)

// bodies are buffers to use again: one for each answer would be most of what there is to collect.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// routes returns what answers all requests; `posts` and `upstream` are nil in a run without them.
func routes(posts posts, upstream *upstream) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /hi", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{"hello": "world"})
	})
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, r *http.Request) {
		if upstream == nil {
			http.Error(w, "UPSTREAM_URL is not set", http.StatusServiceUnavailable)
			return
		}
		users, err := upstream.users(r.Context())
		if err != nil {
			fail(w, http.StatusBadGateway, err)
			return
		}
		answer(w, users)
	})
	mux.HandleFunc("GET /posts", func(w http.ResponseWriter, r *http.Request) {
		if posts == nil {
			http.Error(w, "DATABASE_URL is not set", http.StatusServiceUnavailable)
			return
		}
		latest, err := posts.latest(r.Context())
		if err != nil {
			fail(w, http.StatusInternalServerError, err)
			return
		}
		answer(w, latest)
	})
	return mux
}

// answer sends `value` as JSON in one piece.
func answer(w http.ResponseWriter, value any) {
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	if err := json.NewEncoder(body).Encode(value); err != nil {
		fail(w, http.StatusInternalServerError, err)
		return
	}
	body.Truncate(body.Len() - 1) // the encoder ends with a new line
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	if _, err := w.Write(body.Bytes()); err != nil {
		slog.Debug("the client went away", "error", err)
	}
}

// fail answers with a status; what went wrong is for the log and not for the client.
func fail(w http.ResponseWriter, status int, err error) {
	slog.Error("request failed", "status", status, "error", err)
	http.Error(w, http.StatusText(status), status)
}

// logAccess writes a line for each request.
func logAccess(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r)
		slog.Info("access", "method", r.Method, "uri", r.RequestURI, "status", recorder.status)
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
