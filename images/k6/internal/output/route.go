package output

import (
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"

	"laptime.dev/k6/internal/process"
	"laptime.dev/k6/internal/result"
)

// route is where samples with one set of tags go. k6 gives equal sets the same pointer, so that
// looking at the tags once per set is enough.
type route struct {
	phase    *phase
	endpoint int
	status   int
	kind     result.Kind
}

// A script that tags every request differently must not make the cache grow for ever.
const maxCached = 10_000

// maxEndpoints bounds the endpoints of a phase, each of which holds three histograms.
const maxEndpoints = 200

const otherEndpoints = "other"

func (o *Output) route(tags *metrics.TagSet) route {
	if r, known := o.cached[tags]; known {
		return r
	}
	r := route{phase: o.phaseOf(tags)}
	r.endpoint = r.phase.endpoint(endpointName(tags))
	if text, ok := tags.Get("status"); ok {
		r.status, _ = strconv.Atoi(text) // k6 writes numbers; 0 when there was no answer
	}
	if text, ok := tags.Get("error_code"); ok {
		code, _ := strconv.Atoi(text)
		r.kind = kindOf(code, r.status)
	}
	if len(o.cached) >= maxCached {
		clear(o.cached)
	}
	o.cached[tags] = r
	return r
}

// kindOf translates k6's error codes. A status of 400 or more is an error only where the script
// did not expect it, which the trail's own mark says.
func kindOf(code, status int) result.Kind {
	switch {
	case code == 0 || status >= 400 && code == 1000+status:
		return result.OK
	case code == 1050:
		return result.Timeout
	case code == 1201 || code == 1220:
		return result.Reset
	case code >= 1100 && code < 1400:
		return result.Connect
	case code >= 1600 && code < 1700:
		return result.Reset
	case code >= 1700 && code < 1800:
		return result.Body
	}
	return result.Other
}

func endpointName(tags *metrics.TagSet) string {
	name, ok := tags.Get("name")
	if !ok {
		name, ok = tags.Get("url")
	}
	if !ok {
		return "request"
	}
	return name
}

// phaseOf gives the phase of a sample: the scenario "warmup" is warm-up, all else is measured.
func (o *Output) phaseOf(tags *metrics.TagSet) *phase {
	if tags != nil {
		if scenario, ok := tags.Get("scenario"); ok && scenario == warmup {
			return o.named(warmup)
		}
	}
	return o.named(measured)
}

func (o *Output) named(name string) *phase {
	p := o.phases[name]
	if p == nil {
		now := time.Now()
		p = &phase{
			recorder:  result.NewRecorder(o.epoch, -1, nil),
			endpoints: map[string]int{},
		}
		o.phases[name] = p
		if name == measured {
			o.cpu, o.wall = process.CPU(), now
			o.lastCPU, o.lastAt = o.cpu, now
		}
	}
	return p
}

func (p *phase) endpoint(name string) int {
	if len(p.endpoints) >= maxEndpoints {
		if _, known := p.endpoints[name]; !known {
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
