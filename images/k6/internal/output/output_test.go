package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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
		trail(true, "scenario", "anything", "name", "item", "status", "0", "error_code", "1213",
			"error", "dial: unknown errno 113 error with msg `no route to host`"),
		trail(true, "scenario", "anything", "name", "item", "status", "0", "error_code", "1213",
			"error", "dial: unknown errno 99 error with msg `cannot assign requested address`"),
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
	for kind, want := range map[string]int64{"timeout": 1, "connect": 2, "port": 1, "reset": 1, "status": 1, "body": 1, "other": 0} {
		if p.Errors[kind] != want {
			t.Errorf("%d errors of kind %s, expected %d", p.Errors[kind], kind, want)
		}
	}
	// A status the script expects (404 here) is an answer like any other.
	if p.Requests != 9 || p.Responses != 2 || p.DroppedIterations != 2 || o.phases["measured"].bytes != 1234 {
		t.Errorf("%+v, %d bytes", p, o.phases["measured"].bytes)
	}
	if p.Endpoints["list"].Requests != 3 || p.Endpoints["item"].Errors != 6 {
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
	const names, often = 2 * maxNames, maxEndpoints - 1
	ask := func(i int) {
		o.AddMetricSamples([]metrics.SampleContainer{&httpext.Trail{
			EndTime: o.epoch, Duration: time.Millisecond, Tags: tagged(registry, "name", strconv.Itoa(i)),
		}})
	}
	for i := range names {
		ask(i)
	}
	// The most used ones are not those that came first.
	for range 2 {
		for i := range often {
			ask(maxNames - 1 - i)
		}
	}
	o.fold(measured, o.phases[measured])
	p, err := result.Merge(o.phases[measured].recorder)
	if err != nil || p.Requests != names+2*often || len(p.Endpoints) != maxEndpoints || p.Endpoints["other"].Requests != names-often {
		t.Errorf("%d requests, %d endpoints, others %+v, error %v", p.Requests, len(p.Endpoints), p.Endpoints["other"], err)
	}
	for i := range often - 1 {
		if one := p.Endpoints[strconv.Itoa(maxNames-1-i)]; one == nil || one.Requests != 3 {
			t.Errorf("%d: %+v", maxNames-1-i, one)
		}
	}
	if o.script.EndpointsLeftOut != names-often {
		t.Errorf("%d are left out", o.script.EndpointsLeftOut)
	}
}

func TestAFewEndpointsAreAllKept(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	for i := range maxEndpoints {
		o.AddMetricSamples([]metrics.SampleContainer{&httpext.Trail{EndTime: o.epoch, Tags: tagged(registry, "name", strconv.Itoa(i))}})
	}
	o.fold(measured, o.phases[measured])
	p, err := result.Merge(o.phases[measured].recorder)
	if err != nil || len(p.Endpoints) != maxEndpoints || p.Endpoints["other"] != nil || o.script.EndpointsLeftOut != 0 {
		t.Errorf("%d endpoints, %d left out, error %v", len(p.Endpoints), o.script.EndpointsLeftOut, err)
	}
}

// checkSample is one answer of a check with this name.
func checkSample(registry *metrics.Registry, metric *metrics.Metric, held float64, pairs ...string) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: metric, Tags: tagged(registry, pairs...)}, Value: held}
}

func TestChecksAreBounded(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	for i := range 300 {
		for _, held := range []float64{1, 0} {
			o.AddMetricSamples([]metrics.SampleContainer{checkSample(registry, builtin.Checks, held, "check", strconv.Itoa(i))})
		}
	}
	more := o.script.MoreChecks
	if len(o.script.Checks) != maxChecks || *o.script.Checks["7"] != (result.CheckCount{Passed: 1, Failed: 1}) || more.Passed != 200 || more.Failed != 200 {
		t.Errorf("%d checks, more: %+v", len(o.script.Checks), more)
	}
}

