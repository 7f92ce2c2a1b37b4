package generator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	"laptime.dev/k6/internal/database"
	"laptime.dev/k6/internal/live"
	"laptime.dev/k6/internal/loop"
	"laptime.dev/k6/internal/meeting"
	"laptime.dev/k6/internal/process"
	"laptime.dev/k6/internal/readiness"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/session"
	"laptime.dev/k6/internal/spec"
)

// The rounds in which the generators of a trial, or of two at the same time, meet.
const (
	warmup   = "warm-up"
	measured = "measured part"
	finished = "end of the measured part"
)

// A load bound by requests ends when its slowest generator has its part; the Job ends it before.
const longestByRequests = 6 * time.Hour

// Run waits for the target, warms it up, drives this generator's segment of the measured load and
// prints the result line on stdout; progress goes to stderr,
// and to whoever scrapes LAPTIME_METRICS_ADDRESS. Failed requests are figures; an error
// means there are none.
func Run(ctx context.Context, trial *spec.Trial, segment spec.Segment, stdout, stderr io.Writer) error {
	work := trial.Work(segment)
	together, err := join(trial, segment)
	if err != nil {
		return err
	}
	defer together.Close()
	figures, unserve := live.Serve(os.Getenv("LAPTIME_METRICS_ADDRESS"), stderr, "warmup", "measured")
	defer unserve()
	addresses, url, err := ready(ctx, trial, segment)
	if err != nil {
		return err
	}
	// Here the server has made of the schema what it makes of it as it starts, and nothing is measured yet.
	schema := ""
	if segment.Index == 0 {
		// Without statements that reset it, the database is asked for its schema and for nothing else.
		schema = database.Schema(ctx, cmp.Or(url, os.Getenv("SCHEMA_DATABASE_URL")), trial.SchemaQuery)
	}
	if _, err := fmt.Fprintln(stdout, "LAPTIME-READY"); err != nil {
		return err
	}
	out := &result.Result{
		SchemaVersion: result.SchemaVersion, Trial: trial.Trial, Phases: map[string]*result.Phase{},
		DatabaseSchema: schema,
	}
	if segment.Count > 1 {
		out.Segment = &result.Segment{Index: segment.Index, Count: segment.Count}
	}
	patience := spec.Seconds(trial.WaitSeconds)
	if duration, most := trial.Warmup(); duration > 0 {
		plan := planOf(trial, segment, addresses, work)
		trial.KeepRows(segment)
		plan.Total, plan.Duration = most, duration
		plan.EndRate, plan.Stretches = plan.Rate, nil // the warm-up stays at the first rate
		plan.Progress = progress(stderr, "warmup")
		if plan.StartAt, err = together.Wait(ctx, warmup, patience, nil); err != nil {
			return err
		}
		plan.Live = figures.Begin("warmup")
		if out.Phases["warmup"], _, err = loop.Run(ctx, plan); err != nil {
			return err
		}
		figures.End()
	}
	// Another generator's last sessions of the warm-up may take their whole time-outs.
	patience += trial.Timeout() + trial.LongestTail()
	plan := planOf(trial, segment, addresses, work)
	trial.FreeRows()
	plan.Progress = progress(stderr, "measured")
	debugged := keepLatencies(plan)
	var before, after []database.Statement
	if plan.StartAt, err = together.Wait(ctx, measured, patience, func() error {
		before, err = statements(ctx, url)
		return err
	}); err != nil {
		return err
	}
	plan.Live = figures.Begin("measured")
	phase, cost, err := drive(ctx, trial, plan, out)
	figures.End()
	if err != nil {
		return err
	}
	if err := debugged(); err != nil {
		return err
	}
	if trial.Load.Closed != nil && trial.Load.Closed.Requests > 0 {
		patience = longestByRequests
	}
	// Statements are counted when all have had their answers.
	if _, err := together.Share(ctx, finished, patience, func() ([]byte, error) {
		after, err = statements(ctx, url)
		return nil, err
	}); err != nil {
		return err
	}
	out.Phases["measured"], out.Statements = phase, database.Since(before, after)
	out.Generator = process.Describe(cost.CPU, cost.Wall)
	out.Generator.Threads, out.Generator.BusiestThread = cost.Threads, cost.BusiestThread
	out.Generator.UnreadSeconds = cost.Unread.Seconds()
	out.Generator.Took(cost.Path.Shortest, cost.Path.Sent, cost.Path.SentAgain, cost.Path.OutOfOrder)
	if !result.Claim() {
		return fmt.Errorf("this process has printed a result already: one trial per run")
	}
	return result.WriteLine(stdout, out)
}

func join(trial *spec.Trial, segment spec.Segment) (*meeting.Meeting, error) {
	if both := trial.Together; both != nil {
		return meeting.Join(both.Name, both.First+segment.Index, both.Count, both.Meet)
	}
	if segment.Count == 1 {
		return meeting.Join(trial.Trial, 0, 1, "")
	}
	return meeting.Join(trial.Trial, segment.Index, segment.Count, trial.Generators.Meet)
}

