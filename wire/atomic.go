package wire

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

const (
	// atomicSize is the size in bytes of the word that an atomic changes.
	atomicSize = 8
	// atomicRights are the rights that an atomic needs on its target.
	atomicRights = RemoteAtomic | RemoteRead | RemoteWrite
)

// operands are the arguments of an atomic.
type operands struct {
	value uint64 // to add, or to swap in
	comp  uint64 // compare and swap: expected value
}

// hasResponse reports whether an operation completes with a response from the peer. A request for such an operation
// carries no data. The request counts against the limit of RDMA reads that the peer serves at a time.
func (op Op) hasResponse() bool { return op == OpRead || op == OpFetchAdd || op == OpCmpSwap }

// PostFetchAdd queues an atomic that adds the argument add to the aligned 64-bit word at a remote address. The old
// value of the word is stored in the first 8 bytes of the segment local, in the byte order of this host.
func (c *Conn) PostFetchAdd(add uint64, local Segment, cookie uint64, at Remote, flags WorkFlags) error {
	return c.postAtomic(&work{cookie: cookie, op: OpFetchAdd, flags: flags, key: at.Key, addr: at.Addr},
		operands{value: add}, local)
}

// PostCmpSwap queues an atomic compare-and-swap of the aligned 64-bit word at a remote address. If the word equals the
// argument compare, the argument swap replaces the word. In both cases the old value of the word is stored in the
// segment local, as PostFetchAdd stores it.
func (c *Conn) PostCmpSwap(compare, swap uint64, local Segment, cookie uint64, at Remote, flags WorkFlags) error {
	return c.postAtomic(&work{cookie: cookie, op: OpCmpSwap, flags: flags, key: at.Key, addr: at.Addr},
		operands{value: swap, comp: compare}, local)
}

func (c *Conn) postAtomic(w *work, arg operands, local Segment) error {
	if local.Length < atomicSize {
		return ErrBounds
	}
	local.Length = atomicSize
	segs := [1]Segment{local}
	n, err := c.checkSegments(c.sq.maxSeg.Load(), segs[:], LocalWrite, atomicSize)
	if err != nil {
		return err
	}
	w.length = n
	r := &c.sq
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := r.postedCount.Load(); next-r.doneCount.Load() < r.depth { // else postLocked fails
		r.args[next&r.mask] = arg
	}
	return c.postLocked(w, segs[:])
}

// putAtomicReq appends the chunk of an atomic request.
func (c *Conn) putAtomicReq(p *packet, w *work, num seq.Num) {
	var f proto.ChunkFlags
	if w.op == OpCmpSwap {
		f = proto.Compare
	}
	arg := &c.sq.args[uint32(num)&c.sq.mask]
	proto.PutAtomicReq(p.reserve(proto.AtomicReqSize), f, w.key, w.addr, num, arg.value, arg.comp)
}

// recvAtomicReq executes an atomic of the peer. It executes a request only once, because a packet is consumed only
// once. The connection keeps the response until the peer has acknowledged it, to send the response again if needed.
func (c *Conn) recvAtomicReq(ch *proto.Chunk) proto.Reason {
	r := &c.resp
	if ch.Len != 0 || r.tail.Sub(r.ackedPos.Op) >= r.limit {
		return proto.ReasonProtocol
	}
	b, ok := c.remoteMemory(ch.Key, ch.Addr, atomicSize, atomicRights)
	if !ok {
		return proto.ReasonAccess
	}
	word := atomicWord(b)
	if word == nil {
		return proto.ReasonAccess
	}
	job := readJob{num: ch.Num, atomic: true}
	if ch.Flags&proto.Compare != 0 {
		job.oldWord = compareSwap(word, ch.Comp, ch.Value)
	} else {
		job.oldWord = word.Add(ch.Value) - ch.Value
	}
	*r.at(r.tail) = job
	r.tail++
	return proto.ReasonNone
}

// recvAtomicResp stores the result of an atomic and completes the request.
func (c *Conn) recvAtomicResp(ch *proto.Chunk) proto.Reason {
	if ch.Len != 0 || ch.Num.Less(seq.Num(c.sq.doneCount.Load())) || !ch.Num.Less(c.sq.nextPos.Op) {
		return proto.ReasonProtocol
	}
	w := c.sq.at(ch.Num)
	if w.op != OpFetchAdd && w.op != OpCmpSwap || w.executed {
		return proto.ReasonProtocol
	}
	dst, ok := c.local(&c.sq.segments(ch.Num, w)[0])
	if !ok {
		c.failRequest(ch.Num, StatusLocalProtection)
		return proto.ReasonLocal
	}
	binary.NativeEndian.PutUint64(dst, ch.Value)
	c.readAt = c.eng.now
	w.executed = true
	c.readsOut--
	c.completeRequests()
	return proto.ReasonNone
}

// local returns the memory of a segment. It reports false if the region is gone.
func (c *Conn) local(s *Segment) ([]byte, bool) {
	r := c.host.regions.find(s.Context)
	if r == nil {
		return nil, false
	}
	return r.slice(s.Address, s.Length)
}
