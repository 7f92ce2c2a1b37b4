package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// answers are the result sets for each query that a fake server knows.
type answers map[string][]table

type table struct {
	columns []string
	rows    [][]string
}

var pgbouncerAnswers = answers{
	"SHOW POOLS": {{
		[]string{"database", "user", "cl_active", "cl_waiting", "sv_active", "sv_idle", "maxwait", "maxwait_us", "pool_mode"},
		[][]string{
			{"laptime", "laptime", "25", "15", "20", "5", "1", "250000", "transaction"},
			{"pgbouncer", "pgbouncer", "1", "0", "0", "0", "0", "0", "statement"},
		},
	}},
	"SHOW STATS": {{
		[]string{"database", "total_xact_count", "total_query_count", "total_wait_time", "total_received"},
		[][]string{{"laptime", "1000", "2000", "3500000", "42"}, {"pgbouncer", "9", "9", "0", "1"}},
	}},
	"SHOW DATABASES": {{
		[]string{"name", "pool_size", "current_connections"},
		[][]string{{"laptime", "25", "25"}, {"pgbouncer", "2", "0"}},
	}},
}

var postgresAnswers = answers{
	postgresSQL: {
		{[]string{"state", "wait_event_type", "wait_event", "connections"},
			[][]string{{"active", "", "", "3"}, {"idle", "Client", "ClientRead", "7"}}},
		{[]string{"datname", "xact_commit", "active_time"},
			[][]string{{"laptime", "12", "1500"}, {"laptime_old", "7", "250"}}},
		{[]string{"calls", "exec_time"}, [][]string{{"50000", "2500"}}},
		{[]string{"wal_bytes", "max_connections"}, [][]string{{"9593163", "1000"}}},
	},
}

// fakeServer speaks as much of the protocol as a scrape needs; it returns its address and how often
// somebody connected.
func fakeServer(t *testing.T, known answers, delay time.Duration) (string, *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connections := new(atomic.Int32)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go serveFake(connection, known, delay)
		}
	}()
	return listener.Addr().String(), connections
}

func serveFake(connection net.Conn, known answers, delay time.Duration) {
	defer func() { _ = connection.Close() }()
	backend := pgproto3.NewBackend(connection, connection)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for backend.Flush() == nil {
		message, err := backend.Receive()
		if err != nil {
			return
		}
		query, ok := message.(*pgproto3.Query)
		if !ok {
			return
		}
		time.Sleep(delay)
		tables, ok := known[query.String]
		if !ok {
			backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42601", Message: "not known"})
		}
		for _, one := range tables {
			fields := make([]pgproto3.FieldDescription, len(one.columns))
			for index, name := range one.columns {
				fields[index] = pgproto3.FieldDescription{Name: []byte(name)}
			}
			backend.Send(&pgproto3.RowDescription{Fields: fields})
			for _, row := range one.rows {
				values := make([][]byte, len(row))
				for index, value := range row {
					values[index] = []byte(value)
				}
				backend.Send(&pgproto3.DataRow{Values: values})
			}
			backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		}
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	}
}

func scrape(t *testing.T, server *httptest.Server) string {
	t.Helper()
	response, err := http.Get(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %v: %s", response.StatusCode, err, body)
	}
	return string(body)
}

// start serves what a source says. It waits as long as a machine on which other tests run may take.
func start(t *testing.T, source *source) *httptest.Server {
	t.Helper()
	source.patience = time.Minute
	return startAsIs(t, source)
}

func startAsIs(t *testing.T, source *source) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler(source))
	t.Cleanup(server.Close)
	return server
}

func wantLines(t *testing.T, body string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+body, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, body)
		}
	}
}

