package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func get(t *testing.T, handler http.Handler, path string) (int, string) {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder.Code, recorder.Body.String()
}

func settingsOf(t *testing.T, variables map[string]string) settings {
	t.Helper()
	read, err := readSettings(func(name string) string { return variables[name] })
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestAnswersWithoutDatabaseAndUpstream(t *testing.T) {
	handler := routes(nil, newUpstream(""))
	for path, expected := range map[string]struct {
		status int
		body   string
	}{
		"/healthz": {200, `{"status":"ok"}`},
		"/hi":      {200, `{"hello":"world"}`},
		"/users":   {503, "UPSTREAM_URL is not set\n"},
		"/posts":   {503, "DATABASE_URL is not set\n"},
		"/nothing": {404, "404 page not found\n"},
	} {
		status, body := get(t, handler, path)
		if status != expected.status || body != expected.body {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}

// A profile of a process that got no processor is empty: the next one is longer.
func TestAProfileNamesWhatTheProcessorDid(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	go func() {
		handler := routes(nil, nil)
		for {
			select {
			case <-over:
				return
			default:
				get(t, handler, "/hi")
			}
		}
	}()
	var stacks []string
	own := func(stack string) bool { return strings.Contains(stack, ";laptime.dev/go-nethttp.answer;") }
	for seconds := 1; seconds <= 32 && !slices.ContainsFunc(stacks, own); seconds *= 2 {
		status, body := get(t, profiles(), fmt.Sprintf("/profile?seconds=%d", seconds))
		if status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		stacks = slices.AppendSeq(stacks, strings.Lines(body))
	}
	if !slices.ContainsFunc(stacks, own) {
		t.Errorf("nothing of its own: %q", stacks)
	}
	for _, stack := range stacks {
		// Names of types have spaces, as in `Map[interface {}]`: the count is behind the last one.
		end := max(0, strings.LastIndexByte(stack, ' '))
		if number, err := strconv.Atoi(strings.TrimSuffix(stack[end+1:], "\n")); err != nil || number < 1 || end == 0 {
			t.Errorf("%q is no folded stack", stack)
		}
	}
}

func TestAProfileHasALength(t *testing.T) {
	for _, query := range []string{"", "?seconds=0", "?seconds=x", "?seconds=601"} {
		if status, body := get(t, profiles(), "/profile"+query); status != 400 {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
}

func TestSettingsNameTheVariableThatIsWrong(t *testing.T) {
	for name, value := range map[string]string{
		"PORT": "http", "PROFILE_PORT": "0", "WORKERS": "0", "DATABASE_CONNECTIONS": "-1", "ACCESS_LOG": "yes",
	} {
		_, err := readSettings(func(asked string) string {
			if asked == name {
				return value
			}
			return ""
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

func TestPassesTheUpstreamsAnswerOn(t *testing.T) {
	answers := make(chan func(http.ResponseWriter), 1)
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		(<-answers)(w)
	}))
	defer stub.Close()
	handler := routes(nil, newUpstream(stub.URL))

	answers <- func(w http.ResponseWriter) { _, _ = io.WriteString(w, `[ {"id": 1, "name": "Zoë"} ]`) }
	if status, body := get(t, handler, "/users"); status != 200 || body != `[{"id":1,"name":"Zoë"}]` {
		t.Errorf("%d %q", status, body)
	}
	answers <- func(w http.ResponseWriter) { w.WriteHeader(500) }
	if status, body := get(t, handler, "/users"); status != 502 || body != "Bad Gateway\n" {
		t.Errorf("%d %q", status, body)
	}
	answers <- func(w http.ResponseWriter) { _, _ = io.WriteString(w, "no JSON") }
	if status, _ := get(t, handler, "/users"); status != 502 {
		t.Error(status)
	}
}

func TestKeepsAllItsConnectionsToTheUpstream(t *testing.T) {
	const most = 150
	var made atomic.Int64
	arrived := make(chan struct{}, most)
	together := make(chan struct{})
	stub := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-together
		_, _ = io.WriteString(w, "[]")
	}))
	stub.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	stub.Start()
	defer stub.Close()
	handler := routes(nil, newUpstream(stub.URL))
	for range 3 {
		var asked sync.WaitGroup
		for range most {
			asked.Go(func() {
				if status, body := get(t, handler, "/users"); status != 200 {
					t.Errorf("%d %q", status, body)
				}
			})
		}
		for range most {
			<-arrived
		}
		for range most {
			together <- struct{}{}
		}
		asked.Wait()
	}
	if made.Load() != most {
		t.Errorf("%d connections for %d requests at a time", made.Load(), most)
	}
}

func TestLatestPostsOfSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "100% posts?.db")
	store, err := openPosts(settingsOf(t, map[string]string{"DATABASE_URL": "sqlite://" + path}))
	if err != nil {
		t.Fatal(err)
	}
	handler := routes(store, nil)
	if status, body := get(t, handler, "/posts"); status != 500 || strings.Contains(body, "posts") {
		t.Errorf("an error of the database is not shown: %d %q", status, body)
	}
	fill(t, store.(*sqlitePosts).database)
	status, body := get(t, handler, "/posts")
	if status != 200 || !strings.HasPrefix(body, `[{"id":12,"title":"title 12","body":"é"},`) ||
		!strings.HasSuffix(body, `{"id":3,"title":"title 3","body":"é"}]`) {
		t.Errorf("%d %q", status, body)
	}
}

func TestSQLitePreparesOnceUnlessToldOtherwise(t *testing.T) {
	for _, prepares := range []bool{true, false} {
		opened, err := openPosts(settingsOf(t, map[string]string{
			"DATABASE_URL":                 "sqlite://" + filepath.Join(t.TempDir(), "posts.db"),
			"DATABASE_PREPARED_STATEMENTS": strconv.FormatBool(prepares),
		}))
		if err != nil {
			t.Fatal(err)
		}
		store := opened.(*sqlitePosts)
		fill(t, store.database)
		if _, err := store.latest(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept := store.prepared
		if (kept != nil) != prepares {
			t.Fatalf("prepares: %t; it keeps %v", prepares, kept)
		}
		if found, err := store.latest(t.Context()); err != nil || len(found) != 10 || store.prepared != kept {
			t.Errorf("prepares: %t; %d posts, %v", prepares, len(found), err)
		}
		if !prepares {
			continue
		}
		if err := kept.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := store.latest(t.Context()); err == nil {
			t.Error("a request does not use what was prepared")
		}
	}
}

func fill(t *testing.T, database *sql.DB) {
	t.Helper()
	_, err := database.Exec(`
		CREATE TABLE posts (id integer PRIMARY KEY, title text NOT NULL, body text NOT NULL);
		WITH RECURSIVE n (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n WHERE id < 12)
		INSERT INTO posts SELECT id, 'title ' || id, 'é' FROM n`)
	if err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseOfAnotherKindIsRefusedWithoutRepeatingIt(t *testing.T) {
	for _, address := range []string{"mysql://u:secret@h/d", "sqlite://file.db", "postgres://u:secret@h:x/d"} {
		_, err := openPosts(settings{databaseURL: address, databaseConnections: 1})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// serving starts a server of `slow`, sends it a request and asks it to stop once that is there. It
// returns how serve ended, and the status of the request: 0 when it was cut.
func serving(t *testing.T, slow func(), grace time.Duration) (error, <-chan int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		stop()
		slow()
	})
	status := make(chan int, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String())
		if err != nil {
			status <- 0
			return
		}
		response.Body.Close()
		status <- response.StatusCode
	}()
	return serve(stopped, listener, handler, grace), status
}

func TestFinishesTheRequestInFlight(t *testing.T) {
	err, status := serving(t, func() { time.Sleep(50 * time.Millisecond) }, time.Minute)
	if err != nil || <-status != http.StatusOK {
		t.Errorf("cut short; the server said %v", err)
	}
}

func TestEndsAlthoughARequestNeverDoes(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	if err, _ := serving(t, func() { <-over }, time.Millisecond); err != nil {
		t.Error(err)
	}
}

// Loads over HTTP/2 speak it from the first byte on; all others speak HTTP/1.1 on the same port.
func TestServesHTTP2BesideHTTP1(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(stopped, listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), time.Minute)
	}()
	for _, second := range []bool{false, true} {
		transport := &http.Transport{Protocols: &http.Protocols{}}
		transport.Protocols.SetHTTP1(!second)
		transport.Protocols.SetUnencryptedHTTP2(second)
		client := http.Client{Transport: transport}
		response, err := client.Get("http://" + listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if (response.ProtoMajor == 2) != second {
			t.Errorf("%s, HTTP/2 was asked for: %v", response.Proto, second)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
