// Package result holds what a load measured: counts and latency histograms per phase, endpoint
// and second, and the line that carries them out of the generator.
package result

import (
	"fmt"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// MaxMicroseconds is the largest value a histogram tells apart (one hour); larger ones count there.
const MaxMicroseconds = int64(3_600_000_000)

const (
	significantDigits = 3
	subBucketBits     = 11 // 2048 sub-buckets keep three digits
	halfSubBuckets    = 1 << (subBucketBits - 1)
	blockCount        = 24 // of halfSubBuckets each: shifts 0..21 cover one hour
	bucketCount       = blockCount * halfSubBuckets
)

// block has the buckets of one power of two.
type block [halfSubBuckets]uint64

// Histogram counts microseconds with the bucket layout of an HdrHistogram of 1 µs … 1 h and three
// significant digits. The layout being the same, the conversion in Encode loses nothing; arrays without bounds
// bookkeeping keep recording at a few nanoseconds. Blocks are made when they are needed: what is counted lies within a
// few of them. It must not be copied.
type Histogram struct {
	blocks [blockCount]*block
	total  uint64
	max    int64
}

// add counts so many values of a bucket.
func (h *Histogram) add(bucket int, n uint64) {
	of := h.blocks[bucket/halfSubBuckets]
	if of == nil {
		of = &block{}
		h.blocks[bucket/halfSubBuckets] = of
	}
	of[bucket%halfSubBuckets] += n
}

// each gives the buckets that hold anything, in their order.
func (h *Histogram) each(see func(bucket int, n uint64) (more bool)) {
	for i, of := range h.blocks {
		if of == nil {
			continue
		}
		for j, n := range of {
			if n > 0 && !see(i*halfSubBuckets+j, n) {
				return
			}
		}
	}
}

// reset forgets all values, and keeps the room for others.
func (h *Histogram) reset() {
	for _, of := range h.blocks {
		if of != nil {
			clear(of[:])
		}
	}
	h.total, h.max = 0, 0
}

func bucketOf(us int64) int {
	if us < 1<<subBucketBits {
		return int(us)
	}
	shift := bits.Len64(uint64(us)) - subBucketBits
	return shift*halfSubBuckets + int(us>>shift)
}

// lowestOf and highestOf give the smallest and largest value that counts in a bucket.
func lowestOf(bucket int) int64 {
	if bucket < 1<<subBucketBits {
		return int64(bucket)
	}
	shift := bucket/halfSubBuckets - 1
	return int64(bucket-shift*halfSubBuckets) << shift
}

func highestOf(bucket int) int64 {
	if bucket < 1<<subBucketBits {
		return int64(bucket)
	}
	shift := bucket/halfSubBuckets - 1
	return int64(bucket-shift*halfSubBuckets+1)<<shift - 1
}

// Add counts one value in microseconds; what lies outside 1 µs … 1 h counts at the nearer bound.
func (h *Histogram) Add(us int64) {
	us = clamp(us)
	h.add(bucketOf(us), 1)
	h.total++
	if us > h.max {
		h.max = us
	}
}

func clamp(us int64) int64 {
	return min(max(us, 1), MaxMicroseconds)
}

// Merge adds all counts of other.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil || other.total == 0 {
		return
	}
	other.each(func(bucket int, n uint64) bool {
		h.add(bucket, n)
		return true
	})
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Count is the number of values recorded.
func (h *Histogram) Count() int64 { return int64(h.total) }

// Max is the largest value recorded in microseconds, 0 for none.
func (h *Histogram) Max() int64 { return h.max }

// Quantile gives the value in microseconds below or at which the share q (0…1) of all values lies,
// as HdrHistogram does: the highest value of the bucket, never above the maximum; 0 for none.
func (h *Histogram) Quantile(q float64) int64 {
	if h.total == 0 {
		return 0
	}
	wanted := min(max(uint64(q*float64(h.total)+0.5), 1), h.total)
	seen, found := uint64(0), h.max
	h.each(func(bucket int, n uint64) bool {
		seen += n
		if seen < wanted {
			return true
		}
		found = min(highestOf(bucket), h.max)
		return false
	})
	return found
}

// Encode gives the histogram in HdrHistogram's V2 compressed form, base64.
func (h *Histogram) Encode() (string, error) {
	hdr := hdrhistogram.New(1, MaxMicroseconds, significantDigits)
	var err error
	h.each(func(bucket int, n uint64) bool {
		// The smallest value of the bucket: the largest could lie above the bound of one hour.
		if err = hdr.RecordValues(lowestOf(bucket), int64(n)); err != nil {
			err = fmt.Errorf("histogram bucket %d: %w", bucket, err)
		}
		return err == nil
	})
	if err != nil {
		return "", err
	}
	encoded, err := hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode histogram: %w", err)
	}
	return string(encoded), nil
}

// cell is one non-empty bucket of a sealed histogram.
type cell struct {
	bucket uint32
	count  uint32
}

// cells lists the non-empty buckets: what is kept of a second that has passed.
func (h *Histogram) cells() []cell {
	var out []cell
	h.each(func(bucket int, n uint64) bool {
		out = append(out, cell{uint32(bucket), uint32(n)})
		return true
	})
	return out
}

func (h *Histogram) addCells(cells []cell) {
	for _, c := range cells {
		h.add(int(c.bucket), uint64(c.count))
		h.total += uint64(c.count)
	}
}
