package loop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"laptime.dev/k6/internal/live"
	"laptime.dev/k6/internal/result"
	"laptime.dev/k6/internal/session"
)

type connState uint8

const (
	unconnected connState = iota
	connecting
	handshaking // of TLS
	sending
	waiting // for the answer
	idle    // connected, nothing under way
)

type conn struct {
	fd       int
	secure   *secure // nil: no TLS
	gen      int32   // tells events of an earlier socket in the same batch apart
	state    connState
	served   bool // this socket has carried an answer before
	busy     bool
	retried  bool
	summing  bool
	writable bool // epoll reports when the socket takes bytes
	endpoint int
	user     session.User
	began    int64  // when the user's session was due
	wire     []byte // of the request under way
	made     []byte // where it is put together, if it has to be
	sent     int
	due      int64 // when the request should have gone out: latency counts from here
	issued   int64
	begun    int64 // when its sending began
	dialed   int64 // when the set-up of its connection began
	disorder uint32
	set      int64 // connection set-up time
	openedIn int64 // that of a connection that waits for its first request
	received int64
	first    int64 // when the first byte of the answer came
	parser   parser

	// HTTP/2, where a connection is a link.
	link   *link  // that the request under way is on
	stream uint32 // 0: it has none yet
	unsent []byte // of the body
	window int64  // bytes of it that the server takes
	takes  int64  // bytes of the answer's body that we take until the server hears of more
}

// engine is one loop: one thread, its connections and its recorder.
type engine struct {
	*shared
	rec          *result.Recorder
	live         *live.Slot // nil: nobody looks
	poller       poller
	doorbell     *doorbell // TLS only
	conns        []conn
	free         []int32 // users with nothing to do, and no connection that they could use again
	idle         queue   // open loads: those with one, used longest ago first
	resting      []rest  // connections that failed, in the order they may try again
	thinking     thinkers
	random       *rand.Rand // of think times
	reader       reader
	buffer       []byte
	unread       int64  // from an answer's arrival to its reading, of all answers together
	scratch      []byte // where bodies are put together
	addresses    [][]byte
	families     []int
	active       int
	nextSession  int      // its place in the order of the work
	arrivals     sequence // open loads: which sessions are due
	nextScan     int64
	scanEvery    int64
	nextPublish  int64
	firsts       []fingerprint
	sent         []int // how many requests of each endpoint
	reported     int64
	completed    int64
	cpuUsed      time.Duration
	cpuShare     float64
	path         Path
	longRequests bool  // some do not fit into one segment
	firstArrival int64 // the first session of this loop, and how many come until the next one
	arrivalStep  int64
	begun        bool  // the phase
	toOpen       int   // which connection is opened next, before the start
	openFirst    int64 // the place of its first one among those of all loops, and of the one after it
	openStep     int64
	latencies    []int64 // only where the plan asks for them
	err          error

	// HTTP/2: nil with HTTP/1.1.
	streams    int     // of a connection, each with a user
	places     []*link // where requests go; nil: there is no connection
	links      []*link // those of places, and those that were left: by the numbers that epoll has
	spareLinks []int32
	linkGen    int32
}

type rest struct {
	conn  int32
	until int64
}

const (
	// After a failure a connection rests: a server that refuses must not make the loop spin.
	restAfterFailure = int64(time.Millisecond)
	readBuffer       = 256 << 10
	segment          = 1200 // what any network carries in one piece
	batch            = 512
	// Several times between two scrapes, which come every second: else a scrape would now find two
	// seconds more and now none.
	publishEvery = int64(200 * time.Millisecond)
)

