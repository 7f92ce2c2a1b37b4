package result

import (
	"cmp"
	"slices"
	"time"
)

// Kind says how a request ended.
type Kind uint8

// OK is an answer as expected; every other kind is an error and counted under its name.
const (
	OK Kind = iota
	Timeout
	Connect
	Port // the generator had none left to connect from: nothing was asked of the server
	Reset
	Status
	Body
	Check   // of the body
	Capture // what the next request needs is not in the answer
	Other
	kinds
)

var kindNames = [kinds]string{"", "timeout", "connect", "port", "reset", "status", "body", "check", "capture", "other"}

// Sample is one finished request. Times are nanoseconds since the recorder's epoch.
type Sample struct {
	Endpoint int
	Issued   int64 // the moment it was issued (closed model) or due (open model)
	Before   int64 // from when its session was due to Issued, 0 for the first request of one
	Done     int64 // last byte of the answer, or the moment it was given up
	Server   int64 // request sent to first byte of the answer
	Connect  int64 // connection set-up, 0 when the connection was there already
	Late     int64 // issued after it was due, open model only
	Bytes    int64 // headers and body received
	Status   int   // 0 when no answer came
	Kind     Kind
}

type endpoint struct {
	name     string
	requests int64
	errors   int64
	dropped  int64
	inWindow int64
	latency  Histogram
	server   Histogram
	connect  Histogram
	// Open loads only.
	uncorrected *Histogram
	shortest    int64 // from a session's due time to a right answer so far, in ns; 0: none yet
}

type second struct {
	requests int64
	dropped  int64
	errors   [kinds]int64 // none under OK
	max      int64
	open     *Histogram // while samples of this second still come in
	sealed   []cell
}

// Seconds kept open for samples that come a little out of order; later ones still count, at the
// price of one cell each.
const openSeconds = 3

// Recorder collects the samples of one phase. It belongs to one goroutine; Merge joins several.
type Recorder struct {
	epoch     time.Time
	start     int64
	aligned   bool  // the phase begins a whole number of seconds after origin
	origin    int64 // in nanoseconds since the epoch
	endpoints []*endpoint
	statuses  map[int]int64
	lastCode  int
	lastCount int64
	errors    [kinds]int64
	requests  int64
	bytes     int64
	dropped   int64
	retried   int64
	late      Histogram
	lateSeen  bool
	first     int64
	last      int64
	seconds   []second
	openFrom  int
	spare     []*Histogram
	windowEnd int64 // 0: the window ends with the last response
	inTime    int64 // right answers within the window, not shifted
	inHalf    int64 // those of its second half
}

// NewRecorder makes a recorder for the named endpoints. Sample times count from epoch; the phase
// began start nanoseconds after it, or, below 0, when the first sample was issued.
func NewRecorder(epoch time.Time, start int64, endpoints []string) *Recorder {
	r := &Recorder{epoch: epoch, start: start, statuses: map[int]int64{}, first: -1}
	for _, name := range endpoints {
		r.AddEndpoint(name)
	}
	return r
}

// Align has a phase that begins with its first sample begin up to a second before it, a whole number of
// seconds after that many nanoseconds since the epoch: so the seconds of several generators, who
// have different first samples, can be laid over each other.
func (r *Recorder) Align(origin int64) { r.aligned, r.origin = true, origin }

// AddEndpoint adds an endpoint and gives its number for Sample.Endpoint.
func (r *Recorder) AddEndpoint(name string) int {
	r.endpoints = append(r.endpoints, &endpoint{name: name})
	return len(r.endpoints) - 1
}

// Fold counts all but the most used endpoints together, under one name, if there are more than that with it. It gives
// how many it folded, and is for a recorder that records no more.
func (r *Recorder) Fold(most int, name string) int {
	if len(r.endpoints) <= most {
		return 0
	}
	slices.SortFunc(r.endpoints, func(a, b *endpoint) int {
		switch {
		case a.name == name:
			return 1
		case b.name == name:
			return -1
		}
		return cmp.Or(cmp.Compare(b.requests, a.requests), cmp.Compare(a.name, b.name))
	})
	rest := r.endpoints[most-1:]
	r.endpoints = r.endpoints[:most-1]
	folded := 0
	for _, one := range rest {
		if one.name != name {
			one.name = name // those of one name are joined
			folded++
		}
	}
	r.endpoints = append(r.endpoints, rest...)
	return folded
}

// SetWindowEnd says when the phase stops issuing (nanoseconds since the epoch): answers after it
// are counted, but not in completedInWindow. Of an open load the window is that of the answers: it
// lies later than that of the requests by the shortest response time of their endpoint.
func (r *Recorder) SetWindowEnd(end int64) { r.windowEnd = end }

// Open says that Sample.Issued is when a request was due: latency is also counted from Late, the
// moment it was really sent.
func (r *Recorder) Open() {
	for _, ep := range r.endpoints {
		ep.uncorrected = &Histogram{}
	}
}

