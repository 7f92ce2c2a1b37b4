package result

import (
	"encoding/json"
	"math"
	"testing"
)

func TestCellsAreNarrowAndMergeable(t *testing.T) {
	cells := Cells{}
	for _, value := range []float64{-3.5, 0, math.Copysign(0, -1), 1e-9, 1, 1.0001, 42, 1e12} {
		cells.Add(value)
	}
	if len(cells) != 6 { // the two zeros are one, and so are 1 and 1.0001
		t.Errorf("%d cells: %v", len(cells), cells)
	}
	text, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	var again Cells
	if err := json.Unmarshal(text, &again); err != nil || len(again) != len(cells) || again[0] != 2 {
		t.Errorf("%s: %v, error %v", text, again, err)
	}
	for cell := range cells {
		low := math.Float64frombits(uint64(cell) << cellShift)
		high := math.Float64frombits(uint64(cell+1)<<cellShift - 1)
		if low != 0 && math.Abs(high-low) > math.Abs(low)/1000 {
			t.Errorf("a cell from %v to %v", low, high)
		}
	}
}

func TestCellsAreBounded(t *testing.T) {
	cells := Cells{}
	kept := 0
	for i := range MaxCells + 100 {
		if cells.Add(math.Float64frombits(uint64(i+1_000_000) << cellShift)) {
			kept++
		}
	}
	if kept != MaxCells || len(cells) != MaxCells {
		t.Errorf("%d kept in %d cells", kept, len(cells))
	}
}
