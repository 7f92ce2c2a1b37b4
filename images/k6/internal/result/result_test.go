package result

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func decode(t *testing.T, encoded string) *hdrhistogram.Histogram {
	t.Helper()
	if !strings.HasPrefix(encoded, "HISTFAAA") {
		t.Fatalf("%.12s… is not a V2 compressed histogram", encoded)
	}
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The layout must be HdrHistogram's own: the same values recorded there give the same counts.
func TestHistogramHasTheLayoutOfHdrHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var ours Histogram
	theirs := hdrhistogram.New(1, MaxMicroseconds, 3)
	values := []int64{1, 2, 2047, 2048, 2049, 4095, 4096, 1_000_000, MaxMicroseconds - 1, MaxMicroseconds}
	for range 100_000 {
		values = append(values, 1+random.Int64N(1<<(1+random.IntN(31))))
	}
	for _, v := range values {
		ours.Add(v)
		if err := theirs.RecordValue(v); err != nil {
			t.Fatal(err)
		}
		if bucket := bucketOf(v); lowestOf(bucket) > v || highestOf(bucket) < v {
			t.Fatalf("%d counts in the bucket %d … %d", v, lowestOf(bucket), highestOf(bucket))
		}
	}
	encoded, err := ours.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded := decode(t, encoded)
	if !decoded.Equals(theirs) {
		t.Error("not the histogram that HdrHistogram makes of the same values")
	}
	for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.9999} {
		if got, want := ours.Quantile(q), theirs.ValueAtQuantile(q*100); got != want {
			t.Errorf("quantile %v: %d, HdrHistogram says %d", q, got, want)
		}
	}
}

func TestHistogramTakesWhatLiesOutsideAtItsBounds(t *testing.T) {
	var h Histogram
	for _, v := range []int64{-5, 0, 1, MaxMicroseconds + 1, 1 << 60} {
		h.Add(v)
	}
	if h.Count() != 5 || h.Max() != MaxMicroseconds || h.Quantile(0.5) != 1 {
		t.Errorf("count %d, maximum %d, median %d", h.Count(), h.Max(), h.Quantile(0.5))
	}
	if encoded, err := h.Encode(); err != nil || decode(t, encoded).TotalCount() != 5 {
		t.Errorf("encoded %q, error %v", encoded, err)
	}
	var empty Histogram
	if empty.Quantile(0.99) != 0 || empty.Max() != 0 {
		t.Error("an empty histogram has quantiles")
	}
	if encoded, err := empty.Encode(); err != nil || decode(t, encoded).TotalCount() != 0 {
		t.Errorf("encoded %q, error %v", encoded, err)
	}
}

// Samples spread over any number of recorders must give the figures that one recorder gives.
func TestMergingLosesNothing(t *testing.T) {
	epoch := time.Unix(1_700_000_000, 0)
	random := rand.New(rand.NewPCG(3, 4))
	var samples []Sample
	for i := range 20_000 {
		issued := int64(i) * int64(time.Millisecond)
		samples = append(samples, Sample{
			Endpoint: i % 2, Issued: issued, Done: issued + random.Int64N(int64(3*time.Second)),
			Server: random.Int64N(1e9), Connect: random.Int64N(2) * 1e6, Bytes: 10,
			Status: 200 + i%3, Kind: Kind(random.IntN(int(kinds))),
		})
	}
	slices.SortFunc(samples, func(a, b Sample) int { return int(a.Done - b.Done) })
	names := []string{"a", "b"}
	one := NewRecorder(epoch, 0, names)
	parts := []*Recorder{NewRecorder(epoch, 0, names), NewRecorder(epoch, 0, names), NewRecorder(epoch, 0, names)}
	for i := range samples {
		one.Record(&samples[i])
		parts[random.IntN(len(parts))].Record(&samples[i])
	}
	whole, err := Merge(one)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := Merge(parts...)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(whole, merged) {
		t.Errorf("one recorder:\n%+v\nthree merged:\n%+v", whole, merged)
	}
	if whole.Requests != 20_000 || whole.BytesReceived != 200_000 || len(whole.Seconds) < 20 {
		t.Errorf("%d requests, %d bytes, %d seconds", whole.Requests, whole.BytesReceived, len(whole.Seconds))
	}
}

