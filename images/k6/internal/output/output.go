// Package output is the k6 output "laptime": it keeps histograms and counts of what plain k6/http
// requests measured and prints them as one result line when the run ends.
package output

import (
	"errors"
	"os"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
	"go.k6.io/k6/v2/output"

	"laptime.dev/k6/internal/process"
	"laptime.dev/k6/internal/result"
)

const (
	warmup   = "warmup"
	measured = "measured"
)

func init() {
	output.RegisterExtension("laptime", func(params output.Params) (output.Output, error) {
		return New(params), nil
	})
}

// Output collects the samples of one run.
type Output struct {
	params  output.Params
	epoch   time.Time
	phases  map[string]*phase
	cached  map[*metrics.TagSet]route
	cpu     time.Duration // used before the first measured sample came
	wall    time.Time
	lastCPU time.Duration
	lastAt  time.Time
}

// phase is what belongs to one phase of the run.
type phase struct {
	recorder  *result.Recorder
	endpoints map[string]int
	bytes     int64
}

// New makes the output. k6 calls AddMetricSamples from one goroutine, so nothing is locked.
func New(params output.Params) *Output {
	return &Output{params: params, phases: map[string]*phase{}, cached: map[*metrics.TagSet]route{}}
}

// Description is what k6 shows.
func (o *Output) Description() string { return "laptime (histograms, one result line at the end)" }

// Start begins the clock that sample times count from.
func (o *Output) Start() error {
	o.epoch = time.Now()
	return nil
}

// AddMetricSamples records what k6 collected since the last call, some 50 ms ago.
func (o *Output) AddMetricSamples(containers []metrics.SampleContainer) {
	seen := false
	for _, container := range containers {
		switch c := container.(type) {
		case *httpext.Trail:
			o.record(c)
			seen = true
		case metrics.Sample:
			o.single(&c)
		default:
			samples := container.GetSamples()
			for i := range samples {
				o.single(&samples[i])
			}
		}
	}
	if seen {
		o.lastCPU, o.lastAt = process.CPU(), time.Now()
	}
}

func (o *Output) single(s *metrics.Sample) {
	switch s.Metric.Name {
	case metrics.DroppedIterationsName:
		o.phaseOf(s.Tags).recorder.Drop(int64(s.Value))
	case metrics.DataReceivedName:
		o.phaseOf(s.Tags).bytes += int64(s.Value)
	}
}

// record turns one request's trail into a sample. Blocked covers the wait for a connection and its
// set-up, Duration all from the first byte sent to the last one received.
func (o *Output) record(t *httpext.Trail) {
	r := o.route(t.Tags)
	done := t.EndTime.Sub(o.epoch)
	latency := max(t.Blocked, t.ConnDuration) + t.Duration
	sample := result.Sample{
		Endpoint: r.endpoint, Issued: int64(done - latency), Done: int64(done),
		Server: int64(t.Sending + t.Waiting), Connect: int64(t.ConnDuration),
		Status: r.status, Kind: r.kind,
	}
	if r.kind == result.OK && t.Failed.Valid && t.Failed.Bool {
		sample.Kind = result.Status
	}
	r.phase.recorder.Record(&sample)
}

// Stop prints the result of a run that nothing is known to be wrong with.
func (o *Output) Stop() error { return o.StopWithTestError(nil) }

// StopWithTestError prints the result unless the run was cut short: half a measurement must not
// pass for a whole one. Thresholds that were missed do not make the figures wrong.
func (o *Output) StopWithTestError(runError error) error {
	if cutShort(runError) || !result.Claim() {
		return nil
	}
	out := &result.Result{
		SchemaVersion: result.SchemaVersion, Trial: os.Getenv("LAPTIME_TRIAL_NAME"),
		Phases: map[string]*result.Phase{},
	}
	o.named(measured)
	for name, p := range o.phases {
		figures, err := result.Merge(p.recorder)
		if err != nil {
			return err
		}
		figures.BytesReceived = p.bytes
		out.Phases[name] = figures
	}
	out.Generator = process.Describe(o.lastCPU-o.cpu, o.lastAt.Sub(o.wall))
	return result.WriteLine(o.params.StdOut, out)
}

func cutShort(err error) bool {
	if err == nil {
		return false
	}
	var reason errext.HasAbortReason
	if errors.As(err, &reason) {
		switch reason.AbortReason() {
		case errext.AbortedByThreshold, errext.AbortedByThresholdsAfterTestEnd:
			return false
		}
	}
	return true
}
