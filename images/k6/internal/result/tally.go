package result

// TallyBounds are the upper bounds, in microseconds, of the latency buckets of a Tally.
var TallyBounds = [...]int64{
	100, 250, 500,
	1_000, 2_500, 5_000,
	10_000, 25_000, 50_000,
	100_000, 250_000, 500_000,
	1_000_000, 2_500_000, 5_000_000,
	10_000_000, 30_000_000, 60_000_000,
}

// Tally is a copy of what a recorder has counted so far, small enough to be taken while it records.
type Tally struct {
	Endpoints []EndpointTally
	errors    [kinds]int64
}

// EndpointTally is one endpoint's counts. Latencies are those of good answers, in microseconds.
type EndpointTally struct {
	Name      string
	Requests  int64
	Latencies LatencyTally
}

// LatencyTally is a histogram in a few wide buckets.
type LatencyTally struct {
	Count uint64
	// To a thousandth: a value counts as the middle of its HdrHistogram bucket.
	SumMicroseconds uint64
	// How many were at or below each of TallyBounds, to a thousandth of the bound.
	Below [len(TallyBounds)]uint64
}

// Add adds the counts of another.
func (l *LatencyTally) Add(other *LatencyTally) {
	l.Count += other.Count
	l.SumMicroseconds += other.SumMicroseconds
	for i, n := range other.Below {
		l.Below[i] += n
	}
}

// EachError calls see with the name of each kind of error and how many there were.
func (t *Tally) EachError(see func(kind string, count int64)) {
	for kind := Timeout; kind < kinds; kind++ {
		see(kindNames[kind], t.errors[kind])
	}
}

// Tally copies the counts. Like Record it belongs to the recorder's goroutine.
func (r *Recorder) Tally() *Tally {
	t := &Tally{Endpoints: make([]EndpointTally, len(r.endpoints)), errors: r.errors}
	for i, ep := range r.endpoints {
		t.Endpoints[i] = EndpointTally{ep.name, ep.requests, ep.latency.tally()}
	}
	return t
}

func (h *Histogram) tally() LatencyTally {
	out := LatencyTally{Count: h.total}
	next, last, seen := 0, bucketOf(TallyBounds[0]), uint64(0)
	h.each(func(bucket int, n uint64) bool {
		for bucket > last {
			out.Below[next] = seen
			if next++; next < len(TallyBounds) {
				last = bucketOf(TallyBounds[next])
			} else {
				last = bucketCount
			}
		}
		seen += n
		out.SumMicroseconds += n * uint64((lowestOf(bucket)+highestOf(bucket))/2)
		return true
	})
	for ; next < len(TallyBounds); next++ {
		out.Below[next] = seen
	}
	return out
}
