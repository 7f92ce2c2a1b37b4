package result

import (
	"strconv"
	"time"
)

// Phase is the figures of one phase as they stand in the result. Times are unix seconds,
// latencies microseconds.
type Phase struct {
	// When the phase began, which is before the first request; absent for a script that runs alone.
	StartedAt float64 `json:"startedAt,omitempty"`
	// Absent where the number of requests ends the phase.
	DurationSeconds   float64 `json:"durationSeconds,omitempty"`
	FirstRequestAt    float64 `json:"firstRequestAt"`
	LastResponseAt    float64 `json:"lastResponseAt"`
	Requests          int64   `json:"requests"`
	Responses         int64   `json:"responses"`
	WindowSeconds     float64 `json:"windowSeconds"`
	CompletedInWindow int64   `json:"completedInWindow"`
	// Open loads: right answers that ended in the time in which sessions are due, and in its second half.
	CompletedInTime       int64                `json:"-"`
	CompletedInSecondHalf int64                `json:"-"`
	Errors                map[string]int64     `json:"errors"`
	StatusCodes           map[string]int64     `json:"statusCodes"`
	BytesReceived         int64                `json:"bytesReceived"`
	DroppedIterations     int64                `json:"droppedIterations"`
	Retried               int64                `json:"retried"`
	Lateness              string               `json:"lateness,omitempty"`
	Endpoints             map[string]*Endpoint `json:"endpoints"`
	Seconds               []Second             `json:"seconds"`
	// So many seconds have their latencies in one histogram, that of the last of them.
	LatencySeconds int `json:"latencySeconds,omitempty"`
}

// Endpoint is one endpoint's counts and histograms (HdrHistogram V2, compressed, base64).
type Endpoint struct {
	Requests int64 `json:"requests"`
	Errors   int64 `json:"errors"`
	// Due and given up without having been sent: among neither requests nor errors.
	Dropped int64 `json:"dropped,omitempty"`
	// What is still under way at the end is mostly asked of slow endpoints: each has its own.
	CompletedInWindow int64  `json:"completedInWindow"`
	Latency           string `json:"latency"`
	ServerTime        string `json:"serverTime"`
	Connect           string `json:"connect"`
	// Open loads: from sent, not from due. What hides an omission, for comparison.
	UncorrectedLatency string `json:"uncorrectedLatency,omitempty"`
}

// Second is what finished in one second of the phase: t counts from its start.
type Second struct {
	T        int   `json:"t"`
	Requests int64 `json:"requests"`
	// Given up in this second without having been sent: among neither requests nor errors.
	Dropped int64 `json:"dropped,omitempty"`
	Errors  int64 `json:"errors"`
	P50Us   int64 `json:"p50Us"`
	P99Us   int64 `json:"p99Us"`
	MaxUs   int64 `json:"maxUs"`
	// Errors by kind, without those that there were none of.
	Kinds map[string]int64 `json:"kinds,omitempty"`
	// Right answers of this second and of those before it that have none: a sparse histogram.
	Latency Sparse `json:"latency,omitempty"`
}

