package live

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"laptime.dev/k6/internal/result"
)

func scrape(t *testing.T, handler http.Handler) map[string]*dto.MetricFamily {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil || answer.Code != http.StatusOK {
		t.Fatalf("status %d: %v", answer.Code, err)
	}
	return families
}

// value gives the one sample whose labels have these values, -1 for none.
func value(family *dto.MetricFamily, labels ...string) float64 {
	for _, m := range family.GetMetric() {
		var has []string
		for _, l := range m.GetLabel() {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if strings.Join(has, " ") == strings.Join(labels, " ") {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

func tally(good, refused int) *result.Tally {
	r := result.NewRecorder(time.Now(), 0, []string{"list"})
	for range good {
		r.Record(&result.Sample{Done: int64(3 * time.Millisecond), Status: 200})
	}
	for range refused {
		r.Record(&result.Sample{Done: int64(time.Second), Kind: result.Connect})
	}
	return r.Tally()
}

func TestAScrapeAddsTheLoopsUp(t *testing.T) {
	f := New("warmup", "measured")
	handler := f.handler(newNote(io.Discard))
	if found := scrape(t, handler); value(found["laptime_generator_phase"], "phase=warmup") != 0 || len(found) != 1 {
		t.Errorf("before the first phase: %v", found)
	}
	f.Begin("warmup").Slot().Publish(tally(5, 0))
	f.End()
	phase := f.Begin("measured")
	one, two := phase.Slot(), phase.Slot()
	one.Publish(tally(1, 1))
	one.Publish(tally(20, 1))
	two.Publish(tally(300, 2))
	phase.Slot() // of a loop that has only just started
	found := scrape(t, handler)
	for labels, want := range map[string]float64{
		"laptime_generator_requests_total endpoint=list phase=measured": 323,
		"laptime_generator_requests_total endpoint=list phase=warmup":   5,
		"laptime_generator_errors_total kind=connect phase=measured":    3,
		"laptime_generator_errors_total kind=timeout phase=measured":    0,
		"laptime_generator_errors_total kind=connect phase=warmup":      0,
		"laptime_generator_phase phase=measured":                        1,
		"laptime_generator_phase phase=warmup":                          0,
	} {
		words := strings.Fields(labels)
		if got := value(found[words[0]], words[1:]...); got != want {
			t.Errorf("%s: %v, expected %v", labels, got, want)
		}
	}
	latency := found["laptime_generator_latency_seconds"].GetMetric()[0].GetHistogram()
	if latency.GetSampleCount() != 320 || latency.GetSampleSum() < 0.959 || latency.GetSampleSum() > 0.961 {
		t.Errorf("%v", latency)
	}
	for _, bucket := range latency.GetBucket() {
		want := uint64(0)
		if bucket.GetUpperBound() >= 0.003 {
			want = 320
		}
		if bucket.GetCumulativeCount() != want {
			t.Errorf("%d at or below %v s, expected %d", bucket.GetCumulativeCount(), bucket.GetUpperBound(), want)
		}
	}
	if n := len(latency.GetBucket()); n != len(result.TallyBounds)+1 {
		t.Errorf("%d buckets", n)
	}
}

func TestServeWithoutAPlaceToListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for address, lines := range map[string]int{"": 0, taken.Addr().String(): 1, "nonsense": 1} {
		var notes bytes.Buffer
		figures, stop := Serve(address, &notes, "measured")
		if figures != nil || strings.Count(notes.String(), "\n") != lines {
			t.Errorf("%q: %v %q", address, figures, notes.String())
		}
		// All else goes on as it would.
		if figures.Begin("measured").Slot() != nil {
			t.Errorf("%q: a slot that nobody looks at", address)
		}
		figures.End()
		stop()
	}
}

func TestOneLineForManyFailedScrapes(t *testing.T) {
	f := New("measured")
	r := result.NewRecorder(time.Now(), 0, []string{"not \xff UTF-8"})
	f.Begin("measured").Slot().Publish(r.Tally())
	var notes bytes.Buffer
	handler := f.handler(newNote(&notes))
	for range 3 {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if answer.Code != http.StatusInternalServerError {
			t.Errorf("status %d", answer.Code)
		}
	}
	if strings.Count(notes.String(), "laptime: no live figures: ") != 1 {
		t.Errorf("%q", notes.String())
	}
}

// What a scrape costs the process: two phases of two loops.
func BenchmarkScrape(b *testing.B) {
	f := New("warmup", "measured")
	for _, phase := range []string{"warmup", "measured"} {
		running := f.Begin(phase)
		running.Slot().Publish(tally(1000, 1))
		running.Slot().Publish(tally(1000, 1))
	}
	handler := f.handler(newNote(io.Discard))
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
	}
}
