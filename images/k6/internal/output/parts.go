package output

import (
	"maps"
	"slices"

	"go.k6.io/k6/v2/metrics"
)

// maxParts bounds the parts of metrics by scenarios and tags that are kept: they must leave room for whole ones.
const maxParts = 50

// series is a metric with one set of tags.
type series struct {
	metric *metrics.Metric
	tags   *metrics.TagSet
}

// partsOf gives what keeps the samples of a metric by the scenario and by each tag that is the script's own, such
// as my_trend{kind:a}.
func (o *Output) partsOf(s *metrics.Sample) []*measure {
	tags := o.source(s.Tags).parts
	if len(tags) == 0 || !parted(s.Metric.Name) {
		return nil
	}
	at := series{s.Metric, s.Tags}
	if found, known := o.parts[at]; known {
		return found
	}
	found := []*measure{}
	for _, tag := range tags {
		if one := o.part(s.Metric, tag); one != nil {
			found = append(found, one)
		}
	}
	if len(o.parts) >= maxCached {
		clear(o.parts)
	}
	o.parts[at] = found
	return found
}

// part gives what keeps one part of a metric, nil where there is no room or a threshold has it kept.
func (o *Output) part(of *metrics.Metric, tag [2]string) *measure {
	name := of.Name + "{" + tag[0] + ":" + tag[1] + "}"
	if one, known := o.byTag[name]; known {
		return one
	}
	if slices.ContainsFunc(o.thresholds, func(one *limits) bool {
		return one.metric == of.Name && slices.Equal(one.tags, [][2]string{tag})
	}) {
		return nil
	}
	if len(o.byTag) >= maxParts || !o.room(false) {
		o.script.PartsLeftOut = true
		return nil
	}
	one := &measure{name: name}
	o.keep(one, of)
	o.byTag[name] = one
	return one
}

// parted says whether parts of a metric are kept. Of what a request consists of k6 has eight metrics.
func parted(name string) bool {
	switch name {
	case metrics.HTTPReqDurationName, metrics.HTTPReqFailedName:
		return true
	case metrics.DataSentName, metrics.DataReceivedName:
		return false
	}
	return !ofRequests(name)
}

// ownTags gives the tags that tell samples of a script apart: the scenario where there are several, and those that
// are not k6's own and not on all samples alike.
func (o *Output) ownTags(tags *metrics.TagSet) [][2]string {
	var own [][2]string
	all := tags.Map()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if name == "scenario" {
			if o.scenarios > 1 && value != warmup {
				own = append(own, [2]string{name, value})
			}
			continue
		}
		if _, err := metrics.SystemTagString(name); err == nil || o.params.ScriptOptions.RunTags[name] == value {
			continue
		}
		own = append(own, [2]string{name, value})
	}
	return own
}