func newEngine(s *shared, index, threads int, names []string) (*engine, error) {
	count := s.plan.Connections / threads
	if index < s.plan.Connections%threads {
		count++
	}
	places, streams := count, max(s.plan.Streams, 1)
	count *= streams
	e := &engine{
		shared: s, streams: streams,
		conns: make([]conn, count), free: make([]int32, 0, count),
		buffer: make([]byte, readBuffer),
		firsts: make([]fingerprint, len(s.plan.Requests)),
		sent:   make([]int, len(s.plan.Requests)),
		random: rand.New(rand.NewPCG(s.plan.Seed, uint64(s.plan.Generator<<8|index))),
	}
	// All threads of all generators together take each arrival once.
	generators := max(s.plan.Generators, 1)
	e.firstArrival = int64(s.plan.Generator + generators*index)
	e.arrivalStep = int64(generators * threads)
	e.openFirst, e.openStep = e.firstArrival, e.arrivalStep
	// And begin the order of the sessions evenly apart, so that what is rare in it comes no less often in a short load.
	order := int64(len(s.plan.Work.Order))
	e.nextSession = int(e.firstArrival * order / e.arrivalStep % order)
	// Time-outs are found by looking at all connections now and then: within 2 % of the time-out.
	e.scanEvery = min(max(s.plan.Timeout.Nanoseconds()/50, int64(5*time.Millisecond)), int64(100*time.Millisecond))
	for i := count - 1; i >= 0; i-- {
		e.conns[i].fd = -1
		e.conns[i].user = s.plan.Work.NewUser()
		e.free = append(e.free, int32(i))
	}
	for _, message := range s.plan.Work.Messages {
		e.longRequests = e.longRequests || message.Longest() > segment || message.Longest() == 0
	}
	for _, address := range s.plan.Addresses {
		raw, family, err := sockaddr(address)
		if err != nil {
			return nil, err
		}
		e.addresses = append(e.addresses, raw)
		e.families = append(e.families, family)
	}
	if s.plan.Rate > 0 {
		e.idle = newQueue(count)
	}
	if s.plan.HTTP2 {
		e.places = make([]*link, places)
	}
	var err error
	if e.poller, err = newPoller(); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if s.plan.TLS != nil {
		if e.doorbell, err = newDoorbell(&e.poller); err != nil {
			return nil, fmt.Errorf("eventfd: %w", err)
		}
	}
	return e, nil
}

func (e *engine) begin(windowEnd int64, names []string) {
	e.rec = result.NewRecorder(e.epoch, e.start, names)
	e.rec.SetWindowEnd(windowEnd)
	if e.plan.Rate > 0 {
		e.rec.Open()
		e.arrivals = newSequence(e.plan, e.firstArrival)
	}
	if e.plan.ConnectOver > 0 {
		e.free = e.free[:0] // each once it is connected
	}
	e.live = e.plan.Live.Slot()
}

// close closes all connections of the engine.
func (e *engine) close() {
	for i := range e.conns {
		if c := &e.conns[i]; c.secure != nil {
			e.hangUp(c)
		} else if c.fd >= 0 {
			_ = unix.Close(c.fd)
			c.fd = -1
		}
	}
	for _, l := range e.links {
		if l != nil {
			e.hangUpLink(l)
		}
	}
	if e.doorbell != nil {
		e.doorbell.close()
	}
	e.poller.close()
}

// run is the loop. It ends when nothing is left to issue and nothing is under way.
func (e *engine) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e.poller.sharpen()
	began, cpu := e.now(), usage(unix.RUSAGE_THREAD)
	weighed := false
	weigh := func() {
		if weighed {
			return
		}
		weighed = true
		e.cpuUsed = usage(unix.RUSAGE_THREAD) - cpu
		if wall := e.now() - began; wall > 0 {
			e.cpuShare = float64(e.cpuUsed) / float64(wall)
		}
		if e.sending.Add(-1) == 0 {
			e.cost.CPU, e.cost.Wall = processCPU()-e.cpuBefore, time.Duration(e.now()-e.start)
		}
	}
	defer e.publish()
	defer weigh()
	for !e.stop.Load() {
		now := e.now()
		if !e.begun && now >= e.start {
			e.begun = true
			e.settle()
			e.spread()
			began, cpu = now, usage(unix.RUSAGE_THREAD)
			if e.settled.CompareAndSwap(false, true) {
				e.cpuBefore = processCPU() // without the handshakes of connections that were opened before
			}
		}
		e.wake(now)
		e.resume(now)
		next := e.issueDue(now)
		if !weighed && e.over(now, next) {
			weigh()
		}
		if next == noneLeft && e.active == 0 && (len(e.thinking) == 0 || e.plan.Rate == 0 && e.exhausted(now)) {
			return
		}
		if now >= e.nextScan {
			e.giveUpLate(now)
			e.nextScan = now + e.scanEvery
			if now >= e.nextPublish {
				e.publish()
				e.nextPublish = now + publishEvery
			}
		}
		until := e.nextScan
		if len(e.resting) > 0 {
			until = min(until, e.resting[0].until)
		}
		if len(e.thinking) > 0 {
			until = min(until, e.thinking[0].until)
		}
		if next > 0 {
			until = min(until, next)
		}
		events, err := e.poller.wait(until - e.now())
		if err != nil {
			e.err = fmt.Errorf("epoll wait: %w", err)
			e.stop.Store(true)
			return
		}
		e.act(events)
		if e.completed != e.reported {
			e.done.Add(e.completed - e.reported)
			e.reported = e.completed
		}
	}
}

