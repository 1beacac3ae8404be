package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// remoteMemory returns the n bytes at address addr of the memory that a remote key names. It reports false if the
// zone, the rights or the bounds of the region or window, or the rights of the peer, do not allow the access. The caller
// may use the memory until its next call of remoteMemory or allowFaults.
func (c *Conn) remoteMemory(key uint32, addr uint64, n uint32, need Rights) ([]byte, bool) {
	if need&^c.peerRights != 0 {
		c.eng.stats.AccessDenied++
		return nil, false
	}
	r := c.recv.target.region
	if r == nil || r.remote != key || r.dead.Load() {
		if r = c.findTarget(key); r == nil {
			c.eng.useWindow(key)
			b, err := c.recv.target.binding.findMemory(c, key, addr, uint64(n), need)
			if err != nil {
				c.eng.endWindowUse()
			}
			return b, err == nil
		}
	}
	if r.zone != c.zone.Load() || r.rights&need != need {
		return nil, false
	}
	return r.slice(addr, n)
}

// recvWrite places a piece of an RDMA write. It stores the last word atomically, because consumers poll on that word.
func (c *Conn) recvWrite(ch *proto.Chunk, p *cursor) proto.Reason {
	if ch.Len == 0 {
		return proto.ReasonNone
	}
	dst, ok := c.remoteMemory(ch.Key, ch.Addr, uint32(ch.Len), RemoteWrite)
	if !ok {
		return proto.ReasonAccess
	}
	c.eng.stats.RxBytes += uint64(ch.Len)
	if ch.Flags&proto.Last == 0 {
		p.copy(dst)
		return proto.ReasonNone
	}
	body, word := splitLastWord(dst)
	if len(body) > 0 {
		p.copy(body)
	}
	if len(word) > 0 {
		var b [8]byte
		p.copy(b[:len(word)])
		storeWord(word, &b)
	}
	return proto.ReasonNone
}

// readJob is an RDMA read of the peer, which this side serves, or an atomic of the peer, which it has executed.
type readJob struct {
	addr    uint64
	oldWord uint64 // atomic: old value of the word, which is the response
	key     uint32
	size    uint32
	num     seq.Num
	atomic  bool
}

// responder serves the peer's RDMA reads and atomics in order. It keeps a job until the response is acknowledged.
type responder struct {
	jobs     []readJob
	mask     uint32
	limit    int
	tail     seq.Num  // number of jobs received
	nextPos  position // next byte to send
	ackedPos position // position up to which the peer has acknowledged
}

func (r *responder) init(limit int) {
	size := 1
	for size < limit {
		size *= 2
	}
	*r = responder{jobs: make([]readJob, size), mask: uint32(size - 1), limit: limit}
}

func (r *responder) pending() bool { return r.nextPos.Op != r.tail }

func (r *responder) at(n seq.Num) *readJob { return &r.jobs[uint32(n)&r.mask] }

// recvReadReq queues an RDMA read of the peer. The memory is looked up again for each piece of the response, because
// the region may be unregistered meanwhile.
func (c *Conn) recvReadReq(ch *proto.Chunk) proto.Reason {
	if r := &c.resp; ch.Len != 0 || ch.Size > maxOperation || r.tail.Sub(r.ackedPos.Op) >= r.limit {
		return proto.ReasonProtocol
	}
	if _, ok := c.remoteMemory(ch.Key, ch.Addr, ch.Size, RemoteRead); !ok && ch.Size > 0 {
		return proto.ReasonAccess
	}
	*c.resp.at(c.resp.tail) = readJob{addr: ch.Addr, key: ch.Key, size: ch.Size, num: ch.Num}
	c.resp.tail++
	return proto.ReasonNone
}

// recvReadResp places a piece of the response to an RDMA read.
func (c *Conn) recvReadResp(ch *proto.Chunk, p *cursor) proto.Reason {
	done := seq.Num(c.sq.doneCount.Load())
	if ch.Num.Less(done) || !ch.Num.Less(c.sq.nextPos.Op) {
		return proto.ReasonProtocol
	}
	w := c.sq.at(ch.Num)
	if w.op != OpRead || w.executed || ch.Off != w.arrivedBytes || uint32(ch.Len) > w.length-w.arrivedBytes {
		return proto.ReasonProtocol
	}
	if !c.placeRead(ch, w, p) {
		c.failRequest(ch.Num, StatusLocalProtection)
		return proto.ReasonLocal
	}
	w.arrivedBytes += uint32(ch.Len)
	if ch.Len > 0 {
		c.readAt = c.eng.now
	}
	if ch.Flags&proto.Last == 0 {
		return proto.ReasonNone
	}
	if w.arrivedBytes != w.length {
		return proto.ReasonProtocol
	}
	w.executed = true
	c.readsOut--
	c.completeRequests()
	return proto.ReasonNone
}
