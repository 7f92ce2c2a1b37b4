package loop

// queue is a ring of connections, first in, first out.
type queue struct {
	ring  []int32
	first int
	count int
}

func newQueue(size int) queue { return queue{ring: make([]int32, size)} }

func (q *queue) push(id int32) {
	at := q.first + q.count
	if at >= len(q.ring) {
		at -= len(q.ring)
	}
	q.ring[at] = id
	q.count++
}

func (q *queue) pop() int32 {
	id := q.ring[q.first]
	if q.first++; q.first == len(q.ring) {
		q.first = 0
	}
	q.count--
	return id
}

// thinkers are users who wait, as a binary heap: who goes on first is at the front.
type thinkers []rest

func (t *thinkers) push(one rest) {
	heap := append(*t, one)
	*t = heap
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if heap[parent].until <= heap[i].until {
			return
		}
		heap[parent], heap[i] = heap[i], heap[parent]
		i = parent
	}
}

func (t *thinkers) pop() rest {
	heap := *t
	front := heap[0]
	last := len(heap) - 1
	heap[0] = heap[last]
	heap = heap[:last]
	*t = heap
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return front
		}
		if child+1 < last && heap[child+1].until < heap[child].until {
			child++
		}
		if heap[i].until <= heap[child].until {
			return front
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
