package output

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.k6.io/k6/v2/metrics"

	"laptime.dev/k6/internal/result"
)

// limits are the thresholds that a script has on one metric or sub-metric.
type limits struct {
	name        string // as the script has it, such as http_req_duration{name:list}
	metric      string
	tags        [][2]string
	expressions []string
	measure     *measure // nil: no sample came
}

// SetThresholds takes the thresholds of the script's options, before the output is started.
func (o *Output) SetThresholds(all map[string]metrics.Thresholds) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		metric, criteria, _ := strings.Cut(name, "{")
		one := &limits{name: name, metric: metric, tags: tagsOf(strings.TrimSuffix(criteria, "}"))}
		for _, threshold := range all[name].Thresholds {
			one.expressions = append(one.expressions, threshold.Source)
		}
		o.thresholds = append(o.thresholds, one)
		o.trails = o.trails || ofRequests(metric)
	}
}

// tagsOf reads the tags of a sub-metric as k6 does (metrics.Metric.AddSubmetric).
func tagsOf(criteria string) [][2]string {
	var tags [][2]string
	for _, pair := range strings.Split(strings.TrimSpace(criteria), ",") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, ":")
		const quotes = `"'`
		tags = append(tags, [2]string{
			strings.Trim(strings.TrimSpace(key), quotes), strings.Trim(strings.TrimSpace(value), quotes),
		})
	}
	return tags
}

// judge has k6 reckon every threshold with what was kept; took is how long that took to come, which
// counters are divided by.
func (o *Output) judge(took time.Duration) ([]result.Threshold, error) {
	all := []result.Threshold{}
	for _, one := range o.thresholds {
		for _, expression := range one.expressions {
			// Copies: k6 reckons its own with the warm-up, to end a run early where it is asked to.
			threshold := metrics.NewThresholds([]string{expression})
			if err := threshold.Parse(); err != nil {
				return nil, err
			}
			sink, samples := emptySink(expression), int64(0)
			if one.measure != nil {
				sink, samples = one.measure.sink, one.measure.Samples
			}
			met, err := threshold.Run(sink, took)
			if err != nil {
				return nil, err
			}
			contains := metrics.Default.String()
			if one.measure != nil {
				contains = one.measure.Contains
			}
			all = append(all, result.Threshold{
				Metric: cut(one.name), Expression: cut(expression), Contains: contains, Met: met,
				Value: finite(valueOf(expression, sink, took)), Samples: samples,
			})
		}
	}
	return all, nil
}

// method gives the left side of an expression, which k6 has parsed before: p(95), rate.
func method(expression string) string {
	return strings.TrimSpace(expression[:strings.IndexAny(expression, "<>=!")])
}

// emptySink is that of a metric that nobody has ever seen a sample of.
func emptySink(expression string) metrics.Sink {
	kinds := map[string]metrics.MetricType{"count": metrics.Counter, "value": metrics.Gauge, "rate": metrics.Rate}
	if kind, found := kinds[method(expression)]; found {
		return metrics.NewSink(kind)
	}
	return metrics.NewTrendSink()
}

// valueOf gives what k6 compares an expression's bound with.
func valueOf(expression string, sink metrics.Sink, took time.Duration) float64 {
	of := method(expression)
	trend, ok := sink.(*metrics.TrendSink)
	if !ok {
		return sink.Format(took)[of]
	}
	switch of {
	case "med":
		return trend.P(0.5)
	case "min", "max", "avg":
		return trend.Format(0)[of]
	}
	share, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(of, "p("), ")"), 64)
	return trend.P(share / 100)
}
