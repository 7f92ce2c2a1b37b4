// Package live shows the counts of a trial while it runs, in the format of Prometheus.
//
// The loops leave copies of their counts here now and then; a scrape adds the latest copies up. No
// loop waits for a scrape, and no scrape for a loop.
package live

import (
	"slices"
	"sync"
	"sync/atomic"

	"laptime.dev/k6/internal/result"
)

// Figures is what can be scraped of one trial. A nil *Figures takes everything and shows nothing.
type Figures struct {
	phases  []*Phase
	running atomic.Pointer[Phase]
}

// New makes figures for the named phases, none of which runs.
func New(phases ...string) *Figures {
	f := &Figures{}
	for _, name := range phases {
		f.phases = append(f.phases, &Phase{name: name})
	}
	return f
}

// Begin says that a phase runs from now on; phases that New did not name are not shown.
func (f *Figures) Begin(phase string) *Phase {
	if f == nil {
		return nil
	}
	i := slices.IndexFunc(f.phases, func(p *Phase) bool { return p.name == phase })
	if i < 0 {
		return nil
	}
	f.running.Store(f.phases[i])
	return f.phases[i]
}

// End says that no phase runs.
func (f *Figures) End() {
	if f != nil {
		f.running.Store(nil)
	}
}

// Phase is what the loops of one phase have published. A nil *Phase gives nil slots.
type Phase struct {
	name  string
	mutex sync.Mutex
	slots []*Slot
}

// Slot makes a place for the counts of one loop. It counts for as long as the process lives, so
// that the sums of a phase of several runs never fall.
func (p *Phase) Slot() *Slot {
	if p == nil {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	s := &Slot{}
	p.slots = append(p.slots, s)
	return s
}

// Slot holds the latest counts of one loop.
type Slot struct {
	latest atomic.Pointer[result.Tally]
}

// Publish replaces what the loop has published before.
func (s *Slot) Publish(t *result.Tally) { s.latest.Store(t) }

// sums are the counts of all loops of a phase.
type sums struct {
	endpoints map[string]*result.EndpointTally
	errors    map[string]int64
}

func (p *Phase) sums() sums {
	p.mutex.Lock()
	slots := slices.Clone(p.slots)
	p.mutex.Unlock()
	out := sums{map[string]*result.EndpointTally{}, map[string]int64{}}
	for _, slot := range slots {
		tally := slot.latest.Load()
		if tally == nil {
			continue
		}
		for i := range tally.Endpoints {
			from := &tally.Endpoints[i]
			to := out.endpoints[from.Name]
			if to == nil {
				to = &result.EndpointTally{Name: from.Name}
				out.endpoints[from.Name] = to
			}
			to.Requests += from.Requests
			to.Latencies.Add(&from.Latencies)
		}
		tally.EachError(func(kind string, count int64) { out.errors[kind] += count })
	}
	return out
}