// act deals with what has happened to connections.
func (e *engine) act(events []unix.EpollEvent) {
	for i := range events {
		ev := &events[i]
		if ev.Fd == doorbellID {
			e.secured()
			continue
		}
		if e.places != nil {
			if l := e.links[ev.Fd]; l != nil && l.gen == ev.Pad {
				e.handleLink(l, ev.Events)
			}
			continue
		}
		if c := &e.conns[ev.Fd]; c.gen == ev.Pad && c.fd >= 0 {
			e.handle(ev.Fd, c, ev.Events)
		}
	}
}

// over says whether a load with a duration has ended, whatever is still under way; next is what issueDue says. What
// a loop uses after that is not to be set against the time for which the last answers are waited for, since it
// would make little of a generator that was full. Loads by requests last until their last answer.
func (e *engine) over(now, next int64) bool {
	return e.plan.Duration > 0 && now >= e.start+e.plan.Duration.Nanoseconds() && (next == noneLeft || e.plan.Rate == 0)
}

// publish leaves a copy of the counts where scrapes find it.
func (e *engine) publish() {
	if e.live != nil {
		e.live.Publish(e.rec.Tally())
	}
}

// What issueDue says when nothing is to be waited for.
const (
	noneLeft = int64(-1) // all has been issued
	noneFree = int64(0)  // more is to be issued once a connection is free
)

// sumEvery says which bodies that are to be the same are summed up, beside the first: to sum up all would cost. A prime
// number, since answers may come from so many processes of a server in turn, and all of them are to be looked at.
const sumEvery = 17

// issueDue issues what is due on the free connections. It gives the time of the next arrival to
// wait for, noneFree or noneLeft.
func (e *engine) issueDue(now int64) int64 {
	if !e.begun {
		return e.openDue(now)
	}
	if e.plan.Rate == 0 {
		for len(e.free) > 0 {
			if !e.take(now, true) {
				return noneLeft
			}
			e.issue(e.pop(), now, now)
			now = e.now()
		}
		// With none free the next answer takes; only an empty budget with none active ends.
		if e.active == 0 && e.exhausted(now) {
			return noneLeft
		}
		return noneFree
	}
	for !e.arrivals.over() {
		due := e.start + e.arrivals.due()
		if due > now {
			return due
		}
		if now-due > e.plan.Timeout.Nanoseconds() || e.usedUp.Load() {
			// Nobody waits that long: it would only have timed out in the queue.
			e.drop(e.session(), now)
			e.arrivals.skip(e.arrivalStep)
			continue
		}
		if len(e.free) == 0 && e.idle.count == 0 {
			return noneFree
		}
		e.arrivals.skip(e.arrivalStep)
		e.issue(e.pop(), now, due)
		now = e.now()
	}
	return noneLeft
}

// drop counts all requests of a session that does not begin.
func (e *engine) drop(session int32, now int64) {
	for _, step := range e.plan.Work.Sessions[session] {
		e.rec.Drop(step.Request, now)
	}
}

// openDue opens the connections whose turn has come, before the load begins, and gives the time to
// wait for. Opened in one burst they would be accepted by whichever process of a server is awake.
func (e *engine) openDue(now int64) int64 {
	over := int64(e.plan.ConnectOver)
	all := int64(e.plan.Connections * max(e.plan.Generators, 1))
	for over > 0 && e.toOpen < len(e.conns)/e.streams {
		at := e.start - over + over*(e.openFirst+int64(e.toOpen)*e.openStep)/all
		if at > now {
			return min(at, e.start)
		}
		id := int32(e.toOpen)
		e.toOpen++
		if e.places != nil {
			e.openLink(int(id), now)
		} else {
			e.open(id, &e.conns[id], now)
		}
	}
	return e.start
}

