// Package output is the k6 output "laptime": it keeps histograms and counts of what plain k6/http
// requests measured, and what a script says of them (checks, metrics, thresholds), and prints all of
// it as one result line when the run ends.
package output

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
	"go.k6.io/k6/v2/output"

	"laptime.dev/k6/internal/live"
	"laptime.dev/k6/internal/process"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/sharing"
)

// The phases of a script. What setup() and teardown() ask is no load, what they check counts.
const (
	setup    = "setup"
	warmup   = "warmup"
	measured = "measured"
	teardown = "teardown"
)

func init() {
	output.RegisterExtension("laptime", func(params output.Params) (output.Output, error) {
		return New(params), nil
	})
}

// Output collects the samples of one run.
type Output struct {
	params output.Params
	epoch  time.Time
	warmup time.Duration
	mutex  sync.Mutex     // the start comes from beside k6
	share  *sharing.Share // nil: this generator is alone
	start  time.Time      // of all generators together; zero: not known, or alone
	abort  func(error)    // ends the run
	began  time.Time      // the first thing that a scenario did
	first  time.Time      // of all that counts
	last   time.Time
	target target

	phases     map[string]*phase
	cached     map[*metrics.TagSet]*source
	checks     map[*metrics.TagSet]*result.CheckCount
	failed     map[int64]*metrics.TagSet // when check() was called of which a check failed, the last ones; the first that did
	streams    map[string]bool           // methods of gRPC that are streams, by their URL
	measures   map[*metrics.Metric][]*measure
	groups     map[string]*measure
	parts      map[series][]*measure
	byTag      map[string]*measure // the same parts by their names
	scenarios  int                 // that are measured
	kept       []*measure
	judged     int             // of them: what thresholds are about
	leftOut    map[string]bool // metrics that there was no room for
	thresholds []*limits
	trails     bool // a threshold is about requests
	script     result.Script
	exceptions exceptions
	longest    time.Duration // that scenarios may take; 0: nobody said
	limited    bool          // and that is watched

	live        *live.Figures // nil: nobody is shown anything
	unserve     func()
	nextPublish time.Time

	cpu     time.Duration // used before the first sample came that a measured scenario made
	wall    time.Time
	lastCPU time.Duration
	lastAt  time.Time
	seen    bool // whether a measured scenario did anything since the last time
}

// phase is what belongs to one phase of the run.
type phase struct {
	recorder  *result.Recorder
	endpoints map[string]int
	further   map[string]bool // endpoints that there was no room for
	bytes     int64
	slot      *live.Slot
	began     time.Time // the first thing that a scenario did in it; zero: none did anything
	counts    bool      // checks, metrics and thresholds are about it
}

// New makes the output.
func New(params output.Params) *Output {
	tell(params.ScriptOptions.SystemTags)
	return &Output{
		params: params, phases: map[string]*phase{}, cached: map[*metrics.TagSet]*source{},
		checks: map[*metrics.TagSet]*result.CheckCount{}, failed: map[int64]*metrics.TagSet{}, streams: map[string]bool{}, groups: map[string]*measure{},
		measures: map[*metrics.Metric][]*measure{}, parts: map[series][]*measure{}, byTag: map[string]*measure{},
		scenarios: measuredScenarios(params), leftOut: map[string]bool{},
		script: result.Script{
			Executors: executors(params), Checks: map[string]*result.CheckCount{}, OtherHosts: map[string]*result.HostCount{},
			Exceptions: map[string]int64{},
		},
	}
}

// executors gives the kinds of the executors that are measured.
func executors(params output.Params) []string {
	kinds := map[string]bool{}
	for name, scenario := range params.ScriptOptions.Scenarios {
		if name != warmup {
			kinds[scenario.GetType()] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(kinds))...)
}

// measuredScenarios counts the scenarios but that of the warm-up.
func measuredScenarios(params output.Params) (count int) {
	for name := range params.ScriptOptions.Scenarios {
		if name != warmup {
			count++
		}
	}
	return count
}

// Description is what k6 shows.
func (o *Output) Description() string { return "laptime (histograms, one result line at the end)" }

// Start begins the clock that sample times count from.
func (o *Output) Start() error {
	if text, set := os.LookupEnv("LAPTIME_WARMUP_SECONDS"); set {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || seconds < 0 {
			return fmt.Errorf("LAPTIME_WARMUP_SECONDS: %q is no number of seconds", text)
		}
		o.warmup, o.script.Warmup = time.Duration(seconds*float64(time.Second)), "time"
	}
	o.target = newTarget(os.Getenv("TARGET"))
	o.epoch = time.Now()
	o.listen()
	o.showLive()
	if err := o.guard(); err != nil {
		return err
	}
	return o.join()
}

