package saturation

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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
			if len(found.Steps) >= mostSteps {
				t.Errorf("from %v to %v: %d steps", from, meets, len(found.Steps))
			}
		}
	}
}

func TestAFastServerIsTriedUpToTheHighestRate(t *testing.T) {
	// Which is tried twice, since the search ends with it.
	found, err := Search(100, 1000, server(math.Inf(1), math.Inf(1)))
	if err != nil || found.Low != 1000 || found.High != 0 || found.Breaking != 0 || len(found.Steps) != 6 {
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

// noisy is a server whose capacity is another one in each step, around its own, and that stands still
// in some steps, so that it misses whatever rate it has there.
func noisy(capacity, noise, stalls float64, random *rand.Rand) func(float64) (Step, error) {
	return func(rate float64) (Step, error) {
		if random.Float64() < stalls {
			return Step{Rate: rate, CompletedRate: rate / 2}, nil
		}
		now := capacity * math.Exp(noise*random.NormFloat64())
		return Step{Rate: rate, CompletedRate: min(rate, now), Met: rate <= now}, nil
	}
}

// stalling is a server of 5000/s that keeps up to there, but for the steps with these numbers, from 1.
func stalling(steps ...int) func(float64) (Step, error) {
	tried := 0
	return func(rate float64) (Step, error) {
		tried++
		if slices.Contains(steps, tried) {
			return Step{Rate: rate, CompletedRate: rate / 2}, nil
		}
		return Step{Rate: rate, CompletedRate: min(rate, 5000), Met: rate <= 5000}, nil
	}
}

func TestASingleStallDoesNotEndTheSearch(t *testing.T) {
	for stalled := 1; stalled <= 25; stalled++ {
		found, err := Search(100, 100_000, stalling(stalled))
		if err != nil || found.Low > 5000 || found.High <= 5000 || found.Breaking < 5000 {
			t.Errorf("a stall in step %d: %v … %v, the truth is 5000; %v", stalled, found.Low, found.High, err)
		}
	}
}

func TestTwoStallsOneAfterTheOtherAreFoundOutAtTheEnd(t *testing.T) {
	for stalled := 1; stalled <= 5; stalled++ {
		found, err := Search(100, 100_000, stalling(stalled, stalled+1))
		if err != nil || found.Low > 5000 || found.High <= 5000 || found.Breaking < 5000 {
			t.Errorf("stalls in steps %d and %d: %v … %v, the truth is 5000; %v", stalled, stalled+1, found.Low, found.High, err)
		}
	}
}

func TestALuckyStepIsNotWhereTheSearchEnds(t *testing.T) {
	tries := map[float64]int{}
	found, err := Search(100, 100_000, func(rate float64) (Step, error) {
		tries[rate]++
		lucky := rate == 3200 && tries[rate] == 1
		return Step{Rate: rate, CompletedRate: rate, Met: rate <= 2500 || lucky}, nil
	})
	if err != nil || found.Low > 2500 || found.High <= 2500 || found.High > narrow*found.Low {
		t.Errorf("%v … %v, the truth is 2500; %v", found.Low, found.High, err)
	}
}

func TestANoisyServerIsFoundWithoutBias(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 0))
	const searches = 4000
	sum, steps, most := 0.0, 0, 0
	for range searches {
		// As the operator draws start rates.
		from := 100 * math.Exp2(-random.Float64())
		found, err := Search(from, 100_000, noisy(3000, 0.05, 0.02, random))
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Log(found.Low*found.High)/2 - math.Log(3000)
		steps += len(found.Steps)
		most = max(most, len(found.Steps))
	}
	if bias := sum / searches; math.Abs(bias) > 0.02 {
		t.Errorf("%.1f %% beside the truth", 100*bias)
	}
	t.Logf("%.1f steps on average, %d at most", float64(steps)/searches, most)
}

func TestAMissOfAGeneratorThatWasLateOnceDoesNotCount(t *testing.T) {
	tries := map[float64]int{}
	found, err := Search(100, 100_000, func(rate float64) (Step, error) {
		tries[rate]++
		late := tries[rate] == 1
		return Step{Rate: rate, CompletedRate: min(rate, 5000), Met: rate <= 5000 && !late, Late: late}, nil
	})
	if err != nil || found.Low > 5000 || found.High <= 5000 || found.Late {
		t.Errorf("%v … %v, late %v; %v", found.Low, found.High, found.Late, err)
	}
}

func TestAGeneratorThatIsLateAgainAndAgainIsSaidToBeTheLimit(t *testing.T) {
	found, err := Search(100, 100_000, func(rate float64) (Step, error) {
		late := rate > 2000
		return Step{Rate: rate, CompletedRate: min(rate, 2000), Met: !late, Late: late}, nil
	})
	if err != nil || found.Low > 2000 || found.High <= 2000 || !found.Late || found.Breaking != 0 {
		t.Errorf("%v … %v, late %v, breaks at %v; %v", found.Low, found.High, found.Late, found.Breaking, err)
	}
	if len(found.Steps) > 20 {
		t.Errorf("%d steps", len(found.Steps))
	}
}

func TestASearchHasAnEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 0))
	for range 1000 {
		share := random.Float64()
		found, err := Search(100, 100_000, func(rate float64) (Step, error) {
			completed := rate
			if random.Float64() < 0.5 {
				completed = 0
			}
			return Step{
				Rate: rate, CompletedRate: completed, Restless: true,
				Met: random.Float64() < share, Late: random.Float64() < share,
			}, nil
		})
		if err != nil || len(found.Steps) > mostSteps || found.Restless != len(found.Steps) {
			t.Fatalf("%d steps, %d restless; %v", len(found.Steps), found.Restless, err)
		}
		if found.High > 0 && found.Low >= found.High {
			t.Fatalf("%v … %v", found.Low, found.High)
		}
	}
}