// ready waits until the server serves and, on generator 0, the database is as it was at first. It
// gives the server's addresses and the URL of the database, empty where this generator has no
// business with one.
func ready(ctx context.Context, trial *spec.Trial, segment spec.Segment) ([]netip.AddrPort, string, error) {
	url := os.Getenv("DATABASE_URL")
	if segment.Index != 0 {
		url = ""
	}
	// The database is reset while the server starts.
	reset := make(chan error, 1)
	go func() {
		reset <- restore(ctx, url, trial.ResetStatements)
	}()
	server := readiness.Server{
		Target: trial.Target, Health: trial.HealthTarget, Path: trial.HealthPath, Authorization: trial.Authorization(), TLS: trial.Secured(),
		HTTP2: trial.Load.HTTP2(), Streams: max(trial.Load.Streams, 1),
	}
	addresses, err := readiness.Wait(ctx, server, spec.Seconds(trial.WaitSeconds))
	if err != nil {
		return nil, "", err
	}
	return addresses, url, <-reset
}

// restore brings the database, and the connections that servers behind PgBouncer share, to the state before a trial.
func restore(ctx context.Context, url string, statements []string) error {
	if url == "" {
		return nil
	}
	if console := os.Getenv("PGBOUNCER_URL"); console != "" {
		if err := database.Renew(ctx, console); err != nil {
			return err
		}
	}
	return database.Reset(ctx, url, statements)
}

// keepLatencies writes the latency of each measured answer (nanoseconds, one a line) to the file
// that LAPTIME_LATENCIES names, for tests that compare percentiles with the exact ones.
func keepLatencies(plan *loop.Plan) (write func() error) {
	path := os.Getenv("LAPTIME_LATENCIES")
	if path == "" {
		return func() error { return nil }
	}
	var all []int64
	plan.Latencies = func(some []int64) { all = append(all, some...) }
	return func() error {
		var text []byte
		for _, latency := range all {
			text = append(strconv.AppendInt(text, latency, 10), '\n')
		}
		return os.WriteFile(path, text, 0o644)
	}
}

func statements(ctx context.Context, url string) ([]database.Statement, error) {
	if url == "" {
		return nil, nil
	}
	return database.Statements(ctx, url)
}

func prepare(trial *spec.Trial) []loop.Request {
	checks := map[string]loop.Check{"nonEmpty": loop.NonEmpty, "same": loop.Same}
	requests := make([]loop.Request, 0, len(trial.Requests))
	for i := range trial.Requests {
		r := &trial.Requests[i]
		requests = append(requests, loop.Request{
			Name: r.Name, ExpectStatus: r.ExpectStatus,
			HeadOnly:   r.Method == http.MethodHead,
			Idempotent: r.Method != http.MethodPost && r.Method != http.MethodPatch,
			Check:      checks[r.Check],
		})
	}
	return requests
}

// planOf is a segment of the measured phase of the trial.
func planOf(trial *spec.Trial, segment spec.Segment, addresses []netip.AddrPort, work *session.Work) *loop.Plan {
	load := &trial.Load
	plan := &loop.Plan{
		Addresses: addresses, TLS: trial.Secured(), Requests: prepare(trial), Work: work, Seed: uint64(trial.Seed), Timeout: trial.Timeout(), KeepAlive: load.KeepAlive(),
		Connections: int(segment.Share(int64(load.Connections()))),
		Generator:   segment.Index, Generators: segment.Count, ConnectOver: spec.Seconds(load.ConnectSeconds()),
		HTTP2: load.HTTP2(), Streams: load.Streams,
	}
	if pool := load.Pool(); pool != nil && pool.Arrivals == "poisson" {
		plan.Arrivals = loop.Poisson
	}
	switch {
	case load.Closed != nil:
		plan.Total = segment.Share(load.Closed.Requests)
		plan.Duration = spec.Seconds(load.Closed.DurationSeconds)
	case load.Open != nil:
		plan.Rate, plan.EndRate = load.Open.Rate, load.Open.Rate
		plan.Duration = spec.Seconds(load.Open.DurationSeconds)
	case load.Stairs != nil:
		for _, step := range load.Stairs.Steps {
			plan.Stretches = append(plan.Stretches, loop.Stretch{From: step.Rate, To: step.Rate, Duration: spec.Seconds(step.DurationSeconds)})
			plan.Duration += plan.Stretches[len(plan.Stretches)-1].Duration
		}
		plan.Rate, plan.EndRate = load.Stairs.Steps[0].Rate, load.Stairs.Steps[0].Rate
	case load.Saturation != nil:
		plan.Rate, plan.EndRate = load.Saturation.StartRate, load.Saturation.StartRate
		plan.Duration = spec.Seconds(load.Saturation.StepSeconds)
	default:
		plan.Rate, plan.EndRate = load.Ramp.From, load.Ramp.To
		plan.Duration = spec.Seconds(load.Ramp.DurationSeconds)
	}
	return plan
}

func progress(w io.Writer, phase string) func(time.Duration, int64) {
	return func(elapsed time.Duration, requests int64) {
		text, _ := json.Marshal(struct { // plain numbers and a string always encode
			Phase    string  `json:"phase"`
			Elapsed  float64 `json:"elapsed"`
			Requests int64   `json:"requests"`
		}{phase, elapsed.Seconds(), requests})
		_, _ = fmt.Fprintf(w, "LAPTIME-PROGRESS %s\n", text)
	}
}
