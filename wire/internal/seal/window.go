package seal

// WindowSize is the size of the replay window (RFC 4303 §3.4.3). The window ends with the highest opened counter. For
// each counter in it, the receiver knows whether it has opened a packet with that counter. Lower counters are refused.
const WindowSize = 1024

const wordBits = 64

// window is a replay window. The zero value is that of a receiver that has opened nothing.
type window struct {
	next uint64 // highest opened counter plus 1
	bits [WindowSize / wordBits]uint64
}

func (w *window) bit(counter uint64) (word *uint64, mask uint64) {
	return &w.bits[counter/wordBits%uint64(len(w.bits))], 1 << (counter % wordBits)
}

// old reports whether a counter is below the window.
func (w *window) old(counter uint64) bool {
	return counter < w.next && w.next-counter > WindowSize
}

// opened reports whether a packet with this counter was opened. The counter must not be below the window.
func (w *window) opened(counter uint64) bool {
	word, mask := w.bit(counter)
	return counter < w.next && *word&mask != 0
}

// mark records that a packet was opened, and moves the window up to it.
func (w *window) mark(counter uint64) {
	if counter >= w.next {
		w.clear(counter)
		w.next = counter + 1
	}
	word, mask := w.bit(counter)
	*word |= mask
}

// clear frees the bits of the counters from next to last.
func (w *window) clear(last uint64) {
	if last-w.next >= WindowSize {
		w.bits = [len(w.bits)]uint64{}
		return
	}
	for c := w.next; c <= last; c++ {
		word, mask := w.bit(c)
		*word &^= mask
	}
}

// reconstruct returns the counter with the given lower half that is nearest to next.
func (w *window) reconstruct(low uint32) uint64 {
	d := int64(int32(low - uint32(w.next)))
	c := w.next + uint64(d)
	if d < 0 && c > w.next { // below 0
		c += 1 << 32
	}
	return c
}