func TestPgBouncerSaysWhoWaits(t *testing.T) {
	address, connections := fakeServer(t, pgbouncerAnswers, 0)
	server := start(t, newPgBouncer(address, "secret"))
	for range 3 {
		body := scrape(t, server)
		wantLines(t, body,
			"laptime_pgbouncer_up 1",
			`laptime_pgbouncer_clients_waiting{database="laptime"} 15`,
			`laptime_pgbouncer_servers_active{database="laptime"} 20`,
			`laptime_pgbouncer_oldest_wait_seconds{database="laptime"} 1.25`,
			`laptime_pgbouncer_wait_seconds_total{database="laptime"} 3.5`,
			`laptime_pgbouncer_pool_size{database="laptime"} 25`,
		)
		if strings.Contains(body, `database="pgbouncer"`) {
			t.Errorf("the console is not a database of the run:\n%s", body)
		}
	}
	if count := connections.Load(); count != 1 {
		t.Errorf("%d connections for 3 scrapes, want 1", count)
	}
}

func TestPostgresSaysWhatConnectionsDo(t *testing.T) {
	address, _ := fakeServer(t, postgresAnswers, 0)
	wantLines(t, scrape(t, start(t, newPostgres(address, "secret"))),
		"laptime_postgres_up 1",
		`laptime_postgres_connections{state="active",wait_event="",wait_event_type=""} 3`,
		`laptime_postgres_connections{state="idle",wait_event="ClientRead",wait_event_type="Client"} 7`,
		`laptime_postgres_commits_total{database="laptime"} 12`,
		`laptime_postgres_commits_total{database="laptime_old"} 7`,
		`laptime_postgres_active_seconds_total{database="laptime"} 1.5`,
		`laptime_postgres_active_seconds_total{database="laptime_old"} 0.25`,
		"laptime_postgres_max_connections 1000",
		"laptime_postgres_statements_total 50000",
		"laptime_postgres_statement_seconds_total 2.5",
		"laptime_postgres_wal_bytes_total 9.593163e+06",
	)
}

func TestNobodyThere(t *testing.T) {
	address, _ := fakeServer(t, pgbouncerAnswers, 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	_ = listener.Close()
	source := newPgBouncer(nobody, "secret")
	server := start(t, source)
	body := scrape(t, server)
	wantLines(t, body, "laptime_pgbouncer_up 0")
	if strings.Contains(body, "clients_waiting") {
		t.Errorf("figures of nobody:\n%s", body)
	}
	// It comes up later.
	source.connect = newPgBouncer(address, "secret").connect
	wantLines(t, scrape(t, server), "laptime_pgbouncer_up 1")
}

func TestAnErrorIsNoFigureAndTheNextScrapeTriesAgain(t *testing.T) {
	known := answers{"SHOW POOLS": pgbouncerAnswers["SHOW POOLS"]}
	address, connections := fakeServer(t, known, 0)
	server := start(t, newPgBouncer(address, "secret"))
	wantLines(t, scrape(t, server), "laptime_pgbouncer_up 0")
	wantLines(t, scrape(t, server), "laptime_pgbouncer_up 0")
	if count := connections.Load(); count != 2 {
		t.Errorf("%d connections, want a new one after an error", count)
	}
}

func TestASlowServerDoesNotHoldTheScrape(t *testing.T) {
	const delay = 30 * time.Second
	address, _ := fakeServer(t, postgresAnswers, delay)
	server := startAsIs(t, newPostgres(address, "secret"))
	began := time.Now()
	wantLines(t, scrape(t, server), "laptime_postgres_up 0")
	if took := time.Since(began); took > delay/2 {
		t.Errorf("the scrape took %v", took)
	}
}

func TestThePasswordIsNeverShown(t *testing.T) {
	address, _ := fakeServer(t, answers{}, 0)
	source := newPostgres(address, "a-very-secret-word")
	_ = scrape(t, start(t, source))
	if strings.Contains(source.lastError, "secret") {
		t.Errorf("%q shows the password", source.lastError)
	}
}

func TestOnlyKnownSources(t *testing.T) {
	if _, err := newSource("mysql", ""); err == nil {
		t.Error("mysql was accepted")
	}
	for _, kind := range []string{"postgres", "pgbouncer"} {
		if source, err := newSource(kind, "x"); err != nil || source.name != kind {
			t.Errorf("%s: %v, %v", kind, source, err)
		}
	}
}