// AddMetricSamples records what k6 collected since the last call, some 50 ms ago.
func (o *Output) AddMetricSamples(containers []metrics.SampleContainer) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.began.IsZero() {
		o.began = o.earliest(containers)
	}
	o.seen = false
	for _, container := range containers {
		switch c := container.(type) {
		case *httpext.Trail:
			o.trail(c)
		case metrics.Sample:
			o.single(&c)
		default:
			samples := container.GetSamples()
			for i := range samples {
				o.single(&samples[i])
			}
		}
	}
	o.countExceptions()
	if o.seen {
		o.lastCPU, o.lastAt = process.CPU(), time.Now()
	}
	o.publish(time.Now())
}

// earliest gives when the first of the samples of scenarios began, zero if there are none.
func (o *Output) earliest(containers []metrics.SampleContainer) time.Time {
	var first time.Time
	see := func(tags *metrics.TagSet, at time.Time) {
		if o.source(tags).scenario && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, container := range containers {
		if trail, ok := container.(*httpext.Trail); ok {
			see(trail.Tags, trail.EndTime.Add(-latencyOf(trail)))
			continue
		}
		for _, s := range container.GetSamples() {
			see(s.Tags, beganAt(&s))
		}
	}
	return first
}

// beganAt gives when what a sample is about began.
func beganAt(s *metrics.Sample) time.Time {
	if s.Metric.Name == metrics.IterationDurationName || s.Metric.Name == metrics.GRPCReqDurationName {
		return s.Time.Add(-time.Duration(s.Value * float64(time.Millisecond)))
	}
	return s.Time
}

// latencyOf gives how long a request took. Blocked covers the wait for a connection and its set-up,
// Duration all from the first byte sent to the last one received.
func latencyOf(t *httpext.Trail) time.Duration {
	return max(t.Blocked, t.ConnDuration) + t.Duration
}

func (o *Output) single(s *metrics.Sample) {
	of := o.source(s.Tags)
	p := o.phaseOf(of, s.Time)
	if of.scenario {
		o.does(p, beganAt(s))
	}
	switch s.Metric.Name {
	case metrics.DroppedIterationsName:
		p.recorder.DropIterations(int64(s.Value))
	case metrics.DataReceivedName:
		p.bytes += int64(s.Value)
	case metrics.VUsName:
		if s.Value > 0 {
			o.limit()
		}
	case streamsName:
		o.streams[of.url] = true
	case metrics.GRPCReqDurationName:
		o.call(s, of)
	}
	if !p.counts {
		return
	}
	if of.scenario || of.phase != nil { // k6 itself says how many VUs it has before anything begins
		o.span(beganAt(s), s.Time)
	}
	switch s.Metric.Name {
	case metrics.ChecksName:
		o.check(s)
	case metrics.IterationsName:
		o.script.Iterations += int64(s.Value)
	case metrics.IterationDurationName:
		// k6 says it before it waits for what minIterationDuration asks for beside.
		least := o.params.ScriptOptions.MinIterationDuration.TimeDuration()
		o.script.IterationSeconds += max(s.Value/1000, least.Seconds())
	}
	o.measure(s)
}

// span keeps from when to when all that counts was.
func (o *Output) span(from, to time.Time) {
	if o.first.IsZero() || from.Before(o.first) {
		o.first = from
	}
	if to.After(o.last) {
		o.last = to
	}
}

// trail turns one request's trail into a sample.
func (o *Output) trail(t *httpext.Trail) {
	s := o.source(t.Tags)
	kind := s.kind
	if kind == result.OK && t.Failed.Valid && t.Failed.Bool {
		kind = result.Status
	}
	p := o.request(s, t.EndTime, latencyOf(t), t.ConnRemoteAddr, &result.Sample{
		Server: int64(t.Sending + t.Waiting), Connect: int64(t.ConnDuration), Status: s.status, Kind: kind,
	})
	if p.counts && (o.trails || len(s.parts) > 0) {
		for i := range t.Samples {
			o.measure(&t.Samples[i])
		}
	}
}

// request counts what was asked and ended at a time after so long, of the server under test or of another host,
// and gives its phase. The sample says what became of it.
func (o *Output) request(s *source, end time.Time, latency time.Duration, remote net.Addr, sample *result.Sample) *phase {
	issued := end.Add(-latency)
	p := o.phaseOf(s, issued)
	if s.scenario {
		o.does(p, issued)
	}
	if p.counts {
		if s.phase == nil {
			o.script.RequestSeconds += latency.Seconds()
		}
		o.span(issued, end)
	}
	if host := o.target.other(s, remote); host != "" {
		if p.counts {
			o.elsewhere(host, sample.Kind != result.OK)
		}
		return p
	}
	sample.Endpoint, sample.Done = s.endpointOf(p), int64(end.Sub(o.epoch))
	sample.Issued = sample.Done - int64(latency)
	p.recorder.Record(sample)
	return p
}

// Stop prints the result of a run that nothing is known to be wrong with.
func (o *Output) Stop() error { return o.StopWithTestError(nil) }

// StopWithTestError prints the result unless the run was cut short: half a measurement must not
// pass for a whole one. Thresholds that were missed do not make the figures wrong.
func (o *Output) StopWithTestError(runError error) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.unserve != nil {
		o.unserve()
	}
	if err := o.ended(abortReason(runError) == errext.AbortedByThreshold || cutShort(runError), tellTimeout); err != nil {
		return err
	}
	if cutShort(runError) || !result.Claim() {
		return nil
	}
	out := &result.Result{
		SchemaVersion: result.SchemaVersion, Trial: os.Getenv("LAPTIME_TRIAL_NAME"),
		Phases: map[string]*result.Phase{},
	}
	o.named(measured)
	for name, p := range o.phases {
		o.fold(name, p)
		figures, err := result.Merge(p.recorder)
		if err != nil {
			return err
		}
		figures.BytesReceived = p.bytes
		if name == measured && figures.Requests == 0 {
			o.lasted(figures)
		}
		out.Phases[name] = figures
	}
	if err := o.conclude(abortReason(runError)); err != nil {
		return err
	}
	out.Script, out.Segment = &o.script, o.segment()
	out.Generator = process.Describe(o.lastCPU-o.cpu, o.lastAt.Sub(o.wall))
	return result.WriteLine(o.params.StdOut, out)
}

