// Package loop sends requests over many connections with one epoll loop per thread.
//
// Each loop owns its connections and its recorder and shares two counters with the others, so that
// a request costs the three system calls it cannot do without and no lock, channel or wake-up of
// another thread. That is what lets one generator outrun fast servers.
package loop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/live"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/session"
)

// Request is one endpoint; Plan.Work has what is sent.
type Request struct {
	Name         string
	HeadOnly     bool // HEAD: the answer has no body
	Idempotent   bool // may be sent again when a kept connection turns out closed
	ExpectStatus int
	Check        Check
}

// Check says what the body of an answer must hold.
type Check uint8

// NoCheck, NonEmpty (at least one byte), Same (at least one, as many as the first answer seen, and, of a sample until
// one was wrong, the same ones in any order).
const (
	NoCheck Check = iota
	NonEmpty
	Same
)

// Plan is one phase of a load. Rate 0 means the closed model: Total requests, or Duration, or what
// ends first of the two.
type Plan struct {
	Addresses   []netip.AddrPort
	TLS         *tls.Config // nil: none
	Requests    []Request
	Work        *session.Work // of these requests
	Seed        uint64        // of think times
	Connections int           // closed: as many; open: at most
	HTTP2       bool          // else HTTP/1.1
	Streams     int           // HTTP/2: users at once of a connection; 0: 1, as with HTTP/1.1
	KeepAlive   bool
	Timeout     time.Duration
	Total       int64
	Duration    time.Duration
	Rate        float64
	EndRate     float64 // to which the rate changes evenly over Duration
	// Instead of Rate and EndRate, which then say no more than that the model is the open one; Duration
	// is that of all of them.
	Stretches []Stretch
	Arrivals  Arrivals
	// How long before its start connections are opened, one after the other; 0: when they are needed.
	ConnectOver time.Duration
	// Of an open load shared by several generators: this one sends every Generators-th request,
	// from number Generator on. Connections and Total are its own part. 0 of 0: it is alone.
	Generator, Generators int
	StartAt               time.Time // zero: at once
	Threads               int       // 0: one for each usersPerThread, at most GOMAXPROCS and maxThreads
	// Takes the latency of each good answer in nanoseconds, unsorted, when the phase is over.
	Latencies func([]int64)
	Progress  func(elapsed time.Duration, requests int64)
	Live      *live.Phase // where the counts are shown meanwhile; nil: nowhere
}

// Cost is what the loops used while the load ran: for its duration and until its last session has begun, or, of
// a load by requests, until the last answer.
type Cost struct {
	CPU           time.Duration
	Wall          time.Duration
	Threads       int
	BusiestThread float64 // CPU share of the busiest loop, or of all that does handshakes where that is more, 0…1
	// From an answer's arrival to its reading, of all answers of the phase together.
	Unread time.Duration
	Path   Path
}

// ProgressEvery is the time between two calls of Plan.Progress.
const ProgressEvery = 5 * time.Second

const (
	// One thread drives tens of thousands of requests a second; more than these only contend.
	maxThreads = 8
	// Of users at once, each has one answer to wait for. A thread with few of them falls asleep and is woken
	// for nearly every answer, which costs more than the answer does; with these it finds several each time.
	usersPerThread = 16
)

// ErrStopped says that the context ended before the phase did.
var ErrStopped = errors.New("stopped before the end of the phase")

// shared is what the loops of one phase have in common.
type shared struct {
	plan     *Plan
	epoch    time.Time
	start    int64 // of the phase, ns since the epoch
	deadline int64 // closed by duration: no request is issued after it
	taken    atomic.Int64
	done     atomic.Int64
	usedUp   atomic.Bool // a feeder has no row left: no session begins any more
	stop     atomic.Bool

	sending   atomic.Int32 // loops whose load is not over
	settled   atomic.Bool  // a loop has begun its load
	cpuBefore time.Duration
	cost      Cost // its CPU and Wall, by the last of these loops
}

// threads is how many loops the plan is for, where so many can run at the same time.
func (p *Plan) threads(processors int) int {
	if p.Threads > 0 {
		return min(p.Threads, p.Connections, maxThreads)
	}
	users := p.Connections * max(p.Streams, 1)
	return min((users+usersPerThread-1)/usersPerThread, processors, p.Connections, maxThreads)
}

