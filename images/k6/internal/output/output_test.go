package output

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"go.k6.io/k6/v2/errext"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"
	k6output "go.k6.io/k6/v2/output"
	"gopkg.in/guregu/null.v3"

	"laptime.dev/k6/internal/result"
)

func started(tb testing.TB) (*Output, *bytes.Buffer) {
	tb.Helper()
	stdout := &bytes.Buffer{}
	o := New(k6output.Params{StdOut: stdout})
	if err := o.Start(); err != nil {
		tb.Fatal(err)
	}
	return o, stdout
}

func tagged(registry *metrics.Registry, pairs ...string) *metrics.TagSet {
	tags := registry.RootTagSet()
	for i := 0; i < len(pairs); i += 2 {
		tags = tags.With(pairs[i], pairs[i+1])
	}
	return tags
}

func TestSamplesGoToTheirPhaseEndpointAndKind(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	trail := func(failed bool, pairs ...string) *httpext.Trail {
		return &httpext.Trail{
			EndTime: o.epoch.Add(time.Second), Blocked: 3 * time.Millisecond,
			ConnDuration: 2 * time.Millisecond, Duration: 10 * time.Millisecond,
			Sending: time.Millisecond, Waiting: 4 * time.Millisecond, Receiving: 5 * time.Millisecond,
			Failed: null.BoolFrom(failed), Tags: tagged(registry, pairs...),
		}
	}
	o.AddMetricSamples([]metrics.SampleContainer{
		trail(false, "scenario", "warmup", "name", "list", "status", "200"),
		trail(false, "scenario", "anything", "name", "list", "status", "200"),
		trail(true, "scenario", "anything", "name", "list", "status", "500", "error_code", "1500"),
		trail(false, "scenario", "anything", "name", "list", "status", "404", "error_code", "1404"),
		trail(true, "scenario", "anything", "name", "item", "status", "0", "error_code", "1050"),
		trail(true, "scenario", "anything", "name", "item", "status", "0", "error_code", "1212"),
		trail(true, "scenario", "anything", "name", "item", "status", "0", "error_code", "1220"),
		trail(true, "scenario", "anything", "name", "item", "status", "200", "error_code", "1701"),
		metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: builtin.DroppedIterations, Tags: tagged(registry, "scenario", "anything")}, Value: 2},
		metrics.Samples{{TimeSeries: metrics.TimeSeries{Metric: builtin.DataReceived, Tags: tagged(registry, "scenario", "anything")}, Value: 1234}},
	})
	warm, err := result.Merge(o.phases["warmup"].recorder)
	if err != nil || warm.Requests != 1 || warm.Responses != 1 {
		t.Errorf("warm-up: %+v, error %v", warm, err)
	}
	p, err := result.Merge(o.phases["measured"].recorder)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int64{"timeout": 1, "connect": 1, "reset": 1, "status": 1, "body": 1, "other": 0} {
		if p.Errors[kind] != want {
			t.Errorf("%d errors of kind %s, expected %d", p.Errors[kind], kind, want)
		}
	}
	// A status the script expects (404 here) is an answer like any other.
	if p.Requests != 7 || p.Responses != 2 || p.DroppedIterations != 2 || o.phases["measured"].bytes != 1234 {
		t.Errorf("%+v, %d bytes", p, o.phases["measured"].bytes)
	}
	if p.Endpoints["list"].Requests != 3 || p.Endpoints["item"].Errors != 4 {
		t.Errorf("endpoints %+v, %+v", p.Endpoints["list"], p.Endpoints["item"])
	}
	longest := int64(0)
	for _, s := range p.Seconds {
		longest = max(longest, s.MaxUs)
	}
	if longest != 13_000 {
		t.Errorf("latency %d µs, expected 13000: blocked (connection set-up included) and duration", longest)
	}
}

func TestRunsThatWereCutShortGiveNoResult(t *testing.T) {
	for _, c := range []struct {
		err error
		cut bool
	}{
		{nil, false},
		{errors.New("some failure"), true},
		{errext.WithAbortReasonIfNone(errors.New("ctrl-c"), errext.AbortedByUser), true},
		{errext.WithAbortReasonIfNone(errors.New("exec.test.abort"), errext.AbortedByScriptAbort), true},
		{errext.WithAbortReasonIfNone(errors.New("threshold"), errext.AbortedByThresholdsAfterTestEnd), false},
	} {
		if cutShort(c.err) != c.cut {
			t.Errorf("%v: cut short %v, expected %v", c.err, !c.cut, c.cut)
		}
	}
}

func TestEndpointsAreBounded(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	for i := range 500 {
		o.AddMetricSamples([]metrics.SampleContainer{&httpext.Trail{
			EndTime: o.epoch, Duration: time.Millisecond, Tags: tagged(registry, "name", time.Duration(i).String()),
		}})
	}
	p, err := result.Merge(o.phases["measured"].recorder)
	if err != nil || p.Requests != 500 || len(p.Endpoints) != maxEndpoints+1 || p.Endpoints["other"].Requests != 300 {
		t.Errorf("%d requests, %d endpoints, error %v", p.Requests, len(p.Endpoints), err)
	}
}

// BenchmarkAddMetricSamples is what the output costs per request of a k6/http script.
func BenchmarkAddMetricSamples(b *testing.B) {
	o, _ := started(b)
	registry := metrics.NewRegistry()
	tags := tagged(registry, "scenario", "measured", "name", "list", "status", "200", "method", "GET",
		"proto", "HTTP/1.1", "url", "list", "expected_response", "true", "group", "")
	batch := make([]metrics.SampleContainer, 100)
	for i := range batch {
		batch[i] = &httpext.Trail{Duration: time.Duration(i) * 20 * time.Microsecond, Tags: tags}
	}
	b.ResetTimer()
	for i := 0; i < b.N; i += len(batch) {
		end := o.epoch.Add(time.Duration(i) * 50 * time.Microsecond)
		for _, c := range batch {
			c.(*httpext.Trail).EndTime = end
		}
		o.AddMetricSamples(batch)
	}
}