func TestAnAnswerThatFailsSeveralChecksIsWrongOnce(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	began := time.Now()
	for call := range 3 * maxCached {
		var samples []metrics.SampleContainer
		for i, held := range []float64{1, 0, 0} {
			sample := checkSample(registry, builtin.Checks, held, "check", strconv.Itoa(i), "scenario", "default")
			sample.Time = began.Add(time.Duration(call))
			samples = append(samples, sample)
		}
		o.AddMetricSamples(samples)
	}
	if o.script.WrongAnswers != 3*maxCached || o.script.Checks["1"].Failed != 3*maxCached || len(o.failed) > maxCached {
		t.Errorf("%d answers are wrong, %+v, %d are known", o.script.WrongAnswers, o.script.Checks["1"], len(o.failed))
	}
}

func TestTwoWrongAnswersInTheSameNanosecondAreTwo(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	at := time.Now()
	// Of two VUs, whose samples may come in any order.
	for _, name := range []string{"status", "status", "body", "body"} {
		sample := checkSample(registry, builtin.Checks, 0, "check", name, "scenario", "default")
		sample.Time = at
		o.AddMetricSamples([]metrics.SampleContainer{sample})
	}
	if o.script.WrongAnswers != 2 {
		t.Errorf("%d answers are wrong, of two calls with two checks each", o.script.WrongAnswers)
	}
}

func TestChecksOfTheWarmupDoNotCountAndThoseOfSetupDo(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	o.AddMetricSamples([]metrics.SampleContainer{
		checkSample(registry, builtin.Checks, 0, "check", "one", "scenario", "warmup"),
		checkSample(registry, builtin.Checks, 1, "check", "one", "scenario", "default", "group", "::a::b"),
		checkSample(registry, builtin.Checks, 0, "check", "one", "group", "::setup"),
		checkSample(registry, builtin.Checks, 0, "check", "one", "group", "::setups"),
	})
	if len(o.script.Checks) != 3 || o.script.Checks["a::b::one"].Passed != 1 || o.script.Checks["setup::one"].Failed != 1 {
		t.Errorf("%+v", o.script.Checks)
	}
	if o.phases["setup"] == nil || len(o.phases) != 3 {
		t.Errorf("phases %v", o.phases)
	}
}

func TestNamesAreCutAtTheEndOfACharacter(t *testing.T) {
	if got := shortened(strings.Repeat("a", 199)+"é", 200); got != strings.Repeat("a", 199) {
		t.Errorf("%q", got)
	}
	if got := cut(strings.Repeat("é", 100)); got != strings.Repeat("é", 100) {
		t.Errorf("%q", got)
	}
	if got := cut(strings.Repeat("é", 101)); len(got) > maxName || !utf8.ValidString(got) || cut(got) != got {
		t.Errorf("%q, %d bytes", got, len(got))
	}
}

func TestLongNamesAreToldApartByAllOfThem(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	o.target = target{host: "server:80"}
	begin := strings.Repeat("n", 250)
	metric := registry.MustNewMetric("sizes", metrics.Counter)
	criteria := map[string]metrics.Thresholds{}
	for i, end := range []string{"a", "b"} {
		criteria["sizes{kind:"+begin+end+"}"] = metrics.NewThresholds([]string{fmt.Sprintf("count==%d", i+1)})
	}
	o.SetThresholds(criteria)
	for i, end := range []string{"a", "b"} {
		for range i + 1 {
			o.AddMetricSamples([]metrics.SampleContainer{
				&httpext.Trail{EndTime: o.epoch, Tags: tagged(registry, "name", begin+end, "scenario", "default")},
				&httpext.Trail{EndTime: o.epoch, Tags: tagged(registry, "url", "http://"+begin+end+"/")},
				checkSample(registry, metric, 1, "kind", begin+end),
				checkSample(registry, builtin.Checks, 1, "check", begin+end),
			})
		}
	}
	p, err := result.Merge(o.phases[measured].recorder)
	if err != nil || len(p.Endpoints) != 2 || p.Endpoints[cut(begin+"b")].Requests != 2 {
		t.Errorf("endpoints %v, error %v", p.Endpoints, err)
	}
	if hosts := o.script.OtherHosts; len(hosts) != 2 {
		t.Errorf("hosts %v", hosts)
	}
	if checks := o.script.Checks; len(checks) != 2 || checks[cut(begin+"b")].Passed != 2 {
		t.Errorf("checks %v", checks)
	}
	all := o.metricsKept()
	judged, err := o.judge(time.Second)
	if err != nil || len(judged) != 2 || judged[0].Metric == judged[1].Metric {
		t.Fatalf("%+v, error %v", judged, err)
	}
	for i, one := range judged {
		if !one.Met || all[one.Metric] == nil || all[one.Metric].Samples != int64(i+1) {
			t.Errorf("%+v, %+v", one, all[one.Metric])
		}
	}
}

