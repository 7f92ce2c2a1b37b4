package result

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// counted gives the counts of a sparse histogram by their buckets.
func counted(s Sparse) map[int]int64 {
	out, at := map[int]int64{}, 0
	for i := 0; i < len(s); i += 2 {
		at += int(s[i])
		out[at] += s[i+1]
	}
	return out
}

func TestEachSecondHasItsErrorsByKindAndItsLatencies(t *testing.T) {
	r := NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	second := int64(time.Second)
	r.Record(&Sample{Issued: 0, Done: 3_000_000, Status: 200})
	r.Record(&Sample{Issued: 0, Done: 5_000_000, Kind: Timeout})
	r.Record(&Sample{Issued: second, Done: second + 1_000_000, Kind: Reset})
	r.Record(&Sample{Issued: second, Done: second + 1_000_000, Kind: Reset})
	p, err := Merge(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.LatencySeconds != 1 || len(p.Seconds) != 2 {
		t.Fatalf("%d s to a histogram, %d s", p.LatencySeconds, len(p.Seconds))
	}
	first, last := p.Seconds[0], p.Seconds[1]
	if first.Errors != 1 || first.Kinds["timeout"] != 1 || len(first.Kinds) != 1 {
		t.Errorf("first second: %+v", first)
	}
	if last.Errors != 2 || last.Kinds["reset"] != 2 || len(last.Latency) != 0 {
		t.Errorf("last second: %+v", last)
	}
	for i, n := range counted(first.Latency) {
		if upper := math.Exp2(float64(i) / 128); n != 1 || upper < 0.003 || upper > 0.003*1.007 {
			t.Errorf("%d in the bucket up to %v s, expected one of 3 ms", n, upper)
		}
	}
}

func TestASparseHistogramIsNoWiderThanAHundredth(t *testing.T) {
	var h Histogram
	random := rand.New(rand.NewPCG(7, 8))
	for range 10_000 {
		us := 1 + random.Int64N(1<<(1+random.IntN(31)))
		i := float64(sparseBucketOf(float64(lowestOf(bucketOf(us))+highestOf(bucketOf(us))) / 2))
		lower, upper := 1e6*math.Exp2((i-1)/128), 1e6*math.Exp2(i/128)
		// A value near a bound may count beside it: its own bucket is a thousandth wide.
		if v := float64(us); v < lower/1.001-1 || v > upper*1.001+1 || upper/lower > 1.0055 {
			t.Fatalf("%d µs counts in %v … %v", us, lower, upper)
		}
		h.Add(us)
	}
	total := int64(0)
	for _, n := range h.buckets() {
		total += n
	}
	if total != h.Count() {
		t.Errorf("%d of %d values", total, h.Count())
	}
}

// A long phase has fewer histograms, in which nothing is missing.
func TestALongPhaseHasItsLatenciesOfSeveralSeconds(t *testing.T) {
	r := NewRecorder(time.Unix(1_700_000_000, 0), 0, []string{"list"})
	const seconds, width = 1001, 300
	for s := range int64(seconds) {
		for i := range int64(width) {
			done := s*int64(time.Second) + i*int64(time.Millisecond)
			r.Record(&Sample{Issued: done - int64(1e6*math.Exp2(float64(i)/64)), Done: done})
		}
	}
	p, err := Merge(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.LatencySeconds != 2 || len(p.Seconds) != seconds {
		t.Fatalf("%d s to a histogram, %d s", p.LatencySeconds, len(p.Seconds))
	}
	size, total := 0, int64(0)
	for at, s := range p.Seconds {
		size += len(s.Latency) / 2
		for _, n := range counted(s.Latency) {
			total += n
		}
		if (len(s.Latency) > 0) != (at%2 == 1 || at == seconds-1) {
			t.Fatalf("second %d has %d numbers", at, len(s.Latency))
		}
	}
	if total != seconds*width || size > mostBuckets {
		t.Errorf("%d answers in %d buckets", total, size)
	}
}
