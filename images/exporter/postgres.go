package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// The statements of one scrape, sent together. pg_stat_statements(false) leaves the texts of the
// statements out, which would have to be read from a file. Its counters are reset for all databases
// at once, those of pg_stat_database for one alone: where servers have databases of their own a sum
// over these would fall at each reset to what the others have, which looks like new work.
const postgresSQL = `
SELECT coalesce(state, '') AS state, coalesce(wait_event_type, '') AS wait_event_type,
       coalesce(wait_event, '') AS wait_event, count(*) AS connections
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
GROUP BY 1, 2, 3;
SELECT datname, xact_commit, xact_rollback, blks_read, blks_hit, tup_returned, tup_fetched,
       tup_inserted, tup_updated, tup_deleted, deadlocks, temp_bytes, active_time,
       idle_in_transaction_time
FROM pg_stat_database WHERE datname LIKE 'laptime%';
SELECT coalesce(sum(calls), 0) AS calls, coalesce(sum(rows), 0) AS rows,
       coalesce(sum(total_exec_time), 0) AS exec_time, coalesce(sum(total_plan_time), 0) AS plan_time
FROM pg_stat_statements(false)
WHERE dbid IN (SELECT oid FROM pg_database WHERE datname LIKE 'laptime%');
SELECT wal_bytes, current_setting('max_connections') AS max_connections FROM pg_stat_wal`

var (
	postgresConnections = prometheus.NewDesc("laptime_postgres_connections",
		"Connections of clients by what they do and wait for; no wait means on a CPU, or ready for one.",
		[]string{"state", "wait_event_type", "wait_event"}, nil)
	databaseLabels   = []string{"database"}
	postgresDatabase = []column{
		counter("xact_commit", "laptime_postgres_commits_total", "Transactions committed.", 1, databaseLabels...),
		counter("xact_rollback", "laptime_postgres_rollbacks_total", "Transactions rolled back.", 1, databaseLabels...),
		counter("blks_read", "laptime_postgres_blocks_read_total", "Blocks that were not in shared_buffers.", 1, databaseLabels...),
		counter("blks_hit", "laptime_postgres_blocks_hit_total", "Blocks that were in shared_buffers.", 1, databaseLabels...),
		counter("tup_returned", "laptime_postgres_rows_read_total", "Rows read by scans.", 1, databaseLabels...),
		counter("tup_fetched", "laptime_postgres_rows_fetched_total", "Rows fetched through indexes.", 1, databaseLabels...),
		counter("tup_inserted", "laptime_postgres_rows_inserted_total", "Rows inserted.", 1, databaseLabels...),
		counter("tup_updated", "laptime_postgres_rows_updated_total", "Rows updated.", 1, databaseLabels...),
		counter("tup_deleted", "laptime_postgres_rows_deleted_total", "Rows deleted.", 1, databaseLabels...),
		counter("deadlocks", "laptime_postgres_deadlocks_total", "Deadlocks.", 1, databaseLabels...),
		counter("temp_bytes", "laptime_postgres_temporary_bytes_total", "Bytes written to temporary files.", 1, databaseLabels...),
		counter("active_time", "laptime_postgres_active_seconds_total", "Time that connections were busy, summed.", 1e-3, databaseLabels...),
		counter("idle_in_transaction_time", "laptime_postgres_idle_in_transaction_seconds_total",
			"Time that connections held a transaction open and did nothing, summed.", 1e-3, databaseLabels...),
	}
	postgresStatements = []column{
		counter("calls", "laptime_postgres_statements_total", "Statements run, since statistics were reset.", 1),
		counter("rows", "laptime_postgres_statement_rows_total", "Rows returned or changed by statements.", 1),
		counter("exec_time", "laptime_postgres_statement_seconds_total", "Time spent running statements.", 1e-3),
		counter("plan_time", "laptime_postgres_planning_seconds_total", "Time spent planning statements.", 1e-3),
	}
	postgresWal = []column{
		counter("wal_bytes", "laptime_postgres_wal_bytes_total", "Bytes of write-ahead log.", 1),
		gauge("max_connections", "laptime_postgres_max_connections", "Connections that may be open at once.", 1),
	}
)

// newPostgres returns the Postgres at an address, whose own user and database are called laptime.
func newPostgres(address, password string) *source {
	// The exporter's own statements are not counted among those of the servers.
	connect := connectString(address, "laptime", password) +
		" options='-c pg_stat_statements.track=none'"
	return makeSource("postgres", connect, []string{postgresSQL}, collectPostgres)
}

func collectPostgres(results []result, out chan<- prometheus.Metric) {
	activity := &results[0]
	for _, row := range activity.rows {
		if count, ok := activity.number(row, "connections"); ok {
			out <- prometheus.MustNewConstMetric(postgresConnections, prometheus.GaugeValue, count,
				activity.text(row, "state"), activity.text(row, "wait_event_type"), activity.text(row, "wait_event"))
		}
	}
	databases := &results[1]
	for _, row := range databases.rows {
		send(out, databases, row, postgresDatabase, databases.text(row, "datname"))
	}
	for number, columns := range [][]column{postgresStatements, postgresWal} {
		one := &results[number+2]
		for _, row := range one.rows {
			send(out, one, row, columns)
		}
	}
}

// connectString is libpq's; the password has letters, digits, - and _ only.
func connectString(address, database, password string) string {
	host, port := split(address)
	return fmt.Sprintf("host=%s port=%s user=laptime password=%s dbname=%s sslmode=disable "+
		"connect_timeout=1 application_name=laptime-exporter", host, port, quote(password), database)
}
