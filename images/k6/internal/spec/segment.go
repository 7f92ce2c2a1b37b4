package spec

import (
	"errors"
	"fmt"
	"strconv"
)

// Generators says how many generators share a load, and where generator 0 is found.
type Generators struct {
	Count int    `json:"count"`
	Meet  string `json:"meet"` // host:port
}

const maxGenerators = 16

func (g *Generators) check(load *Load) error {
	if g == nil {
		return nil
	}
	connections := load.Connections()
	switch {
	case g.Count < 1 || g.Count > maxGenerators:
		return fmt.Errorf("generators.count: %d is not within 1 … %d", g.Count, maxGenerators)
	case g.Count > 1 && g.Meet == "":
		return errors.New("generators.meet: write host:port of generator 0")
	case g.Count > 1 && load.Saturation != nil:
		return errors.New("generators.count: a saturation search runs in one generator")
	case connections < g.Count:
		return fmt.Errorf("generators.count: %d generators cannot share %d connections", g.Count, connections)
	}
	return nil
}

// Together says where the generators of two trials meet that are measured at the same time.
type Together struct {
	Name  string `json:"name"`  // of the meeting
	First int    `json:"first"` // which generator of all generator 0 of this trial is
	Count int    `json:"count"` // of the generators of both
	Meet  string `json:"meet"`  // host:port of generator 0 of all
}

func (g *Together) check(t *Trial) error {
	if g == nil {
		return nil
	}
	switch own := int(t.generators()); {
	case g.Name == "":
		return errors.New("together.name: write what both trials call their meeting")
	case g.Count > 2*maxGenerators || g.First < 0 || own < 1 || g.First+own > g.Count:
		return fmt.Errorf("together: the %d generators from %d on are not among %d of at most %d", own, g.First, g.Count, 2*maxGenerators)
	case g.Meet == "":
		return errors.New("together.meet: write host:port of generator 0")
	case t.Load.Saturation != nil || t.Load.Closed != nil && t.Load.Closed.Requests > 0:
		return errors.New("together: both trials have to end at the same time, which a search and a number of requests do not: write a load with a duration")
	}
	return nil
}

// Segment is one generator's part of a load.
type Segment struct {
	Index int // from 0
	Count int // at least 1
}

// Segment gives the part of the generator with this completion index of an Indexed Job; the index
// does not matter where there is one generator.
func (t *Trial) Segment(completionIndex string) (Segment, error) {
	if t.Generators == nil || t.Generators.Count == 1 {
		return Segment{0, 1}, nil
	}
	index, err := strconv.Atoi(completionIndex)
	if err != nil || index < 0 || index >= t.Generators.Count {
		return Segment{}, fmt.Errorf("JOB_COMPLETION_INDEX: %q is not within 0 … %d", completionIndex, t.Generators.Count-1)
	}
	return Segment{index, t.Generators.Count}, nil
}

// Share gives this segment's part of a whole. The parts of all segments add up to it exactly and
// differ by one at most.
func (s Segment) Share(whole int64) int64 {
	index, count := int64(s.Index), int64(s.Count)
	return before(whole, index+1, count) - before(whole, index, count)
}

// before is the sum of the first index parts of a whole that is cut into count.
func before(whole, index, count int64) int64 {
	// Not whole*index/count: that could overflow.
	return whole/count*index + whole%count*index/count
}