func TestOtherHostsAreBounded(t *testing.T) {
	o, _ := started(t)
	o.target = target{host: "server:80"}
	registry := metrics.NewRegistry()
	for i := range 50 {
		o.AddMetricSamples([]metrics.SampleContainer{&httpext.Trail{
			EndTime: o.epoch, Tags: tagged(registry, "url", fmt.Sprintf("http://host-%d/", i)),
		}})
	}
	if len(o.script.OtherHosts) != maxHosts || o.script.MoreHosts.Requests != 50-maxHosts {
		t.Errorf("%d hosts, more: %+v", len(o.script.OtherHosts), o.script.MoreHosts)
	}
}

func TestHostsAreReadWithTheirPorts(t *testing.T) {
	for text, want := range map[string]string{
		"http://Server/x": "server:80", "https://server": "server:443", "http://[::1]:8080/": "[::1]:8080",
		"http://user:secret@server:81/": "server:81", "list": "", "http://": "", "http://%zz": "",
	} {
		if got := hostOf(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

func TestMetricsAreBounded(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	for i := range 150 {
		metric := registry.MustNewMetric(fmt.Sprintf("metric_%d", i), metrics.Counter)
		for range 2 {
			o.AddMetricSamples([]metrics.SampleContainer{checkSample(registry, metric, 1)})
		}
	}
	// What thresholds are about has room of its own.
	o.SetThresholds(map[string]metrics.Thresholds{"late": metrics.NewThresholds([]string{"count>1"})})
	late := registry.MustNewMetric("late", metrics.Counter)
	for range 2 {
		o.AddMetricSamples([]metrics.SampleContainer{checkSample(registry, late, 1)})
	}
	if all, err := o.judge(time.Second); err != nil || !all[0].Met || all[0].Samples != 2 {
		t.Errorf("%+v, error %v", all, err)
	}
	// Each duration of a group that has no room is that of the same one.
	duration := metrics.RegisterBuiltinMetrics(registry).GroupDuration
	for range 10 {
		o.AddMetricSamples([]metrics.SampleContainer{checkSample(registry, duration, 1, "group", "::one")})
	}
	kept := o.metricsKept()
	if len(kept) != maxMetrics+1 || kept["late"] == nil || o.script.MetricsLeftOut != 52 {
		t.Errorf("%d metrics, %v, %d left out", len(kept), kept["late"], o.script.MetricsLeftOut)
	}
}

// What a script adds where it found nothing yet must not lose the trial: JSON has no sum of two such numbers.
func TestASumThatIsNoNumberLosesNothingElse(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	o.SetThresholds(map[string]metrics.Thresholds{
		"best": metrics.NewThresholds([]string{"avg<1000", "max>1000"}),
		"sold": metrics.NewThresholds([]string{"count<1000", "rate<1000"}),
	})
	best, sold := registry.MustNewMetric("best", metrics.Trend), registry.MustNewMetric("sold", metrics.Counter)
	for range 2 {
		o.AddMetricSamples([]metrics.SampleContainer{
			checkSample(registry, best, math.MaxFloat64), checkSample(registry, sold, math.MaxFloat64),
		})
	}
	judged, err := o.judge(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for i, met := range []bool{false, true, false, false} {
		if one := judged[i]; one.Met != met || one.Value != math.MaxFloat64 {
			t.Errorf("%+v", one)
		}
	}
	kept := o.metricsKept()
	if _, err := json.Marshal(kept); err != nil || kept["best"].Sum != math.MaxFloat64 || kept["best"].Samples != 2 {
		t.Errorf("%+v, error %v", kept["best"], err)
	}
	if _, err := json.Marshal(judged); err != nil {
		t.Error(err)
	}
}

// A script's own names are its own, whatever they begin with.
func TestOwnMetricsThatAreNamedLikeThoseOfK6AreKept(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	builtin := metrics.RegisterBuiltinMetrics(registry)
	for _, metric := range []*metrics.Metric{
		registry.MustNewMetric("http_req_checkout", metrics.Trend), registry.MustNewMetric("data_load_time", metrics.Trend),
		builtin.HTTPReqs, builtin.HTTPReqWaiting, builtin.HTTPReqDuration, builtin.DataSent,
	} {
		o.AddMetricSamples([]metrics.SampleContainer{checkSample(registry, metric, 1, "scenario", "default", "kind", "a")})
	}
	kept := slices.Sorted(maps.Keys(o.metricsKept()))
	if want := []string{
		"data_load_time", "data_load_time{kind:a}", "data_sent", "http_req_checkout", "http_req_checkout{kind:a}", "http_req_duration{kind:a}",
	}; !slices.Equal(kept, want) {
		t.Errorf("%q", kept)
	}
	o.SetThresholds(map[string]metrics.Thresholds{"http_req_checkout": metrics.NewThresholds([]string{"max<1"})})
	if o.trails {
		t.Error("the metrics of each request are looked at for a threshold on another one")
	}
}

func TestPartsOfMetricsAreBounded(t *testing.T) {
	o, _ := started(t)
	registry := metrics.NewRegistry()
	metric := registry.MustNewMetric("sizes", metrics.Trend)
	for i := range 20_000 {
		o.AddMetricSamples([]metrics.SampleContainer{checkSample(registry, metric, 1, "scenario", "default", "kind", strconv.Itoa(i))})
	}
	all := o.metricsKept()
	if len(all) != 1+maxParts || all["sizes"].Samples != 20_000 || all["sizes{kind:0}"].Samples != 1 || !o.script.PartsLeftOut || o.script.MetricsLeftOut != 0 {
		t.Errorf("%d metrics, %d left out", len(all), o.script.MetricsLeftOut)
	}
	if len(o.parts) > maxCached {
		t.Errorf("%d sets of tags are remembered", len(o.parts))
	}
}

func TestAScrapeHasFewRequests(t *testing.T) {
	r := result.NewRecorder(time.Now(), 0, nil)
	for i := range 100 {
		name := strconv.Itoa(i)
		if i == 0 {
			name = "not \xff UTF-8"
		}
		r.Record(&result.Sample{Endpoint: r.AddEndpoint(name), Done: int64(time.Millisecond), Status: 200})
	}
	all, sum := few(r.Tally()).Endpoints, int64(0)
	for _, one := range all {
		sum += one.Requests
	}
	if len(all) != maxShown || sum != 100 || all[0].Name != "not \uFFFD UTF-8" || all[maxShown-1].Latencies.Count != 81 {
		t.Errorf("%d requests with %d names: %+v", sum, len(all), all)
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

// The limit of a container is found by cgroup v2 and by v1; what is none is none.
func TestTheLimitOfMemoryIsTheContainers(t *testing.T) {
	usual := memoryLimits
	t.Cleanup(func() { memoryLimits = usual })
	total, err := memoryTotal()
	if err != nil {
		t.Fatal(err)
	}
	for text, bytes := range map[string]uint64{
		"100000000\n":           95_000_000,
		"max\n":                 total / 2,
		"9223372036854771712\n": total / 2,
		"":                      total / 2,
	} {
		file := filepath.Join(t.TempDir(), "limit")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		memoryLimits = []string{"/nowhere", file}
		if most, whose := memoryBound(); most != bytes || whose == "" {
			t.Errorf("%q: %d %s", text, most, whose)
		}
	}
}
