// Package wheel is a hierarchical timer wheel over a clock that is passed in.
//
// A timer is an index that the owner chose, so a wheel holds no pointer and allocates only when an
// index grows. One owner drives a wheel; it is not safe for concurrent use.
package wheel

import "math/bits"

const (
	slotBits = 6
	slots    = 1 << slotBits
	levels   = 5
	none     = -1
	// tickBits gives a tick of 2^14 ns = 16.4 µs; five levels of 64 slots reach 2^44 ns, 4.9 hours.
	tickBits = 14
	reach    = (slots - 1) << ((levels - 1) * slotBits) // in ticks, 4.8 hours
)

// Tick is the resolution of the wheel in nanoseconds.
const Tick = 1 << tickBits

type node struct {
	at         int64 // in ticks
	next, prev int32
	list       int32 // level*slots+slot, or none
}

// Wheel keeps one deadline for each timer index.
type Wheel struct {
	now   int64 // in ticks; everything before it has fired
	occ   [levels]uint64
	heads [levels * slots]int32
	nodes []node
	armed int
}

// New makes a wheel whose clock stands at now (nanoseconds).
func New(now int64) *Wheel {
	w := &Wheel{now: now >> tickBits}
	for i := range w.heads {
		w.heads[i] = none
	}
	return w
}

// Len is the number of armed timers.
func (w *Wheel) Len() int { return w.armed }

// Set arms timer id for the time at (nanoseconds), instead of what it was armed for. It fires at
// the first Advance whose now is at or after that time rounded up to a tick, and never sooner than
// the next tick. A time further away than the wheel reaches fires when its reach ends.
func (w *Wheel) Set(id int32, at int64) {
	for int(id) >= len(w.nodes) {
		w.nodes = append(w.nodes, node{list: none})
	}
	w.Stop(id)
	w.insert(id, min(max((at+Tick-1)>>tickBits, w.now+1), w.now+reach))
}

// Stop disarms timer id; it does nothing to a timer that is not armed.
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

// insert files id under the level at which its time first differs from now.
func (w *Wheel) insert(id int32, at int64) {
	level := 0
	if diff := uint64(at ^ w.now); diff != 0 {
		level = min((bits.Len64(diff)-1)/slotBits, levels-1)
	}
	slot := int32(at >> (level * slotBits) & (slots - 1))
	list := int32(level)*slots + slot
	head := w.heads[list]
	w.nodes[id] = node{at: at, next: head, prev: none, list: list}
	if head != none {
		w.nodes[head].prev = id
	}
	w.heads[list] = id
	w.occ[level] |= 1 << slot
	w.armed++
}

// Next is the time in nanoseconds before which no timer fires, and false when none is armed. It
// may be early by up to the width of the slot that the next timer is filed in.
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

// Advance moves the clock to now (nanoseconds) and calls fire for every timer that is due, disarmed
// already; fire may set and stop any timer. After most timers it stops: the clock stays behind, Next tells so, and
// the next call goes on.
func (w *Wheel) Advance(now int64, most int, fire func(id int32)) {
	to := now >> tickBits
	for w.armed > 0 && w.now <= to {
		if most = w.fireSlot(most, fire); most == 0 || w.now == to {
			return
		}
		next := min(w.nextTick(), to)
		w.step(next)
	}
	w.now = max(w.now, to)
}

// fireSlot fires what is filed under the current tick, most timers at most, and returns how many more may fire.
func (w *Wheel) fireSlot(most int, fire func(id int32)) int {
	list := int32(w.now & (slots - 1))
	for id := w.heads[list]; id != none && most > 0; id = w.heads[list] {
		w.Stop(id)
		fire(id)
		most--
	}
	return most
}

// nextTick is the next tick at which there is something to fire or to move down.
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

// step moves the clock to tick and files anew what higher levels hold for the slots it enters.
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
			at := w.nodes[id].at
			w.Stop(id)
			w.insert(id, max(at, w.now))
			id = next
		}
	}
}
