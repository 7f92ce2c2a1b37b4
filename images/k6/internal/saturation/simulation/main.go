// Command simulation prints what searches find of servers that are made up: for bench/search, which
// counts how often the intervals of a run hold the truth.
//
// Each line is "<run> <server> <repetition> <capacity> <low> <high> <steps> <misses>". The servers of a run are
// alike, but for what the first one is faster by. The capacity of each step is drawn around a server's, and a step
// may hold a stall, which misses at any rate.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"laptime.dev/k6/internal/saturation"
)

// attempt is a step at a rate.
type attempt func(rate float64) saturation.Step

func main() {
	rule := flag.String("rule", "now", "now, or before: as it was")
	spread := flag.Bool("spread", true, "draw the first rate of each search from an octave")
	runs := flag.Int("runs", 1000, "runs")
	servers := flag.Int("servers", 3, "like servers in each")
	repetitions := flag.Int("repetitions", 5, "searches of each")
	lowest := flag.Float64("lowest", 1000, "least capacity, requests/s")
	highest := flag.Float64("highest", 8000, "most")
	noise := flag.Float64("noise", 0.05, "standard deviation of the capacity between steps, as a share")
	between := flag.Float64("between", 0, "the same between repetitions")
	faster := flag.Float64("faster", 0, "what the first server can do more than the others, as a share")
	stalls := flag.Float64("stalls", 0.02, "share of the steps with a stall")
	seed := flag.Uint64("seed", 1, "of all that is drawn")
	flag.Parse()
	search := now
	if *rule == "before" {
		search = before
	}
	out := bufio.NewWriter(os.Stdout)
	random := rand.New(rand.NewPCG(*seed, 0))
	for run := range *runs {
		alike := *lowest * math.Pow(*highest / *lowest, random.Float64())
		for server := range *servers {
			capacity := alike
			if server == 0 {
				capacity *= 1 + *faster
			}
			for repetition := range *repetitions {
				from, steps, misses := 100.0, 0, 0
				if *spread {
					from *= math.Exp2(-random.Float64())
				}
				own := capacity * math.Exp(*between*random.NormFloat64())
				low, high := search(from, 100_000, func(rate float64) saturation.Step {
					steps++
					now := own * math.Exp(*noise*random.NormFloat64())
					if random.Float64() < *stalls {
						misses++
						return saturation.Step{Rate: rate, CompletedRate: rate / 2}
					}
					if rate > now {
						misses++
					}
					return saturation.Step{Rate: rate, CompletedRate: min(rate, now), Met: rate <= now}
				})
				_, _ = fmt.Fprintln(out, run, server, repetition, capacity, low, high, steps, misses)
			}
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
