package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const latestPosts = "SELECT id, title, body FROM posts ORDER BY id DESC LIMIT 10"

// post is one row of the answer.
type post struct {
	ID    int32  `json:"id"`
	Title string `json:"title"`
	Body  string `json:"body"`
}

// posts is a database with the table of that name.
type posts interface {
	// latest returns the ten posts with the highest ids, the highest first.
	latest(ctx context.Context) ([]post, error)
}

// openPosts returns nil when the run has no database. No connection is opened before the first
// request: the server starts before its database is there.
func openPosts(settings settings) (posts, error) {
	path, isSQLite := strings.CutPrefix(settings.databaseURL, "sqlite://")
	switch {
	case settings.databaseURL == "":
		return nil, nil
	case isSQLite && strings.HasPrefix(path, "/"):
		return openSQLite(path, settings)
	case strings.HasPrefix(settings.databaseURL, "postgres"):
		return openPostgres(settings)
	default:
		// Without the URL itself, which may hold a password.
		return nil, errors.New(
			"DATABASE_URL is neither postgresql://... nor sqlite:///absolute/path")
	}
}

type postgresPosts struct{ pool *pgxpool.Pool }

func openPostgres(settings settings) (posts, error) {
	config, err := pgxpool.ParseConfig(settings.databaseURL)
	if err != nil {
		return nil, err // pgx leaves the password out of it
	}
	config.MaxConns = int32(settings.databaseConnections)
	if !settings.preparedStatements {
		// Each statement is sent as a whole, under no name, in one round trip.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return &postgresPosts{pool}, nil
}

func (p *postgresPosts) latest(ctx context.Context) ([]post, error) {
	rows, err := p.pool.Query(ctx, latestPosts)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[post])
}

type sqlitePosts struct {
	database *sql.DB
	prepares bool

	preparing sync.Mutex
	prepared  *sql.Stmt // nil before the first request
}

func openSQLite(path string, settings settings) (posts, error) {
	address := url.URL{
		Scheme:   "file",
		Path:     path,
		RawQuery: "_pragma=busy_timeout(5000)&_pragma=synchronous(NORMAL)",
	}
	database, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	database.SetMaxOpenConns(settings.databaseConnections)
	database.SetMaxIdleConns(settings.databaseConnections)
	return &sqlitePosts{database: database, prepares: settings.preparedStatements}, nil
}

func (p *sqlitePosts) latest(ctx context.Context) (found []post, err error) {
	rows, err := p.query(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var row post
		if err := rows.Scan(&row.ID, &row.Title, &row.Body); err != nil {
			return nil, err
		}
		found = append(found, row)
	}
	return found, rows.Err()
}

func (p *sqlitePosts) query(ctx context.Context) (*sql.Rows, error) {
	if !p.prepares {
		return p.database.QueryContext(ctx, latestPosts)
	}
	statement, err := p.statement(ctx)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx)
}

// statement returns the one that each connection prepares once. An error is not kept: the table may
// be there by the next request.
func (p *sqlitePosts) statement(ctx context.Context) (*sql.Stmt, error) {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	if p.prepared == nil {
		statement, err := p.database.PrepareContext(ctx, latestPosts)
		if err != nil {
			return nil, err
		}
		p.prepared = statement
	}
	return p.prepared, nil
}
