package main

import (
	"context"
	"log"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
)

// A scrape a second leaves this much; who is slower than that has the answer that there is none.
const patience = 800 * time.Millisecond

// result is one result set as the server wrote it, its columns found by their name.
type result struct {
	columns map[string]int
	rows    [][][]byte
}

// text returns a column of a row, "" when it is NULL or when this version has no such column.
func (r *result) text(row [][]byte, column string) string {
	index, ok := r.columns[column]
	if !ok {
		return ""
	}
	return string(row[index])
}

// number returns a column of a row, and whether it is there and a number.
func (r *result) number(row [][]byte, column string) (float64, bool) {
	value, err := strconv.ParseFloat(r.text(row, column), 64)
	return value, err == nil
}

// collect turns result sets into metrics.
type collect func(results []result, out chan<- prometheus.Metric)

// source is a server that is asked `queries` for each scrape, over one connection that is kept.
type source struct {
	name    string
	connect string
	queries []string
	collect collect

	up      *prometheus.Desc
	seconds *prometheus.Desc

	mutex      sync.Mutex
	connection *pgconn.PgConn
	lastError  string
	patience   time.Duration
}

func makeSource(name, connect string, queries []string, collect collect) *source {
	return &source{
		name:    name,
		connect: connect,
		queries: queries,
		collect: collect,
		up:      prometheus.NewDesc("laptime_"+name+"_up", "Whether "+name+" answered.", nil, nil),
		seconds: prometheus.NewDesc("laptime_"+name+"_scrape_seconds",
			"How long "+name+" took to answer.", nil, nil),
		patience: patience,
	}
}

// Describe says nothing: which series there are depends on what happens.
func (s *source) Describe(chan<- *prometheus.Desc) {}

// Collect asks the server once.
func (s *source) Collect(out chan<- prometheus.Metric) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	began := time.Now()
	results, err := s.ask()
	if err != nil {
		s.disconnect()
		out <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, 0)
		s.complain(err.Error())
		return
	}
	s.complain("")
	out <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, 1)
	out <- prometheus.MustNewConstMetric(s.seconds, prometheus.GaugeValue, time.Since(began).Seconds())
	s.collect(results, out)
}

func (s *source) ask() ([]result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	if s.connection == nil || s.connection.IsClosed() {
		connection, err := pgconn.Connect(ctx, s.connect)
		if err != nil {
			return nil, err
		}
		s.connection = connection
	}
	var results []result
	for _, query := range s.queries {
		answers, err := s.connection.Exec(ctx, query).ReadAll()
		if err != nil {
			return nil, err
		}
		for _, answer := range answers {
			columns := make(map[string]int, len(answer.FieldDescriptions))
			for index, field := range answer.FieldDescriptions {
				columns[field.Name] = index
			}
			results = append(results, result{columns: columns, rows: answer.Rows})
		}
	}
	return results, nil
}

func (s *source) disconnect() {
	if s.connection == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	_ = s.connection.Close(ctx)
	s.connection = nil
}

// complain logs an error once and not every second.
func (s *source) complain(message string) {
	if message != s.lastError && message != "" {
		log.Printf("%s: %s", s.name, message)
	}
	s.lastError = message
}

// column is a metric that is one column of a result.
type column struct {
	name  string
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	scale float64
}

func counter(field, metric, help string, scale float64, labels ...string) column {
	return column{field, prometheus.NewDesc(metric, help, labels, nil), prometheus.CounterValue, scale}
}

func gauge(field, metric, help string, scale float64, labels ...string) column {
	return column{field, prometheus.NewDesc(metric, help, labels, nil), prometheus.GaugeValue, scale}
}

// send writes the columns of a row that are there.
func send(out chan<- prometheus.Metric, r *result, row [][]byte, columns []column, labels ...string) {
	for _, one := range columns {
		if value, ok := r.number(row, one.name); ok {
			out <- prometheus.MustNewConstMetric(one.desc, one.kind, value*one.scale, labels...)
		}
	}
}
