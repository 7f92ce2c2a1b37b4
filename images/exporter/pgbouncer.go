package main

import (
	"net"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The console takes one command at a time.
var pgbouncerCommands = []string{"SHOW POOLS", "SHOW STATS", "SHOW DATABASES"}

var (
	poolLabels     = []string{"database"}
	pgbouncerPools = []column{
		gauge("cl_active", "laptime_pgbouncer_clients_active", "Clients that have a server connection or are idle.", 1, poolLabels...),
		gauge("cl_waiting", "laptime_pgbouncer_clients_waiting", "Clients that wait for a server connection.", 1, poolLabels...),
		gauge("sv_active", "laptime_pgbouncer_servers_active", "Server connections that are in use.", 1, poolLabels...),
		gauge("sv_idle", "laptime_pgbouncer_servers_idle", "Server connections that are free.", 1, poolLabels...),
		gauge("sv_used", "laptime_pgbouncer_servers_used", "Server connections that are checked before their next use.", 1, poolLabels...),
		gauge("sv_login", "laptime_pgbouncer_servers_login", "Server connections that are being made.", 1, poolLabels...),
	}
	poolWait = prometheus.NewDesc("laptime_pgbouncer_oldest_wait_seconds",
		"How long the client that waits longest has waited.", poolLabels, nil)
	pgbouncerStats = []column{
		counter("total_xact_count", "laptime_pgbouncer_transactions_total", "Transactions.", 1, poolLabels...),
		counter("total_query_count", "laptime_pgbouncer_queries_total", "Queries.", 1, poolLabels...),
		counter("total_wait_time", "laptime_pgbouncer_wait_seconds_total",
			"Time that clients waited for a server connection, summed.", 1e-6, poolLabels...),
		counter("total_xact_time", "laptime_pgbouncer_transaction_seconds_total",
			"Time that server connections were in a transaction, summed.", 1e-6, poolLabels...),
		counter("total_query_time", "laptime_pgbouncer_query_seconds_total",
			"Time that server connections ran queries, summed.", 1e-6, poolLabels...),
		counter("total_received", "laptime_pgbouncer_received_bytes_total", "Bytes received.", 1, poolLabels...),
		counter("total_sent", "laptime_pgbouncer_sent_bytes_total", "Bytes sent.", 1, poolLabels...),
		counter("total_server_assignment_count", "laptime_pgbouncer_assignments_total",
			"How often a client got a server connection.", 1, poolLabels...),
	}
)

var pgbouncerDatabases = []column{
	gauge("pool_size", "laptime_pgbouncer_pool_size", "Server connections that there may be.", 1, poolLabels...),
	gauge("current_connections", "laptime_pgbouncer_pool_connections", "Server connections that there are.", 1, poolLabels...),
}

// newPgBouncer returns the console of the PgBouncer at an address.
func newPgBouncer(address, password string) *source {
	return makeSource("pgbouncer", connectString(address, "pgbouncer", password), pgbouncerCommands, collectPgBouncer)
}

func collectPgBouncer(results []result, out chan<- prometheus.Metric) {
	pools := &results[0]
	for _, row := range pools.rows {
		database := pools.text(row, "database")
		if database == "pgbouncer" {
			continue
		}
		send(out, pools, row, pgbouncerPools, database)
		seconds, ok := pools.number(row, "maxwait")
		if microseconds, more := pools.number(row, "maxwait_us"); ok && more {
			out <- prometheus.MustNewConstMetric(poolWait, prometheus.GaugeValue, seconds+1e-6*microseconds, database)
		}
	}
	stats := &results[1]
	for _, row := range stats.rows {
		if database := stats.text(row, "database"); database != "pgbouncer" {
			send(out, stats, row, pgbouncerStats, database)
		}
	}
	databases := &results[2]
	for _, row := range databases.rows {
		if database := databases.text(row, "name"); database != "pgbouncer" {
			send(out, databases, row, pgbouncerDatabases, database)
		}
	}
}

func split(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address, "5432"
	}
	return host, port
}

// quote makes a value of a connection string.
func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