// Drop counts a request that was due and was given up, unsent, at that moment (nanoseconds since the
// epoch) of a phase whose start is known.
func (r *Recorder) Drop(endpoint int, at int64) {
	r.DropIterations(1)
	r.endpoints[endpoint].dropped++
	r.second(int((at-r.start)/int64(time.Second))).dropped++
}

// DropIterations counts iterations of a script that were due and never begun. They are no requests: how
// many each would have sent nobody knows.
func (r *Recorder) DropIterations(n int64) { r.dropped += n }

// Retry counts a request sent again because a kept connection had been closed under it.
func (r *Recorder) Retry() { r.retried++ }

func micros(ns int64) int64 { return (ns + 500) / 1000 }

// Record counts one finished request.
func (r *Recorder) Record(s *Sample) {
	ep := r.endpoints[s.Endpoint]
	ep.requests++
	r.requests++
	r.bytes += s.Bytes
	if r.first < 0 || s.Issued < r.first {
		r.first = s.Issued
	}
	if r.start < 0 {
		r.begin(s.Issued)
	}
	if s.Done > r.last {
		r.last = s.Done
	}
	if s.Status != 0 {
		r.countStatus(s.Status)
	}
	if s.Late > 0 {
		r.late.Add(micros(s.Late))
		r.lateSeen = true
	}
	sec := r.second(int((s.Done - r.start) / int64(time.Second)))
	sec.requests++
	if s.Kind != OK {
		ep.errors++
		r.errors[s.Kind]++
		sec.errors[s.Kind]++
		return
	}
	r.countInWindow(ep, s)
	us := micros(s.Done - s.Issued)
	ep.latency.Add(us)
	ep.server.Add(micros(s.Server))
	if ep.uncorrected != nil {
		ep.uncorrected.Add(micros(s.Done - s.Issued - s.Late))
	}
	if s.Connect > 0 {
		ep.connect.Add(micros(s.Connect))
	}
	if us > sec.max {
		sec.max = us
	}
	if sec.open != nil {
		sec.open.Add(us)
	} else {
		sec.sealed = append(sec.sealed, cell{uint32(bucketOf(clamp(us))), 1})
	}
}

func (r *Recorder) begin(first int64) {
	r.start = first
	if r.aligned {
		since := first - r.origin
		r.start -= (since%int64(time.Second) + int64(time.Second)) % int64(time.Second)
	}
}

// countInWindow counts a right answer that ended within the window.
//
// An open load begins with nothing under way and ends with as many requests as it had all the time:
// they are part of its rate, and with the window of the requests each server would lose its response
// time. No answer can come before the shortest response time has passed since the start, so that a
// window of the same length moved by it loses nothing at its start, has at its end all answers of a
// server that always takes this long, and has no more of an overloaded one than it can give. The
// later steps of a session come later by what users do before: what counts is the time since the session
// was due.
func (r *Recorder) countInWindow(ep *endpoint, s *Sample) {
	if r.windowEnd == 0 || ep.uncorrected == nil {
		if r.windowEnd == 0 || s.Done <= r.windowEnd {
			ep.inWindow++
		}
		return
	}
	took := s.Done - s.Issued + s.Before
	if ep.shortest == 0 || took < ep.shortest {
		ep.shortest = took
	}
	if s.Done <= r.windowEnd+ep.shortest {
		ep.inWindow++
	}
	if s.Done > r.windowEnd {
		return
	}
	r.inTime++
	if s.Done > (r.start+r.windowEnd)/2 {
		r.inHalf++
	}
}

// countStatus avoids a map access for the common run of equal codes.
func (r *Recorder) countStatus(code int) {
	if code != r.lastCode {
		r.flushStatus()
		r.lastCode = code
	}
	r.lastCount++
}

func (r *Recorder) flushStatus() {
	if r.lastCount > 0 {
		r.statuses[r.lastCode] += r.lastCount
		r.lastCount = 0
	}
}

func (r *Recorder) second(t int) *second {
	t = max(t, 0)
	if t < len(r.seconds) {
		return &r.seconds[t]
	}
	for len(r.seconds) <= t {
		// Only the last few of a gap get a histogram of their own.
		var h *Histogram
		if len(r.seconds) > t-openSeconds {
			h = r.fresh()
		}
		r.seconds = append(r.seconds, second{open: h})
	}
	for ; r.openFrom < len(r.seconds)-openSeconds; r.openFrom++ {
		r.seal(&r.seconds[r.openFrom])
	}
	return &r.seconds[t]
}

func (r *Recorder) fresh() *Histogram {
	if n := len(r.spare); n > 0 {
		h := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return h
	}
	return &Histogram{}
}

func (r *Recorder) seal(s *second) {
	if s.open == nil {
		return
	}
	s.sealed = append(s.sealed, s.open.cells()...)
	s.open.reset()
	r.spare = append(r.spare, s.open)
	s.open = nil
}
