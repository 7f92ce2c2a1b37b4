package main

import (
	"math"

	"laptime.dev/k6/internal/saturation"
)

// before is the search as it was: each rate is tried once, from the same rate on for all servers, and
// what lies between is halved by difference.
func before(from, most float64, try attempt) (low, high float64) {
	meets := func(rate float64) bool {
		step := try(rate)
		if step.Met && (high == 0 || rate < high) {
			low = max(low, rate)
		}
		if !step.Met && (high == 0 || rate < high) {
			high = rate
		}
		return step.Met
	}
	for rate := min(from, most); ; {
		if meets(rate) {
			if rate == most || high > 0 {
				break
			}
			rate = min(2*rate, most)
			continue
		}
		if low > 0 || rate <= 1 {
			break
		}
		rate = math.Floor(rate / 2)
	}
	for low > 0 && high > 1.05*low {
		middle := math.Round((low + high) / 2)
		if middle <= low || middle >= high {
			break
		}
		meets(middle)
	}
	for rate := high; rate > 0 && rate < most; {
		rate = min(2*rate, most)
		if step := try(rate); step.Broken() {
			break
		}
	}
	return low, high
}

// now is the search of package saturation.
func now(from, most float64, try attempt) (low, high float64) {
	found, err := saturation.Search(from, most, func(rate float64) (saturation.Step, error) { return try(rate), nil })
	if err != nil {
		panic(err) // try has none
	}
	return found.Low, found.High
}
