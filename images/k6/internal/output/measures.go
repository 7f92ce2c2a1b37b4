package output

import (
	"math"

	"go.k6.io/k6/v2/metrics"

	"laptime.dev/k6/internal/result"
)

// maxMetrics bounds the metrics and sub-metrics that are kept. So many more are those that thresholds are about:
// of several generators each must have kept them, or nobody can judge all of them together.
const maxMetrics = 100

// measure is what is kept of one metric, or of a sub-metric that a threshold is about.
type measure struct {
	result.Metric
	name string       // whole
	tags [][2]string  // samples of a sub-metric have all of these
	sink metrics.Sink // what k6 reckons thresholds with; nil where there are none
	full bool         // a trend that has no more room
}

// measuresOf gives what keeps the samples of a metric; nothing for a metric that is not kept.
func (o *Output) measuresOf(m *metrics.Metric) []*measure {
	if found, known := o.measures[m]; known {
		return found
	}
	var found []*measure
	keep := func(one *measure) {
		if o.keep(one, m) || one.sink != nil {
			found = append(found, one)
		}
	}
	for _, limits := range o.thresholds {
		if limits.metric != m.Name {
			continue
		}
		limits.measure = &measure{name: limits.name, tags: limits.tags, sink: metrics.NewSink(m.Type)}
		keep(limits.measure)
	}
	// Of requests there are better figures than k6's own.
	ownName := len(found) > 0 && found[0].name == m.Name
	if !ownName && !ofRequests(m.Name) {
		keep(&measure{name: m.Name})
	}
	o.measures[m] = found
	return found
}

// ofRequests says whether a metric is one of k6's own of HTTP requests. A script may have others that begin like them.
func ofRequests(name string) bool {
	switch name {
	case metrics.HTTPReqsName, metrics.HTTPReqFailedName, metrics.HTTPReqDurationName, metrics.HTTPReqBlockedName,
		metrics.HTTPReqConnectingName, metrics.HTTPReqTLSHandshakingName, metrics.HTTPReqSendingName,
		metrics.HTTPReqWaitingName, metrics.HTTPReqReceivingName:
		return true
	}
	return false
}

// keep has a measure of a metric in the result, if there is room.
func (o *Output) keep(one *measure, of *metrics.Metric) bool {
	one.Type, one.Contains = of.Type.String(), of.Contains.String()
	if !o.room(one.sink != nil) {
		o.leaveOut(one.name)
		return false
	}
	if one.sink != nil {
		o.judged++
	}
	if of.Type == metrics.Trend {
		one.Cells = &result.Cells{}
	}
	o.kept = append(o.kept, one)
	return true
}

// room says whether one more metric can be kept, or one more that a threshold is about.
func (o *Output) room(judged bool) bool {
	if judged {
		return o.judged < maxMetrics
	}
	return len(o.kept)-o.judged < maxMetrics
}

// leaveOut notes that there is no room for a metric, of whose samples it may be told each.
func (o *Output) leaveOut(name string) {
	if len(o.leftOut) < maxCached {
		o.leftOut[name] = true
	}
	o.script.MetricsLeftOut = len(o.leftOut)
}

// group gives what keeps the durations of one group, nil where there is no room.
func (o *Output) group(s *metrics.Sample) *measure {
	group, _ := s.Tags.Get("group")
	one, known := o.groups[group]
	if !known {
		one = &measure{name: s.Metric.Name + "{group:" + group + "}"}
		if len(o.groups) >= maxMetrics || !o.keep(one, s.Metric) {
			return nil
		}
		o.groups[group] = one
	}
	return one
}

func (o *Output) measure(s *metrics.Sample) {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return // JSON has no such numbers
	}
	for _, one := range o.measuresOf(s.Metric) {
		if one.about(s.Tags) {
			one.add(s)
		}
	}
	for _, one := range o.partsOf(s) {
		one.add(s)
	}
	// All groups together say nothing of any.
	if s.Metric.Name == metrics.GroupDurationName {
		if one := o.group(s); one != nil {
			one.add(s)
		}
	}
}

// about says whether samples with these tags belong to the metric.
func (m *measure) about(tags *metrics.TagSet) bool {
	for _, tag := range m.tags {
		if tags == nil {
			return false
		}
		if value, found := tags.Get(tag[0]); !found || value != tag[1] {
			return false
		}
	}
	return true
}

func (m *measure) add(s *metrics.Sample) {
	if m.sink != nil {
		m.sink.Add(*s)
	}
	if m.Samples == 0 {
		m.Min, m.Max = s.Value, s.Value
	}
	m.Samples++
	m.Sum = finite(m.Sum + s.Value)
	m.Min, m.Max, m.Last = min(m.Min, s.Value), max(m.Max, s.Value), s.Value
	if s.Value != 0 {
		m.Passes++
	}
	if m.Cells != nil && !m.full {
		m.full = !m.Cells.Add(s.Value)
	}
}

// finite gives a number, and the largest or least one instead of one beyond it: JSON has no others.
func finite(value float64) float64 {
	return max(-math.MaxFloat64, min(math.MaxFloat64, value))
}

// metricsKept gives all metrics that had samples, by name.
func (o *Output) metricsKept() map[string]*result.Metric {
	all := map[string]*result.Metric{}
	for _, one := range o.kept {
		if one.Samples == 0 {
			continue
		}
		if one.full {
			one.Cells = nil
		}
		all[cut(one.name)] = &one.Metric
	}
	return all
}
