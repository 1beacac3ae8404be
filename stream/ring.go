package stream

import "github.com/datxdp/datxdp/dat"

// Sizes of a ring in bytes. Each growth multiplies the size by at least ringGrowth.
const (
	minRing    = 2 << 10
	maxRing    = 1 << 20
	ringGrowth = 8
)

// ring is registered memory for consecutive bytes of a stream. The byte at stream position p is at index
// (p - base) modulo the size.
type ring struct {
	buf  []byte
	mem  *dat.LMR
	base uint64 // position of the first byte that the ring held
}

// span returns the longest contiguous range of the ring that begins at position p and ends at q or before.
func (r *ring) span(p, q uint64) (offset, n int) {
	offset = int((p - r.base) % uint64(len(r.buf)))
	return offset, int(min(q-p, uint64(len(r.buf)-offset)))
}

// rings hold the bytes of a stream between two positions. To change their size, they get a second ring. All bytes from
// the position second.base on go into the second ring. The first ring is freed when it has no bytes left.
type rings struct {
	first, second ring // first.buf is nil while a send ring is not needed, second.buf without a second ring
}

// growing reports whether there is a second ring.
func (r *rings) growing() bool { return r.second.buf != nil }

// size returns the size of the newest ring.
func (r *rings) size() int {
	if r.growing() {
		return len(r.second.buf)
	}
	return len(r.first.buf)
}

// limit returns the position up to which the rings have room, if all bytes below left have left them.
func (r *rings) limit(left uint64) uint64 {
	if r.growing() {
		return max(left, r.second.base) + uint64(len(r.second.buf))
	}
	return left + uint64(len(r.first.buf))
}

// span returns the ring with the byte at position p, and the longest contiguous range in it that ends at q or before.
func (r *rings) span(p, q uint64) (in *ring, offset, n int) {
	in = &r.first
	switch {
	case r.growing() && p >= r.second.base:
		in = &r.second
	case r.growing():
		q = min(q, r.second.base)
	}
	offset, n = in.span(p, q)
	return in, offset, n
}

// add adds a ring for the bytes from its base on.
func (r *rings) add(next ring) {
	if r.first.buf == nil {
		r.first = next
	} else {
		r.second = next
	}
}

// replace moves the bytes of the second ring, which end at position q, into a larger ring that takes its place. It returns
// the old one, for the caller to free.
func (r *rings) replace(next ring, q uint64) (freed ring) {
	freed = r.second
	next.base = freed.base
	copy(next.buf, freed.buf[:q-freed.base])
	r.second = next
	return freed
}

// retire returns the first ring if all of its bytes are below left, for the caller to free.
func (r *rings) retire(left uint64) (freed ring, ok bool) {
	if !r.growing() || left < r.second.base {
		return ring{}, false
	}
	freed, r.first, r.second = r.first, r.second, ring{}
	return freed, true
}