// Merge joins the recorders of one phase, which share epoch and start, into its figures.
// Endpoints of the same name are joined. It needs at least one recorder.
func Merge(recorders ...*Recorder) (*Phase, error) {
	p := &Phase{
		Errors: map[string]int64{}, StatusCodes: map[string]int64{},
		Endpoints: map[string]*Endpoint{}, Seconds: []Second{},
	}
	for _, name := range kindNames[1:] {
		p.Errors[name] = 0
	}
	base := recorders[0]
	first, last := int64(-1), int64(0)
	joined := map[string]*endpoint{}
	var late Histogram
	lateSeen := false
	longest := 0
	for _, r := range recorders {
		r.flushStatus()
		if r.first >= 0 && (first < 0 || r.first < first) {
			first = r.first
		}
		last = max(last, r.last)
		p.Requests += r.requests
		p.BytesReceived += r.bytes
		p.DroppedIterations += r.dropped
		p.Retried += r.retried
		p.CompletedInTime += r.inTime
		p.CompletedInSecondHalf += r.inHalf
		for kind := Timeout; kind < kinds; kind++ {
			p.Errors[kindNames[kind]] += r.errors[kind]
		}
		for code, n := range r.statuses {
			p.StatusCodes[strconv.Itoa(code)] += n
		}
		for _, ep := range r.endpoints {
			to := joined[ep.name]
			if to == nil {
				to = &endpoint{name: ep.name}
				joined[ep.name] = to
			}
			to.requests += ep.requests
			to.inWindow += ep.inWindow
			p.CompletedInWindow += ep.inWindow
			to.errors += ep.errors
			to.dropped += ep.dropped
			to.latency.Merge(&ep.latency)
			to.server.Merge(&ep.server)
			to.connect.Merge(&ep.connect)
			if ep.uncorrected != nil {
				if to.uncorrected == nil {
					to.uncorrected = &Histogram{}
				}
				to.uncorrected.Merge(ep.uncorrected)
			}
		}
		late.Merge(&r.late)
		lateSeen = lateSeen || r.lateSeen
		longest = max(longest, len(r.seconds))
	}
	p.Responses = p.Requests
	for _, n := range p.Errors {
		p.Responses -= n
	}
	if first >= 0 {
		p.FirstRequestAt = UnixSeconds(base.epoch, first)
		p.LastResponseAt = UnixSeconds(base.epoch, last)
		p.WindowSeconds = time.Duration(last - first).Seconds()
	}
	if base.aligned && first >= 0 {
		p.StartedAt = UnixSeconds(base.epoch, base.start)
	}
	if base.windowEnd > 0 {
		p.WindowSeconds = time.Duration(base.windowEnd - base.start).Seconds()
	}
	for name, ep := range joined {
		out, err := ep.encode()
		if err != nil {
			return nil, err
		}
		p.Endpoints[name] = out
	}
	if lateSeen {
		var err error
		if p.Lateness, err = late.Encode(); err != nil {
			return nil, err
		}
	}
	latencies := make([]buckets, longest)
	for t := range longest {
		second, latency := mergeSecond(t, recorders)
		p.Seconds = append(p.Seconds, second)
		latencies[t] = latency
	}
	p.LatencySeconds = p.spread(latencies)
	return p, nil
}

func (e *endpoint) encode() (*Endpoint, error) {
	out := &Endpoint{Requests: e.requests, Errors: e.errors, Dropped: e.dropped, CompletedInWindow: e.inWindow}
	var err error
	if out.Latency, err = e.latency.Encode(); err != nil {
		return nil, err
	}
	if out.ServerTime, err = e.server.Encode(); err != nil {
		return nil, err
	}
	if out.Connect, err = e.connect.Encode(); err != nil {
		return nil, err
	}
	if e.uncorrected != nil {
		if out.UncorrectedLatency, err = e.uncorrected.Encode(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mergeSecond gives one second's figures, and its latencies, of which it has no histogram yet.
func mergeSecond(t int, recorders []*Recorder) (Second, buckets) {
	out := Second{T: t}
	var h Histogram
	for _, r := range recorders {
		if t >= len(r.seconds) {
			continue
		}
		s := &r.seconds[t]
		out.Requests += s.requests
		out.Dropped += s.dropped
		for kind := Timeout; kind < kinds; kind++ {
			if n := s.errors[kind]; n > 0 {
				if out.Kinds == nil {
					out.Kinds = map[string]int64{}
				}
				out.Kinds[kindNames[kind]] += n
				out.Errors += n
			}
		}
		h.max = max(h.max, s.max)
		h.Merge(s.open)
		h.addCells(s.sealed)
	}
	out.P50Us, out.P99Us, out.MaxUs = h.Quantile(0.5), h.Quantile(0.99), h.max
	return out, h.buckets()
}

// UnixSeconds gives the time of day ns nanoseconds after an epoch.
func UnixSeconds(epoch time.Time, ns int64) float64 {
	return float64(epoch.UnixMicro())/1e6 + float64(ns)/1e9
}
