package output

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"laptime.dev/k6/internal/process"
	"laptime.dev/k6/internal/result"
)

// source is what one set of tags says of its samples. k6 gives equal sets the same pointer, so that
// looking at the tags once per set is enough.
type source struct {
	phase    *phase      // nil: the time of a sample decides
	scenario bool        // whether it comes from a scenario, and not from setup(), teardown() or k6 itself
	name     string      // of the endpoint
	url      string      // as k6 has it; that of gRPC has no scheme
	host     string      // that the tags name; empty: none
	parts    [][2]string // tags by which metrics are told apart
	status   int
	kind     result.Kind
	// The endpoint's number in each phase that it was seen in.
	endpoints [2]struct {
		phase  *phase
		number int
	}
}

// A script that tags every request differently must not make the cache grow for ever.
const maxCached = 10_000

const (
	// maxNames bounds the endpoints of a phase that are counted apart, so that the most used ones can be known at its
	// end. Each holds three histograms, of some 8 kB for each power of two that its response times lie in.
	maxNames = 1000
	// maxEndpoints bounds those that are in the result: as many as are shown, or more where those of several generators
	// come together. Phases that are in no figure have few.
	maxEndpoints       = 50
	maxSharedEndpoints = 100
	maxOtherEndpoints  = 10
)

const otherEndpoints = "other"

// Groups that k6 gives to what setup() and teardown() do.
const (
	setupGroup    = lib.GroupSeparator + setup
	teardownGroup = lib.GroupSeparator + teardown
)

// needed are the tags of k6's that tell phases, endpoints, hosts, checks and errors apart.
var needed = [...]metrics.SystemTag{
	metrics.TagScenario, metrics.TagGroup, metrics.TagName, metrics.TagURL, metrics.TagCheck,
	metrics.TagStatus, metrics.TagError, metrics.TagErrorCode,
}

// tell has k6 set the tags that are needed, whichever of them the script's option systemTags leaves out. k6 has one
// set for all: who runs the script has been handed the same one.
func tell(tags *metrics.SystemTagSet) {
	if tags == nil {
		return
	}
	for _, one := range needed {
		tags.Add(one)
	}
}

func (o *Output) source(tags *metrics.TagSet) *source {
	if s, known := o.cached[tags]; known {
		return s
	}
	s := &source{name: "request"}
	if tags != nil {
		o.read(s, tags)
	}
	if len(o.cached) >= maxCached {
		clear(o.cached)
	}
	o.cached[tags] = s
	return s
}

func (o *Output) read(s *source, tags *metrics.TagSet) {
	scenario, found := tags.Get("scenario")
	group, _ := tags.Get("group")
	// A script may have groups of these names, too. What it does in them is tagged with the scenario; only a tag of its
	// own can be there in setup(). Elsewhere a script may have given the tag another value: it is a scenario's still.
	known := o.params.ScriptOptions.Scenarios[scenario] != nil
	s.scenario = found && (known || !within(group, setupGroup) && !within(group, teardownGroup))
	s.parts = o.ownTags(tags)
	switch {
	case !s.scenario && within(group, setupGroup):
		s.phase = o.named(setup)
	case !s.scenario && within(group, teardownGroup):
		s.phase = o.named(teardown)
	case scenario == warmup:
		s.phase = o.named(warmup)
	}
	if url, ok := tags.Get("url"); ok {
		s.name, s.url, s.host = url, url, hostOf(url)
	}
	if name, ok := tags.Get("name"); ok {
		s.name = name
	}
	if text, ok := tags.Get("status"); ok {
		s.status, _ = strconv.Atoi(text) // k6 writes numbers; 0 when there was no answer
	}
	if text, ok := tags.Get("error_code"); ok {
		code, _ := strconv.Atoi(text)
		message, _ := tags.Get("error")
		s.kind = kindOf(code, s.status, message)
	}
}

// within says whether a group is another one or lies in it.
func within(group, outer string) bool {
	return group == outer || strings.HasPrefix(group, outer+lib.GroupSeparator)
}

// k6 has no code of its own for a machine without a port left to connect from.
const dialUnknown = 1213

var noPort = fmt.Sprintf("dial: unknown errno %d ", syscall.EADDRNOTAVAIL)

// kindOf translates k6's error codes. A status of 400 or more is an error only where the script
// did not expect it, which the trail's own mark says.
func kindOf(code, status int, message string) result.Kind {
	switch {
	case code == 0 || status >= 400 && code == 1000+status:
		return result.OK
	case code == 1050:
		return result.Timeout
	case code == 1201 || code == 1220:
		return result.Reset
	case code == dialUnknown && strings.HasPrefix(message, noPort):
		return result.Port
	case code >= 1100 && code < 1400:
		return result.Connect
	case code >= 1600 && code < 1700:
		return result.Reset
	case code >= 1700 && code < 1800:
		return result.Body
	}
	return result.Other
}

// phaseOf gives the phase of what happened at a time. Scenarios before the end of the warm-up and the
// scenario of that name are warm-up, setup() and teardown() are no load, all else is measured.
func (o *Output) phaseOf(s *source, at time.Time) *phase {
	if s.phase != nil {
		return s.phase
	}
	if o.warmup > 0 && (o.began.IsZero() || at.Before(o.began.Add(o.warmup))) {
		return o.named(warmup)
	}
	return o.named(measured)
}

func (o *Output) named(name string) *phase {
	p := o.phases[name]
	if p == nil {
		p = &phase{
			recorder:  result.NewRecorder(o.epoch, -1, nil),
			endpoints: map[string]int{}, further: map[string]bool{},
			counts: name != warmup,
		}
		o.align(p.recorder, name)
		o.phases[name] = p
	}
	return p
}

// does notes that a scenario did something in a phase, since that time.
func (o *Output) does(p *phase, since time.Time) {
	if p.began.IsZero() && p == o.phases[measured] {
		o.cpu, o.wall = process.CPU(), time.Now()
		o.lastCPU, o.lastAt = o.cpu, o.wall
	}
	if p.began.IsZero() || since.Before(p.began) {
		p.began = since
	}
	o.seen = o.seen || p == o.phases[measured]
}

// endpointOf gives the number of the source's endpoint in a phase.
func (s *source) endpointOf(p *phase) int {
	for i := range s.endpoints {
		e := &s.endpoints[i]
		if e.phase == nil {
			e.phase, e.number = p, p.endpoint(s.name)
		}
		if e.phase == p {
			return e.number
		}
	}
	return p.endpoint(s.name)
}

func (p *phase) endpoint(name string) int {
	name = cut(name)
	if len(p.endpoints) >= maxNames {
		if _, known := p.endpoints[name]; !known {
			if len(p.further) < maxCached {
				p.further[name] = true
			}
			name = otherEndpoints
		}
	}
	number, known := p.endpoints[name]
	if !known {
		number = p.recorder.AddEndpoint(name)
		p.endpoints[name] = number
	}
	return number
}
