package result

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// The place that the operator has for a result, in base64 (operator/src/laptime/measure/generator.py).
const place = 900_000

// large is what a script says that has so many trends of very different numbers, and parts of each.
func large(t *testing.T, trends int) *Result {
	t.Helper()
	chance := rand.New(rand.NewPCG(1, 2))
	script := &Script{Metrics: map[string]*Metric{}, Thresholds: []Threshold{{Metric: "trend_0"}}}
	for i := range trends {
		name := fmt.Sprintf("trend_%d", i)
		if i%2 == 1 {
			name = fmt.Sprintf("trend_%d{kind:a}", i)
		}
		one := &Metric{Type: "trend", Samples: 60_000, Cells: &Cells{}}
		for range 25_000 {
			one.Cells.Add(math.Exp(chance.Float64() * 20))
		}
		script.Metrics[name] = one
	}
	recorder := NewRecorder(time.Now(), 0, nil)
	for i := range 12 {
		recorder.AddEndpoint(fmt.Sprint(i))
	}
	for i := range 120_000 {
		took := int64(math.Exp(chance.Float64()*7) * 1e6)
		recorder.Record(&Sample{Endpoint: i % 12, Issued: int64(i) * 1e6, Done: int64(i)*1e6 + took, Server: took / 2, Connect: took / 3, Status: 200})
	}
	p, err := Merge(recorder)
	if err != nil {
		t.Fatal(err)
	}
	return &Result{SchemaVersion: SchemaVersion, Phases: map[string]*Phase{"measured": p}, Script: script}
}

func written(t *testing.T, r *Result) *Result {
	t.Helper()
	var line bytes.Buffer
	if err := WriteLine(&line, r); err != nil {
		t.Fatal(err)
	}
	if line.Len() > place {
		t.Errorf("%d characters, of which %d have a place", line.Len(), place)
	}
	read, err := ParseLine(line.String())
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestAResultThatIsTooLargeIsShortened(t *testing.T) {
	for _, trends := range []int{24, 40} {
		read := written(t, large(t, trends))
		whole, parts := 0, 0
		for i := range trends {
			if one := read.Script.Metrics[fmt.Sprintf("trend_%d", i)]; one != nil && one.Cells != nil {
				whole++
			}
			if one := read.Script.Metrics[fmt.Sprintf("trend_%d{kind:a}", i)]; one != nil && one.Cells != nil {
				parts++
			}
		}
		// Parts go first, what a threshold is about last.
		if whole == 0 || parts > 0 && whole < trends/2 || read.Script.Metrics["trend_0"].Cells == nil || len(read.Script.Metrics) != trends {
			t.Errorf("of %d trends %d and %d of parts have their cells", trends, whole, parts)
		}
		if p := read.Phases["measured"]; p.Requests != 120_000 || len(p.Endpoints) != 12 || p.LatencySeconds == 0 || read.Script.SecondsLeftOut {
			t.Errorf("%d requests, %d endpoints", p.Requests, len(p.Endpoints))
		}
	}
}

func TestAResultThatHasAPlaceIsWhole(t *testing.T) {
	read := written(t, large(t, 3))
	for name, one := range read.Script.Metrics {
		if one.Cells == nil || len(*one.Cells) == 0 {
			t.Errorf("%s has no cells", name)
		}
	}
}

// Without trends it is the seconds that go; of the built-in loads nothing does.
func TestSecondsGoLast(t *testing.T) {
	r := large(t, 0)
	if !r.shorten(2) || r.Phases["measured"].LatencySeconds != 0 || !r.Script.SecondsLeftOut || r.shorten(2) {
		t.Errorf("%+v", r.Script)
	}
	if (&Result{}).shorten(2) {
		t.Error("a built-in load was shortened")
	}
}
