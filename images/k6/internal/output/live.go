package output

import (
	"os"
	"strings"
	"time"

	"laptime.dev/k6/internal/live"
	"laptime.dev/k6/internal/result"
)

const (
	// Who looks does so once a second.
	publishEvery = 500 * time.Millisecond
	// maxShown bounds the requests that are told apart while a script runs: a scrape has bounds as well.
	maxShown = 20
)

// showLive shows the counts of a script while it runs, as the built-in trial shows its own.
func (o *Output) showLive() {
	if os.Getenv("LAPTIME_TRIAL") == "" {
		o.live, o.unserve = live.Serve(os.Getenv("LAPTIME_METRICS_ADDRESS"), os.Stderr, warmup, measured)
	}
}

// publish leaves copies of the counts where scrapes find them, now and then.
func (o *Output) publish(now time.Time) {
	if o.live == nil || now.Before(o.nextPublish) {
		return
	}
	o.nextPublish = now.Add(publishEvery)
	for _, name := range []string{warmup, measured} {
		p := o.phases[name]
		if p == nil || p.began.IsZero() {
			continue
		}
		if p.slot == nil {
			p.slot = o.live.Begin(name).Slot()
		}
		p.slot.Publish(few(p.recorder.Tally()))
	}
}

// few gives a tally of some requests and all others together, with names that can be shown.
func few(t *result.Tally) *result.Tally {
	for i := range t.Endpoints {
		t.Endpoints[i].Name = strings.ToValidUTF8(cut(t.Endpoints[i].Name), "\uFFFD")
	}
	if len(t.Endpoints) <= maxShown {
		return t
	}
	others := result.EndpointTally{Name: otherEndpoints}
	for _, one := range t.Endpoints[maxShown-1:] {
		others.Requests += one.Requests
		others.Latencies.Add(&one.Latencies)
	}
	t.Endpoints = append(t.Endpoints[:maxShown-1:maxShown-1], others)
	return t
}
