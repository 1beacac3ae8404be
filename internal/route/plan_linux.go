package route

import (
	"container/heap"
	"time"
)

// plan has the neighbours for which a request to the kernel is planned. A message of the kernel changes one of them, and
// any host of the link can cause such messages. So a change takes logarithmic time, and wakes the keeper only if the
// request comes before the time for which the keeper sleeps.
type plan struct {
	order  byKickAt
	wakeAt time.Time // when the keeper wakes up
}

// set sets the time of the next request for a neighbour. The zero time means that no request is planned. The result
// says whether the keeper has to wake up earlier.
func (p *plan) set(n *neighbour, at time.Time) (earlier bool) {
	planned := !n.kickAt.IsZero()
	if at.IsZero() {
		if planned {
			heap.Remove(&p.order, n.place)
		}
		n.kickAt = at
		return false
	}
	n.kickAt = at
	if planned {
		heap.Fix(&p.order, n.place)
	} else {
		heap.Push(&p.order, n)
	}
	return at.Before(p.wakeAt)
}

// due returns the neighbour with the earliest request, if that is due, and nil otherwise.
func (p *plan) due(now time.Time) *neighbour {
	if len(p.order) == 0 || now.Before(p.order[0].kickAt) {
		return nil
	}
	return p.order[0]
}

// sleep sets the time when the keeper wakes up: that of the next request, and at the latest the given one.
func (p *plan) sleep(latest time.Time) time.Time {
	p.wakeAt = latest
	if len(p.order) > 0 && p.order[0].kickAt.Before(latest) {
		p.wakeAt = p.order[0].kickAt
	}
	return p.wakeAt
}

// byKickAt implements heap.Interface.
type byKickAt []*neighbour

func (b byKickAt) Len() int           { return len(b) }
func (b byKickAt) Less(i, j int) bool { return b[i].kickAt.Before(b[j].kickAt) }

func (b byKickAt) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].place, b[j].place = i, j
}

func (b *byKickAt) Push(x any) {
	n := x.(*neighbour)
	n.place = len(*b)
	*b = append(*b, n)
}

func (b *byKickAt) Pop() any {
	last := len(*b) - 1
	n := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return n
}
