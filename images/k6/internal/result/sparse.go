package result

import (
	"maps"
	"math"
	"slices"
)

// SparseSchema is the resolution of a sparse histogram, by the number that Prometheus has for it in
// native histograms: each power of two has 2^SparseSchema buckets, so that a bucket is 0.54 % wide.
const SparseSchema = 7

// mostBuckets bounds what the seconds of a phase add to a result, which has a place of 900 kB:
// some 200 kB of it, or ten minutes of three hundred buckets each.
const mostBuckets = 200_000

// Sparse is a histogram as gaps and counts: 3, 10, 1, 20 are ten values in bucket 3 and twenty in
// bucket 4. Bucket i holds what lies above 2^((i-1)/128) s and not above 2^(i/128) s, as in a native
// histogram of Prometheus; the first gap counts from 0 and may be below it.
type Sparse []int64

// buckets are the counts of a sparse histogram by the number of the bucket.
type buckets map[int]int64

// buckets gives the counts in the wider buckets of a sparse histogram. A value counts where the middle
// of its own bucket lies, which is narrower than a fifth of the wider one.
func (h *Histogram) buckets() buckets {
	out := buckets{}
	h.each(func(bucket int, n uint64) bool {
		out[sparseBucketOf(float64(lowestOf(bucket)+highestOf(bucket))/2)] += int64(n)
		return true
	})
	return out
}

func sparseBucketOf(us float64) int {
	return int(math.Ceil(math.Log2(us/1e6) * (1 << SparseSchema)))
}

func (b buckets) sparse() Sparse {
	out := Sparse{}
	at := 0
	for _, i := range slices.Sorted(maps.Keys(b)) {
		out = append(out, int64(i-at), b[i])
		at = i
	}
	return out
}

// spread gives the seconds of a phase their histograms, as few seconds to each as there is room for:
// one, two, four and so on. It returns how many.
func (p *Phase) spread(latencies []buckets) int {
	for together := 1; ; together *= 2 {
		joined := map[int]buckets{}
		size := 0
		for t, of := range latencies {
			into := min(t/together*together+together, len(latencies)) - 1
			if joined[into] == nil {
				joined[into] = buckets{}
			}
			for i, n := range of {
				joined[into][i] += n
			}
		}
		for _, one := range joined {
			size += len(one)
		}
		if size > mostBuckets && together < len(latencies) {
			continue
		}
		for t, one := range joined {
			p.Seconds[t].Latency = one.sparse()
		}
		return together
	}
}