// fold leaves the most used endpoints of a phase.
func (o *Output) fold(name string, p *phase) {
	most := maxOtherEndpoints
	switch {
	case name == measured && o.share != nil:
		most = maxSharedEndpoints
	case name == measured:
		most = maxEndpoints
	}
	folded := p.recorder.Fold(most, otherEndpoints)
	if name == measured {
		o.script.EndpointsLeftOut = folded + len(p.further)
	}
}

// conclude completes what the script says.
func (o *Output) conclude(reason errext.AbortReason) (err error) {
	if o.script.Warmup == "" && o.phases[warmup] != nil {
		o.script.Warmup = "scenario"
	}
	o.countExceptions()
	o.script.Aborted = reason == errext.AbortedByThreshold
	o.script.Metrics = o.metricsKept()
	from := o.first
	if begins := o.begins(); (o.warmup > 0 || o.phases[warmup] != nil) && !begins.IsZero() && begins.Before(o.last) {
		from = begins
	}
	took := o.last.Sub(from)
	o.script.Seconds = took.Seconds()
	o.script.Thresholds, err = o.judge(took)
	return err
}

// begins gives when what is measured began, zero if no scenario did anything that is.
func (o *Output) begins() time.Time {
	if o.warmup > 0 && !o.began.IsZero() {
		return o.began.Add(o.warmup)
	}
	return o.named(measured).began
}

// lasted says of a measured phase without requests from when to when it was: other protocols have only metrics.
func (o *Output) lasted(p *result.Phase) {
	if from := o.begins(); !from.IsZero() && from.Before(o.last) {
		p.FirstRequestAt = result.UnixSeconds(o.epoch, int64(from.Sub(o.epoch)))
		p.LastResponseAt = result.UnixSeconds(o.epoch, int64(o.last.Sub(o.epoch)))
		p.WindowSeconds = o.last.Sub(from).Seconds()
	}
}

func abortReason(err error) errext.AbortReason {
	var reason errext.HasAbortReason
	if errors.As(err, &reason) {
		return reason.AbortReason()
	}
	return 0
}

func cutShort(err error) bool {
	if err == nil {
		return false
	}
	switch abortReason(err) {
	case errext.AbortedByThreshold, errext.AbortedByThresholdsAfterTestEnd:
		return false
	}
	return true
}
