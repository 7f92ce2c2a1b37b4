// Package database brings the database of a run to the same state before every trial, and counts
// the statements that the measured requests cost.
//
// It is done here and not by a container of its own: one more container costs the start of a
// trial about a second, and here it happens while the server starts anyway.
package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	connectTimeout = 10 * time.Second
	// The statement has a shorter one of its own: this is for a Postgres that does not answer at all.
	schemaTimeout = 15 * time.Second
)

// refusedByEarlier is what a PgBouncer answers that an earlier version of Laptime deployed. The tiers of a run that goes
// on stay as they are when the operator is upgraded.
const refusedByEarlier = "admin access needed"

// Renew has the PgBouncer with this console close its connections to Postgres, each when no transaction is on it: what
// servers before have set on their sessions goes with them. A server that has begun notices nothing, since its own
// connections to PgBouncer stay. One that lets nobody do so stays as it is.
func Renew(ctx context.Context, console string) error {
	connection, err := connect(ctx, console)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	_, err = connection.Exec(ctx, "RECONNECT", pgx.QueryExecModeSimpleProtocol)
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Message == refusedByEarlier {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: PgBouncer made no new connections: %w", ErrNotReachable, err)
	}
	return nil
}

// others are the databases of servers that are not measured now; none where all servers have the same.
const others = "SELECT datname FROM pg_database WHERE datname ~ '^laptime_' AND datname <> current_database()"

// Reset runs the statements one by one, each in a transaction of its own.
//
// Before them it has the databases of other servers forget what they have counted: the statements do so in this one
// alone, and autovacuum would see to what the trial before has written there while this one is measured.
func Reset(ctx context.Context, url string, statements []string) error {
	connection, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	names, err := otherDatabases(ctx, connection)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := forget(ctx, connection.Config(), name); err != nil {
			return err
		}
	}
	for _, statement := range statements {
		if _, err := connection.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("the database could not be reset: %q: %w", statement, err)
		}
	}
	return nil
}

func otherDatabases(ctx context.Context, connection *pgx.Conn) ([]string, error) {
	rows, err := connection.Query(ctx, others, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, fmt.Errorf("the databases of other servers: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("the databases of other servers: %w", err)
	}
	return names, nil
}

func forget(ctx context.Context, config *pgx.ConnConfig, name string) error {
	config.Database = name
	connection, err := connectTo(ctx, config)
	if said := (*pgconn.PgError)(nil); errors.As(err, &said) && said.Code == noSuchDatabase {
		// Its server has dropped it: nothing is left that autovacuum could see to.
		return nil
	}
	if err != nil {
		return err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	if _, err := connection.Exec(ctx, "SELECT pg_stat_reset()", pgx.QueryExecModeSimpleProtocol); err != nil {
		// Of no statement of the scenario.
		return fmt.Errorf("%w: the statistics of %s were not reset: %v", ErrNotReachable, name, err)
	}
	return nil
}

// Schema returns what stands for the definitions in the database, as the last of the statements of a query says it; empty
// where that is not known in time. It is asked once more where somebody holds a lock on a table. No trial fails for it.
func Schema(ctx context.Context, url, query string) string {
	if url == "" || query == "" {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	connection, err := connect(ctx, url)
	if err != nil {
		return ""
	}
	defer connection.Close(context.WithoutCancel(ctx))
	answers, err := connection.PgConn().Exec(ctx, query).ReadAll()
	if said := (*pgconn.PgError)(nil); errors.As(err, &said) && said.Code == lockNotAvailable {
		answers, err = connection.PgConn().Exec(ctx, query).ReadAll()
	}
	if err != nil || len(answers) == 0 {
		return ""
	}
	last := answers[len(answers)-1].Rows
	if len(last) != 1 || len(last[0]) != 1 {
		return ""
	}
	return string(last[0][0])
}

// IsOfStatement says whether an error is about a statement, which Postgres would refuse whenever it is asked, and not
// about the state that Postgres is in. The classes are those of its manual's appendix A: what is not supported (0A), a cardinality (21), data (22), constraints (23), an
// invalid transaction (2B, 2D), a routine (2F, 38, 39), names (3D, 3F), syntax and access (42, 44), PL/pgSQL (P0).
func IsOfStatement(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && len(said.Code) == 5 && slices.Contains(statementClasses, said.Code[:2])
}

const (
	noSuchDatabase   = "3D000"
	lockNotAvailable = "55P03"
)

var statementClasses = []string{"0A", "21", "22", "23", "2B", "2D", "2F", "38", "39", "3D", "3F", "42", "44", "P0"}

// Statement is how often a statement ran.
type Statement struct {
	Query string `json:"query"`
	Calls int64  `json:"calls"`
}

// Statements returns how often each statement ran since the statistics were reset, the most
// frequent ones first; what this program itself asks is not among them. None is left out, since who judges by them
// needs their sum: pg_stat_statements keeps 5,000 of them (pg_stat_statements.max).
func Statements(ctx context.Context, url string) ([]Statement, error) {
	connection, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer connection.Close(context.WithoutCancel(ctx))
	rows, err := connection.Query(ctx, `
		SELECT left(query, 200), sum(calls)::bigint AS total
		FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND query NOT LIKE '%pg_stat_%'
		GROUP BY 1 ORDER BY total DESC`)
	if err != nil {
		return nil, fmt.Errorf("the statements could not be counted: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	if err != nil {
		return nil, fmt.Errorf("the statements could not be counted: %w", err)
	}
	return found, nil
}

// Since returns what ran between two counts; nil when nobody counted.
func Since(before, after []Statement) []Statement {
	if after == nil {
		return nil
	}
	known := make(map[string]int64, len(before))
	for _, one := range before {
		known[one.Query] = one.Calls
	}
	more := []Statement{}
	for _, one := range after {
		if calls := one.Calls - known[one.Query]; calls > 0 {
			more = append(more, Statement{one.Query, calls})
		}
	}
	return more
}

// ErrNotReachable is of a database that its kubelet may well call ready: what lies between is at fault.
var ErrNotReachable = errors.New("the database cannot be reached")

// ErrFull is of a Postgres whose connections are all in use, the ones that are there for Laptime too.
var ErrFull = errors.New("the servers have all connections of Postgres open, Laptime's own too: " +
	"each process of a server may have DATABASE_CONNECTIONS, all together topology.postgres.maxConnections")

const (
	tooManyConnections = "53300"
	againAfter         = 100 * time.Millisecond
)

// connect asks again while Postgres is full: the connections of the trial before may be about to end.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotReachable, err)
	}
	return connectTo(ctx, config)
}

func connectTo(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	for began := time.Now(); ; time.Sleep(againAfter) {
		connection, err := connectOnce(ctx, config)
		if err == nil {
			return connection, nil
		}
		// pgx leaves the password out of its errors.
		var said *pgconn.PgError
		if !errors.As(err, &said) || said.Code != tooManyConnections {
			return nil, fmt.Errorf("%w: %w", ErrNotReachable, err)
		}
		if time.Since(began) > connectTimeout {
			return nil, fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
}

func connectOnce(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}
