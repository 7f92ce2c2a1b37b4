package result

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// Script is what a script of a user's own says beside its requests, of all but its warm-up.
type Script struct {
	// How the warm-up was named: "time" or "scenario"; empty: not at all.
	Warmup string `json:"warmup"`
	// Kinds of the executors that were measured, such as "ramping-vus".
	Executors        []string `json:"executors"`
	Iterations       int64    `json:"iterations"`
	IterationSeconds float64  `json:"iterationSeconds"` // of all of them together, each with its minIterationDuration
	// Of all requests of scenarios together, those to other hosts and failed ones included.
	RequestSeconds float64 `json:"requestSeconds"`
	// How long all that counts took: what counters are divided by.
	Seconds float64 `json:"seconds"`
	// A threshold of the script's ended it before its time.
	Aborted    bool                   `json:"aborted"`
	Checks     map[string]*CheckCount `json:"checks"`
	MoreChecks *CheckCount            `json:"moreChecks,omitempty"` // of all names beyond the bound
	// Calls of check() of which any check failed: how many answers were wrong in one way or another.
	WrongAnswers int64 `json:"wrongAnswers"`
	// Iterations that ended with an exception, by its words and its stack.
	Exceptions     map[string]int64 `json:"exceptions"`
	MoreExceptions int64            `json:"moreExceptions,omitempty"` // of all beyond the bound
	// Requests to others than the target, by host and port.
	OtherHosts     map[string]*HostCount `json:"otherHosts"`
	MoreHosts      *HostCount            `json:"moreHosts,omitempty"`
	Metrics        map[string]*Metric    `json:"metrics"`
	MetricsLeftOut int                   `json:"metricsLeftOut,omitempty"`
	PartsLeftOut   bool                  `json:"partsLeftOut,omitempty"` // by scenarios and tags
	// Names of requests of the measured phase that are counted together.
	EndpointsLeftOut int `json:"endpointsLeftOut,omitempty"`
	// There was no room for the response times of single seconds.
	SecondsLeftOut bool        `json:"secondsLeftOut,omitempty"`
	Thresholds     []Threshold `json:"thresholds"`
}

// shorten leaves of trends whose cells take so many times the room that there is only as many as fit: parts of metrics
// lose theirs first, what thresholds are about last. It says whether there were any.
func (s *Script) shorten(times float64) bool {
	judged := map[string]bool{}
	for _, one := range s.Thresholds {
		judged[one.Metric] = true
	}
	rank := func(name string) int {
		switch {
		case judged[name]:
			return 2
		case strings.Contains(name, "{"):
			return 0
		}
		return 1
	}
	var trends []string
	all := 0
	for name, one := range s.Metrics {
		if one.Cells != nil {
			trends = append(trends, name)
			all += len(*one.Cells)
		}
	}
	size := func(name string) int { return len(*s.Metrics[name].Cells) }
	slices.SortFunc(trends, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(size(b), size(a)), cmp.Compare(a, b))
	})
	over := max(float64(all)*(1-1/times), float64(all)/10)
	for _, name := range trends {
		if over <= 0 {
			break
		}
		over -= float64(size(name))
		s.Metrics[name].Cells = nil
	}
	return len(trends) > 0
}

// CheckCount is how often a check held and did not.
type CheckCount struct {
	Passed int64 `json:"passed"`
	Failed int64 `json:"failed"`
}

// HostCount is what was asked of another host than the target.
type HostCount struct {
	Requests int64 `json:"requests"`
	Errors   int64 `json:"errors"`
}

// Metric is one metric of k6's, its own or the script's, in k6's units.
type Metric struct {
	Type     string  `json:"type"`     // counter, gauge, rate or trend
	Contains string  `json:"contains"` // default, time (milliseconds) or data (bytes)
	Samples  int64   `json:"samples"`
	Sum      float64 `json:"sum"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Last     float64 `json:"last"`
	Passes   int64   `json:"passes"`          // samples that are not 0
	Cells    *Cells  `json:"cells,omitempty"` // of a trend; absent where it had too many
}

// Threshold is one expression of the script's options, and what became of it.
type Threshold struct {
	Metric     string  `json:"metric"` // with the tags of a sub-metric, as the script has it
	Expression string  `json:"expression"`
	Contains   string  `json:"contains"`
	Met        bool    `json:"met"`
	Value      float64 `json:"value"`   // what it was compared with; 0 without samples
	Samples    int64   `json:"samples"` // that it rests on
}

// MaxCells bounds what a trend may take: a factor of some 500 million, if every cell is in use.
const MaxCells = 20_000

// cellShift leaves of a float64 its sign, its exponent and the first 10 bits of its fraction: cells
// of at most 0.1 % width over all numbers, as an HdrHistogram has them over positive integers.
const cellShift = 42

// Cells counts numbers in cells of at most 0.1 % width; they merge without loss.
type Cells map[uint32]int64

// Add counts a number, and says whether there was room.
func (c Cells) Add(value float64) bool {
	cell := uint32(math.Float64bits(value+0) >> cellShift) // +0: of the two zeros there is one
	if _, known := c[cell]; !known && len(c) >= MaxCells {
		return false
	}
	c[cell]++
	return true
}

// MarshalJSON gives cell, count, cell, count and so on, by cell.
func (c Cells) MarshalJSON() ([]byte, error) {
	flat := make([]int64, 0, 2*len(c))
	for _, cell := range slices.SortedFunc(maps.Keys(c), cmp.Compare[uint32]) {
		flat = append(flat, int64(cell), c[cell])
	}
	return json.Marshal(flat)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Cells) UnmarshalJSON(text []byte) error {
	var flat []int64
	if err := json.Unmarshal(text, &flat); err != nil {
		return err
	}
	*c = Cells{}
	for i := 0; i+1 < len(flat); i += 2 {
		(*c)[uint32(flat[i])] += flat[i+1]
	}
	return nil
}
