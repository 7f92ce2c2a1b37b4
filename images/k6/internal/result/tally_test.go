package result

import (
	"math"
	"testing"
	"time"
)

func TestTallyCountsWhatWasRecorded(t *testing.T) {
	r := NewRecorder(time.Now(), 0, []string{"a", "b"})
	exact, below := 0.0, [len(TallyBounds)]uint64{}
	for us := int64(60); us < 200_000_000; us = us*11/10 + 1 {
		r.Record(&Sample{Endpoint: 1, Done: us * 1000, Status: 200})
		exact += float64(us)
		for i, bound := range TallyBounds {
			if us <= bound {
				below[i]++
			}
		}
	}
	r.Record(&Sample{Endpoint: 1, Done: 1000, Status: 503, Kind: Status})
	r.Record(&Sample{Endpoint: 0, Done: 1000, Kind: Reset})
	tally := r.Tally()
	b := &tally.Endpoints[1]
	if b.Name != "b" || uint64(b.Requests) != b.Latencies.Count+1 || tally.Endpoints[0].Requests != 1 {
		t.Errorf("%+v", tally.Endpoints)
	}
	if b.Latencies.Below != below || b.Latencies.Count <= below[len(below)-1] {
		t.Errorf("%v of %d, expected %v", b.Latencies.Below, b.Latencies.Count, below)
	}
	if off := math.Abs(float64(b.Latencies.SumMicroseconds)/exact - 1); off > 0.001 {
		t.Errorf("the sum is %d, expected %f", b.Latencies.SumMicroseconds, exact)
	}
	seen := map[string]int64{}
	tally.EachError(func(kind string, count int64) { seen[kind] = count })
	if len(seen) != 9 || seen["status"] != 1 || seen["reset"] != 1 || seen["timeout"] != 0 {
		t.Errorf("%v", seen)
	}
	r.Record(&Sample{Endpoint: 0, Done: 2000, Kind: Reset})
	if tally.Endpoints[0].Requests != 1 {
		t.Error("a tally changes with its recorder")
	}
}

// What a loop spends on each copy: answers of up to 5 ms, as of a fast server.
func BenchmarkTally(b *testing.B) {
	r := NewRecorder(time.Now(), 0, []string{"list"})
	for us := int64(1); us < 5000; us++ {
		r.Record(&Sample{Done: us * 1000, Status: 200})
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Tally()
	}
}
