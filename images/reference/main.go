// Command reference answers scenario `users` rightly and with a limit that is known: what Laptime
// says of a server is tried on one of which the truth is known. It speaks WebSocket (/talk) and gRPC
// (echo.Echo) as well, each of which gives back what it gets. Never part of a release.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

// One statement, so that their number is that of the contract. What is materialized is done once
// before the rows are read: a pause without CPU, and rows that are made and counted. With a lock
// the pause begins when the statement has the first row, and who comes later waits for it.
const (
	pause     = `pause AS MATERIALIZED (SELECT pg_sleep($1))`
	pauseHeld = `one AS MATERIALIZED (SELECT user_id FROM "user" ORDER BY user_id LIMIT 1 FOR UPDATE),
     pause AS MATERIALIZED (SELECT pg_sleep($1) FROM one)`
	rest = `,
     work AS MATERIALIZED (SELECT count(*) AS n FROM generate_series(1, $2::integer))
SELECT u.user_id, u.username, u.email
FROM pause, work, "user" u WHERE work.n >= 0 ORDER BY u.user_id LIMIT 100`
)

type user struct {
	ID    string `json:"user_id" db:"user_id"`
	Name  string `json:"username" db:"username"`
	Email string `json:"email" db:"email"`
}

type server struct {
	settings
	pool  *pgxpool.Pool
	slots chan struct{}
	main  chan chan struct{} // of a worker process: what its main thread burns, one after the other
}

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	s, err := read()
	if err != nil {
		return err
	}
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	threads := max(1, s.workers)
	if s.processes > 1 {
		if os.Getenv(workerVariable) == "" {
			return fork(s.port, s.processes, stopped.Done())
		}
		threads = 2 // the main one, which computes, and one for all else: neither waits for the other
	}
	runtime.GOMAXPROCS(threads)
	config, err := pgxpool.ParseConfig(s.databaseURL)
	if err != nil {
		// pgx takes care that the password is not in it.
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	config.MaxConns = int32(s.connections)
	pool, err := pgxpool.NewWithConfig(stopped, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	one := &server{settings: s, pool: pool}
	burning := make(chan chan struct{})
	if os.Getenv(workerVariable) != "" {
		one.main = burning
	}
	if s.slots > 0 {
		one.slots = make(chan struct{}, s.slots)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /{$}", one.list)
	mux.HandleFunc("GET /talk", echo)
	mux.HandleFunc("POST /echo.Echo/Say", call)
	listener := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		Protocols:         &http.Protocols{},
	}
	listener.Protocols.SetHTTP1(true)
	listener.Protocols.SetUnencryptedHTTP2(true) // gRPC comes so
	go func() {
		<-stopped.Done()
		ending, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = listener.Shutdown(ending)
	}()
	socket, err := listen(s.port)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(socket) }()
	for {
		select {
		case burnt := <-burning:
			burn(s.burn)
			close(burnt)
		case err := <-ended:
			if errors.Is(err, http.ErrServerClosed) {
				return nil
			}
			return err
		}
	}
}

// statement is the only one of a request.
func (s settings) statement() string {
	if s.oneRow {
		return "WITH " + pauseHeld + rest
	}
	return "WITH " + pause + rest
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	if s.slots != nil {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	time.Sleep(s.hold)
	if s.main == nil {
		burn(s.burn)
	} else {
		burnt := make(chan struct{})
		s.main <- burnt
		<-burnt
	}
	rows, err := s.pool.Query(r.Context(), s.statement(), s.pause.Seconds(), s.rows)
	if err == nil {
		var users []user
		if users, err = pgx.CollectRows(rows, pgx.RowToStructByName[user]); err == nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(users)
			return
		}
	}
	log.Printf("query: %v", err)
	http.Error(w, `{"detail":"the database failed"}`, http.StatusInternalServerError)
}

// burn uses so much CPU time of its thread, however long that takes.
func burn(amount time.Duration) {
	if amount <= 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := used() + amount; used() < end; {
	}
}

// used is the CPU time of the calling thread.
func used() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
