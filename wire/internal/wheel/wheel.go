// Package wheel is a hierarchical timer wheel. It reads no clock: the caller passes the time.
//
// A timer is an index that the caller chooses. So the wheel holds no pointers, and it allocates only for an index that
// is larger than all before. One goroutine at a time may use a wheel.
package wheel

import "math/bits"

const (
	slotBits = 6
	slots    = 1 << slotBits
	levels   = 6
	none     = -1
	// tickBits makes a tick 2^10 ns = 1 µs, since the pacer spaces packets out by microseconds. Six levels of 64 slots reach
	// 2^46 ns, 19 hours.
	tickBits = 10
	reach    = (slots - 1) << ((levels - 1) * slotBits) // longest time to a deadline in ticks: 19 hours
)

// Tick is the resolution of the wheel in nanoseconds.
const Tick = 1 << tickBits

type node struct {
	tick       int64 // deadline in ticks
	next, prev int32
	list       int32 // level*slots+slot, or none
}

// Wheel has one deadline for each timer index.
type Wheel struct {
	now   int64 // in ticks; all earlier timers have fired
	occ   [levels]uint64
	heads [levels * slots]int32
	nodes []node
	armed int
}

// New makes a wheel. now is the current time in nanoseconds.
func New(now int64) *Wheel {
	w := &Wheel{now: now >> tickBits}
	for i := range w.heads {
		w.heads[i] = none
	}
	return w
}

// Len returns the number of armed timers.
func (w *Wheel) Len() int { return w.armed }

// Set arms timer id with a deadline in nanoseconds, which replaces an earlier deadline of the timer. Set rounds the
// deadline up to a tick, and a deadline that has passed becomes the next tick. The timer fires in the first call
// of Advance whose time is not before the deadline. A deadline beyond the reach of the wheel is reduced to the reach.
func (w *Wheel) Set(id int32, deadline int64) {
	for int(id) >= len(w.nodes) {
		w.nodes = append(w.nodes, node{list: none})
	}
	w.Stop(id)
	w.insert(id, min(max((deadline+Tick-1)>>tickBits, w.now+1), w.now+reach))
}

// Stop disarms timer id. If the timer is not armed, Stop does nothing.
func (w *Wheel) Stop(id int32) {
	if int(id) >= len(w.nodes) || w.nodes[id].list == none {
		return
	}
	n := &w.nodes[id]
	if n.prev != none {
		w.nodes[n.prev].next = n.next
	} else if w.heads[n.list] = n.next; n.next == none {
		w.occ[n.list/slots] &^= 1 << (n.list % slots)
	}
	if n.next != none {
		w.nodes[n.next].prev = n.prev
	}
	n.list = none
	w.armed--
}

// insert adds timer id to the list for its deadline, at the highest level at which the deadline differs from now.
func (w *Wheel) insert(id int32, tick int64) {
	level := 0
	if diff := uint64(tick ^ w.now); diff != 0 {
		level = min((bits.Len64(diff)-1)/slotBits, levels-1)
	}
	slot := int32(tick >> (level * slotBits) & (slots - 1))
	list := int32(level)*slots + slot
	head := w.heads[list]
	w.nodes[id] = node{tick: tick, next: head, prev: none, list: list}
	if head != none {
		w.nodes[head].prev = id
	}
	w.heads[list] = id
	w.occ[level] |= 1 << slot
	w.armed++
}

// Next returns a time in nanoseconds before which no timer fires. It reports false if no timer is armed. The time may
// be too early, by at most the width of the wheel slot that the next timer is in.
func (w *Wheel) Next() (int64, bool) {
	for level := range levels {
		shift := level * slotBits
		cur := uint(w.now>>shift) & (slots - 1)
		if ahead := w.occ[level] >> cur; ahead != 0 {
			base := w.now >> shift
			return max((base+int64(bits.TrailingZeros64(ahead)))<<shift, w.now) << tickBits, true
		}
		if level == levels-1 && w.occ[level] != 0 {
			next := int64(slots + bits.TrailingZeros64(w.occ[level])) // in the lap after this one
			return (w.now>>shift&^(slots-1) + next) << shift << tickBits, true
		}
	}
	return 0, false
}

// Advance moves the clock of the wheel to the time now, in nanoseconds. It disarms every timer whose deadline has come,
// and calls the function fire with its index. The function fire may set and stop any timer. One call of Advance fires
// at most limit timers. It returns the part of limit that is left. If more timers are due, Advance stops the clock at
// the tick of these timers. The method Next then returns a time in the past, and the next call of Advance continues.
func (w *Wheel) Advance(now int64, limit int, fire func(id int32)) (left int) {
	to := now >> tickBits
	for w.armed > 0 && w.now <= to {
		if limit = w.fireSlot(limit, fire); limit == 0 || w.now == to {
			return limit
		}
		next := min(w.nextTick(), to)
		w.step(next)
	}
	w.now = max(w.now, to)
	return limit
}

// fireSlot fires at most limit timers of the current tick. It returns how many more may fire.
func (w *Wheel) fireSlot(limit int, fire func(id int32)) int {
	list := int32(w.now & (slots - 1))
	for id := w.heads[list]; id != none && limit > 0; id = w.heads[list] {
		w.Stop(id)
		fire(id)
		limit--
	}
	return limit
}

// nextTick returns the next tick at which a timer fires or moves to a lower level.
func (w *Wheel) nextTick() int64 {
	best := int64(1) << 62
	for level := range levels {
		shift := level * slotBits
		cur := w.now >> shift
		lap := cur &^ (slots - 1)
		idx := uint(cur & (slots - 1))
		if ahead := w.occ[level] &^ (1<<(idx+1) - 1); idx < slots-1 && ahead != 0 {
			best = min(best, (lap+int64(bits.TrailingZeros64(ahead)))<<shift)
		} else if level == levels-1 && w.occ[level] != 0 {
			best = min(best, (lap+slots)<<shift)
		}
	}
	return best
}

// step moves the clock to tick. It moves the timers of the slots that the clock enters to lower levels.
func (w *Wheel) step(tick int64) {
	was := w.now
	w.now = tick
	for level := levels - 1; level > 0; level-- {
		shift := level * slotBits
		if was>>shift == tick>>shift {
			continue
		}
		list := int32(level)*slots + int32(tick>>shift&(slots-1))
		for id := w.heads[list]; id != none; {
			next := w.nodes[id].next
			at := w.nodes[id].tick
			w.Stop(id)
			w.insert(id, max(at, w.now))
			id = next
		}
	}
}