// settle begins the load with the connections that are there; the others are made when they are
// needed, as part of a request.
func (e *engine) settle() {
	for place, l := range e.places {
		waits := l != nil && l.state != idle
		if waits {
			e.hangUpLink(l)
		}
		if waits || place >= e.toOpen && e.plan.ConnectOver > 0 {
			for id, end := e.users(place); id < end; id++ {
				e.free = append(e.free, id)
			}
		}
	}
	if e.places != nil {
		return
	}
	for i := range e.conns {
		c := &e.conns[i]
		waits := c.state == connecting || c.state == handshaking
		if waits {
			e.hangUp(c)
		}
		if waits || i >= e.toOpen && e.plan.ConnectOver > 0 {
			e.free = append(e.free, int32(i))
		}
	}
}

// spread has the users of a closed load who think begin as they are at any later moment: each at some moment of a
// think time. All at once they would be a burst that no other second has.
func (e *engine) spread() {
	pauses := e.plan.Work.Pauses()
	if e.plan.Rate > 0 || pauses == nil {
		return
	}
	e.wake(math.MaxInt64)
	for _, id := range e.free {
		e.thinking.push(rest{id, e.start + int64(pauses.Draw(e.random))})
	}
	e.free = e.free[:0]
}

// session is the next one to begin; the one after it comes the next time. One that is dropped has its turn as well,
// or all that are dropped in a row would count as the same one.
func (e *engine) session() int32 {
	next := e.plan.Work.Order[e.nextSession]
	if e.nextSession++; e.nextSession == len(e.plan.Work.Order) {
		e.nextSession = 0
	}
	return next
}

// take asks for one more request of the closed model; begins: with it a session begins.
func (e *engine) take(now int64, begins bool) bool {
	if e.deadline > 0 && now >= e.deadline || begins && e.usedUp.Load() {
		return false
	}
	return e.plan.Total == 0 || e.taken.Add(1) <= e.plan.Total
}

func (e *engine) exhausted(now int64) bool {
	return e.deadline > 0 && now >= e.deadline || e.plan.Total > 0 && e.taken.Load() >= e.plan.Total
}

// pop takes a free user. Connections that are there are used before new ones are made, the one used
// longest ago first: so all processes of a server get their share of what they have accepted.
func (e *engine) pop() int32 {
	for e.idle.count > 0 {
		i := e.idle.pop()
		if e.ready(i) {
			return i
		}
		e.free = append(e.free, i) // the server has closed it
	}
	last := len(e.free) - 1
	i := e.free[last]
	e.free = e.free[:last]
	return i
}

// release frees a user whose connection is as its state says.
func (e *engine) release(id int32) {
	if e.plan.Rate > 0 && e.ready(id) {
		e.idle.push(id)
		return
	}
	e.free = append(e.free, id)
}

// resume sends the next requests of those who have thought for long enough.
func (e *engine) resume(now int64) {
	// No one twice: of a server that refuses many at once some have always thought again by the end.
	for thought := now; len(e.thinking) > 0 && e.thinking[0].until <= thought; {
		one := e.thinking.pop()
		if e.plan.Rate > 0 {
			e.issue(one.conn, now, one.until)
		} else if e.take(now, e.conns[one.conn].user.Between()) {
			e.issue(one.conn, now, now)
		} else {
			e.release(one.conn)
		}
		now = e.now()
	}
}

// wake frees the connections whose rest is over.
func (e *engine) wake(now int64) {
	n := 0
	for n < len(e.resting) && e.resting[n].until <= now {
		e.release(e.resting[n].conn)
		n++
	}
	if n > 0 {
		e.resting = append(e.resting[:0], e.resting[n:]...)
	}
}

// giveUpLate ends the requests that took longer than the time-out.
func (e *engine) giveUpLate(now int64) {
	limit := now - e.plan.Timeout.Nanoseconds()
	for i := range e.conns {
		if c := &e.conns[i]; c.busy && c.issued <= limit {
			e.fail(int32(i), c, now, result.Timeout)
		}
	}
}