func TestSecondsTakeSamplesOutOfOrder(t *testing.T) {
	epoch := time.Unix(1_700_000_000, 0)
	ordered, shuffled := NewRecorder(epoch, 0, []string{"a"}), NewRecorder(epoch, 0, []string{"a"})
	var samples []Sample
	for i := range 5_000 {
		done := int64(i) * int64(10*time.Millisecond)
		samples = append(samples, Sample{Issued: done - int64(i)*1000, Done: done})
	}
	for i := range samples {
		ordered.Record(&samples[i])
	}
	rand.New(rand.NewPCG(5, 6)).Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
	for i := range samples {
		shuffled.Record(&samples[i])
	}
	a, err := Merge(ordered)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Merge(shuffled)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Error("the order of the samples changed the figures")
	}
	if len(a.Seconds) != 50 || a.Seconds[7].Requests != 100 || a.Seconds[7].MaxUs < a.Seconds[7].P50Us {
		t.Errorf("%d seconds, the eighth: %+v", len(a.Seconds), a.Seconds[7])
	}
}

func TestWhatIsGivenUpUnsentIsInItsSecond(t *testing.T) {
	r := NewRecorder(time.Now(), 5e8, []string{"list"})
	r.Record(&Sample{Issued: 5e8, Done: 6e8, Status: 200})
	for _, at := range []int64{16e8, 16e8, 17e8} {
		r.Drop(0, at)
	}
	r.Record(&Sample{Issued: 17e8, Done: 18e8, Kind: Timeout})
	// After the last answer.
	for range 4 {
		r.Drop(0, 36e8)
	}
	p, err := Merge(r, r)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Seconds) != 4 || p.Requests != 4 || p.DroppedIterations != 14 || p.Endpoints["list"].Dropped != 14 {
		t.Fatalf("%+v", p)
	}
	for second, counts := range [][3]int64{{2, 0, 0}, {2, 2, 6}, {0, 0, 0}, {0, 0, 8}} {
		got := p.Seconds[second]
		if got.T != second || [3]int64{got.Requests, got.Errors, got.Dropped} != counts {
			t.Errorf("second %d: %+v, expected %v", second, got, counts)
		}
	}
	if p.LastResponseAt-p.FirstRequestAt > 1.31 {
		t.Errorf("the last answer is %f s after the first request", p.LastResponseAt-p.FirstRequestAt)
	}
}

func TestLineComesBackAsItWas(t *testing.T) {
	recorder := NewRecorder(time.Now(), 0, []string{"list"})
	recorder.Record(&Sample{Issued: 0, Done: 5e6, Server: 4e6, Connect: 1e6, Status: 200, Bytes: 7})
	recorder.Record(&Sample{Issued: 1e6, Done: 6e6, Kind: Timeout})
	for range 3 {
		recorder.Drop(0, 7e6)
	}
	phase, err := Merge(recorder)
	if err != nil {
		t.Fatal(err)
	}
	in := &Result{
		SchemaVersion: SchemaVersion, Trial: "demo", Phases: map[string]*Phase{"measured": phase},
		Generator: Generator{CPUSeconds: 1.5, MaxProcs: 2, Version: "k6 v2.2.0"},
	}
	var line bytes.Buffer
	if err := WriteLine(&line, in); err != nil {
		t.Fatal(err)
	}
	if strings.Count(line.String(), "\n") != 1 {
		t.Errorf("not one line: %q", line.String())
	}
	out, err := ParseLine(line.String())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, out) {
		t.Errorf("%+v became %+v", in, out)
	}
	p := out.Phases["measured"]
	if p.Requests != 2 || p.Responses != 1 || p.Errors["timeout"] != 1 || p.DroppedIterations != 3 {
		t.Errorf("%+v", p)
	}
	if latency := decode(t, p.Endpoints["list"].Latency); latency.TotalCount() != 1 || latency.Max()/4 != 5000/4 {
		t.Errorf("%d latencies, the longest %d µs", latency.TotalCount(), latency.Max())
	}
	for _, broken := range []string{"", "hello", LinePrefix + "!", LinePrefix + "aGVsbG8="} {
		if _, err := ParseLine(broken); err == nil {
			t.Errorf("%q was taken for a result", broken)
		}
	}
}

// BenchmarkRecord is what the native loop pays per request for its figures.
func BenchmarkRecord(b *testing.B) {
	recorder := NewRecorder(time.Now(), 0, []string{"list"})
	sample := Sample{Status: 200, Server: 900_000, Bytes: 1000}
	for i := range b.N {
		sample.Issued = int64(i) * 20_000
		sample.Done = sample.Issued + 1_000_000 + int64(i%1000)*1000
		recorder.Record(&sample)
	}
}