// Run drives one phase and gives its figures. A failed request is counted, never an error of Run;
// errors are those of the machine (no epoll) or ErrStopped.
func Run(ctx context.Context, plan *Plan) (*result.Phase, Cost, error) {
	threads := plan.threads(runtime.GOMAXPROCS(0))
	// One more than there are loops: a loop that returns from epoll must find a free processor
	// even while another goroutine of k6 runs.
	others := 1
	if plan.TLS != nil {
		others = threads // as many handshakes at a time
	}
	if procs := runtime.GOMAXPROCS(0); procs < threads+others {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads + others))
	} else {
		others = procs - threads
	}
	// Collected before rather than while measuring.
	runtime.GC()

	s := &shared{plan: plan, epoch: time.Now()}
	// No time of the phase lies before its epoch, also when the common start has just passed.
	if !plan.StartAt.IsZero() && plan.StartAt.Before(s.epoch) {
		s.epoch = plan.StartAt
	}
	names := make([]string, len(plan.Requests))
	for i := range plan.Requests {
		names[i] = plan.Requests[i].Name
	}
	engines := make([]*engine, threads)
	for i := range engines {
		e, err := newEngine(s, i, threads, names)
		if err != nil {
			return nil, Cost{}, err
		}
		defer e.close()
		engines[i] = e
	}

	if err := sleepUntil(ctx, plan.StartAt); err != nil {
		return nil, Cost{}, err
	}
	s.cpuBefore = processCPU()
	s.sending.Store(int32(threads))
	// The common start and not the moment of waking up, unless that has passed.
	s.start = s.now()
	if !plan.StartAt.IsZero() && s.start-int64(plan.StartAt.Sub(s.epoch)) < int64(wakeSlack) {
		s.start = int64(plan.StartAt.Sub(s.epoch))
	}
	// Connections are opened before.
	s.start += int64(plan.ConnectOver)
	windowEnd := int64(0)
	if plan.Duration > 0 {
		windowEnd = s.start + plan.Duration.Nanoseconds()
	}
	if plan.Rate == 0 {
		s.deadline = windowEnd
	}
	var running sync.WaitGroup
	for _, e := range engines {
		e.begin(windowEnd, names)
		running.Add(1)
		go func() {
			defer running.Done()
			e.run()
		}()
	}
	finished := make(chan struct{})
	go func() {
		running.Wait()
		close(finished)
	}()
	s.watch(ctx, finished)

	cost := s.cost
	cost.Threads = threads
	loops := time.Duration(0)
	recorders := make([]*result.Recorder, 0, threads)
	for _, e := range engines {
		if e.err != nil {
			return nil, cost, e.err
		}
		cost.BusiestThread = max(cost.BusiestThread, e.cpuShare)
		loops += e.cpuUsed
		e.seePath()
		cost.Path.add(e.path)
		cost.Unread += time.Duration(e.unread)
		recorders = append(recorders, e.rec)
	}
	if plan.TLS != nil {
		cost.BusiestThread = max(cost.BusiestThread, shareOfOthers(cost, loops, others))
	}
	if s.stop.Load() {
		return nil, cost, ErrStopped
	}
	phase, err := result.Merge(recorders...)
	if err != nil {
		return nil, cost, err
	}
	phase.StartedAt = result.UnixSeconds(s.epoch, s.start)
	phase.DurationSeconds = plan.Duration.Seconds()
	if plan.Latencies != nil {
		for _, e := range engines {
			plan.Latencies(e.latencies)
		}
	}
	return phase, cost, nil
}

// shareOfOthers is what all but the loops, which used so much, took of the processors that the loops leave them. A
// loop keeps its processor while it sleeps, so that handshakes can be the limit while cores are idle.
func shareOfOthers(cost Cost, loops time.Duration, processors int) float64 {
	if cost.Wall <= 0 {
		return 0
	}
	return min(float64(cost.CPU-loops)/float64(cost.Wall)/float64(processors), 1)
}

// wakeSlack is how late a sleeper may wake up for the start it slept for to count.
const wakeSlack = 10 * time.Millisecond

func sleepUntil(ctx context.Context, start time.Time) error {
	if left := time.Until(start); !start.IsZero() && left > 0 {
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return ErrStopped
		}
	}
	return nil
}

// watch reports progress until the loops have finished, and stops them when the context ends.
func (s *shared) watch(ctx context.Context, finished <-chan struct{}) {
	ticker := time.NewTicker(ProgressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-finished:
			return
		case <-ctx.Done():
			s.stop.Store(true)
			<-finished
			return
		case <-ticker.C:
			if s.plan.Progress != nil {
				s.plan.Progress(time.Duration(s.now()-s.start), s.done.Load())
			}
		}
	}
}

// now is the monotonic time in nanoseconds since the phase's epoch.
func (s *shared) now() int64 { return int64(time.Since(s.epoch)) }

func processCPU() time.Duration { return usage(unix.RUSAGE_SELF) }

func usage(who int) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(who, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// sockaddr builds the raw address that connect takes.
func sockaddr(address netip.AddrPort) (raw []byte, family int, err error) {
	port := address.Port()
	switch ip := address.Addr(); {
	case ip.Is4():
		four := ip.As4()
		raw = []byte{unix.AF_INET, 0, byte(port >> 8), byte(port), four[0], four[1], four[2], four[3], 0, 0, 0, 0, 0, 0, 0, 0}
		return raw, unix.AF_INET, nil
	case ip.Is6():
		sixteen := ip.As16()
		raw = make([]byte, unix.SizeofSockaddrInet6)
		raw[0], raw[2], raw[3] = unix.AF_INET6, byte(port>>8), byte(port)
		copy(raw[8:24], sixteen[:])
		return raw, unix.AF_INET6, nil
	}
	return nil, 0, fmt.Errorf("address %s is neither IPv4 nor IPv6", address)
}
