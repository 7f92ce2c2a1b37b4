package loop

import "math"

// arrivals is how many requests of an open load are due in all.
func (p *Plan) arrivals() int64 {
	return int64(math.Ceil((p.Rate + p.EndRate) / 2 * p.Duration.Seconds()))
}

// due is when the n-th request of an open load is due, in nanoseconds after its start.
//
// With the rate r(t) = a + kt, k = (b-a)/T, n(t) = at + kt²/2 requests are due until t. Solved for t,
// in the form that loses no digits for small k and needs no case for k = 0: t = 2n / (a + √(a²+2kn)).
func (p *Plan) due(n float64) int64 {
	k := (p.EndRate - p.Rate) / p.Duration.Seconds()
	root := math.Sqrt(max(p.Rate*p.Rate+2*k*n, 0)) // below 0 by rounding only, at the foot of a ramp
	return int64(math.Round(2 * n / (p.Rate + root) * 1e9))
}
