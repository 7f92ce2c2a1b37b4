package saturation

import (
	"errors"
	"math"
	"testing"
)

// server meets its objective up to one rate and keeps up to another.
func server(meets, capacity float64) func(float64) (Step, error) {
	return func(rate float64) (Step, error) {
		return Step{Rate: rate, CompletedRate: min(rate, capacity), Met: rate <= meets}, nil
	}
}

func TestTheIntervalHoldsTheTruthAndIsNarrow(t *testing.T) {
	for _, from := range []float64{1, 100, 5000} {
		for _, meets := range []float64{1, 7, 99, 100, 1234, 40_000} {
			found, err := Search(from, 100_000, server(meets, 1.3*meets))
			if err != nil {
				t.Fatal(err)
			}
			if found.Low > meets || found.High <= meets {
				t.Errorf("from %v: %v … %v, the truth is %v", from, found.Low, found.High, meets)
			}
			if found.High > narrow*found.Low && found.High-found.Low > 1 {
				t.Errorf("from %v: %v … %v is wide", from, found.Low, found.High)
			}
			if found.Breaking <= 1.3*meets || found.Breaking > 4*meets+2 {
				t.Errorf("from %v: breaks at %v, the truth is %v", from, found.Breaking, 1.3*meets)
			}
			if len(found.Steps) > 30 {
				t.Errorf("from %v to %v: %d steps", from, meets, len(found.Steps))
			}
		}
	}
}

func TestAFastServerIsTriedUpToTheHighestRate(t *testing.T) {
	found, err := Search(100, 1000, server(math.Inf(1), math.Inf(1)))
	if err != nil || found.Low != 1000 || found.High != 0 || found.Breaking != 0 || len(found.Steps) != 5 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestAServerThatNeverMeetsTheObjectiveHasNoRate(t *testing.T) {
	found, err := Search(100, 1000, server(0, math.Inf(1)))
	if err != nil || found.Low != 0 || found.High != 1 || found.Breaking != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestALuckyStepDoesNotWidenTheInterval(t *testing.T) {
	// Fails at 400 once the search comes there, but met the objective at 800 later on.
	found, err := Search(100, 1600, func(rate float64) (Step, error) {
		return Step{Rate: rate, CompletedRate: rate, Met: rate < 400 || rate >= 800}, nil
	})
	if err != nil || found.Low >= 400 || found.High != 400 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestTheFirstErrorEndsTheSearch(t *testing.T) {
	stopped := errors.New("stopped")
	calls := 0
	_, err := Search(100, 1000, func(float64) (Step, error) { calls++; return Step{}, stopped })
	if !errors.Is(err, stopped) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
