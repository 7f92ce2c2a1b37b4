package loop

import "sync/atomic"

// Wires are the renderings of one request, one for each of its prepared ids. All loops together
// send them in turn, and all phases of a trial go on where the phase before has ended: an id comes
// again only after all the others.
type Wires struct {
	rendered [][]byte
	next     atomic.Uint64
}

// NewWires takes at least one rendering.
func NewWires(rendered [][]byte) *Wires { return &Wires{rendered: rendered} }

func (w *Wires) take() []byte {
	return w.rendered[(w.next.Add(1)-1)%uint64(len(w.rendered))]
}

// longest is the length of the longest rendering in bytes.
func (r *Request) longest() int {
	longest := len(r.Wire)
	if r.Wires != nil {
		for _, one := range r.Wires.rendered {
			longest = max(longest, len(one))
		}
	}
	return longest
}
