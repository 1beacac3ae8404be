package dat

import (
	"encoding/binary"
	"testing"
)

// extension is one of the posts of the InfiniBand extensions.
type extension struct {
	dto  DTO
	ext  ExtType
	post func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error
}

var (
	writeImm = extension{DTORDMAWriteImm, ExtRDMAWriteImm,
		func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error {
			return x.PostRDMAWriteImm([]LMRTriplet{local}, cookie, to, 0xcafe, f)
		}}
	fetchAdd = extension{DTOFetchAdd, ExtFetchAdd,
		func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error {
			return x.PostFetchAdd(1, local, cookie, to, f)
		}}
	cmpSwap = extension{DTOCmpSwap, ExtCmpSwap,
		func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error {
			return x.PostCmpSwap(0, 1, local, cookie, to, f)
		}}
)

// easy posts an operation of 8 bytes on valid memory of the peer.
func (e extension) easy(x *point, cookie uint64, to *word, f CompletionFlags) error {
	return e.post(x, x.lmr.Segment(0, 8), cookie, to.at(), f)
}

// word is an aligned 64-bit word for atomics of peers, with other memory beside it.
type word struct {
	host *host
	mem  []byte
	lmr  *LMR
}

func (h *host) word(priv MemPriv) *word {
	h.t.Helper()
	mem := make([]byte, 24)
	return &word{h, mem, must(h.ia.CreateLMR(mem, h.pz, priv))(h.t)}
}

const allOfMemory = MemAll | MemRemoteAtomic

func (w *word) at() RMRTriplet { return w.lmr.Remote(8, 8) }

func number(p *point, off int) any { return binary.NativeEndian.Uint64(p.mem[off:]) }

// value returns the word. It orders the read before later accesses of peers.
func (w *word) value() uint64 {
	defer w.host.ia.a.barrier()
	return binary.NativeEndian.Uint64(w.mem[8:])
}

// set stores a value in the word. It orders the write like value.
func (w *word) set(v uint64) {
	binary.NativeEndian.PutUint64(w.mem[8:], v)
	w.host.ia.a.barrier()
}

// awaitExtended waits for the completion of an extended operation and compares the fields of the event.
func (p *point) awaitExtended(e *EVD, cookie uint64, x extension, want DTOStatus, length int) Event {
	t := p.host.t
	t.Helper()
	ev := await(t, e, EventIBDTO)
	if ev.Cookie != cookie || ev.Op != x.dto || ev.Ext != x.ext || ev.Status != want || ev.EP != p.EP || ev.EVD != e {
		t.Errorf("completion: got %d, operation %d, kind %d, %v, want %d, operation %d, kind %d, %v",
			ev.Cookie, ev.Op, ev.Ext, ev.Status, cookie, x.dto, x.ext, want)
	}
	if want == DTOSuccess && ev.Length != uint64(length) {
		t.Errorf("completion %d: %d bytes, want %d", cookie, ev.Length, length)
	}
	p.memoryBarrier()
	if p.peer != nil {
		p.peer.memoryBarrier()
	}
	return ev
}

// received waits for the completion of a receive that a write with immediate data has consumed.
func (p *point) received(cookie uint64, imm uint32, length int) {
	p.host.t.Helper()
	ev := p.awaitExtended(p.recv, cookie, extension{dto: DTOReceiveImm, ext: ExtRDMAWriteImmData}, DTOSuccess, length)
	if ev.Imm != imm {
		p.host.t.Errorf("immediate data: got %#x, want %#x", ev.Imm, imm)
	}
}

// equal fails the test if two values differ.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// broke waits at both sides until the connection has broken.
func broke(x, y *point) {
	x.host.t.Helper()
	x.expect(EventBroken)
	y.expect(EventBroken)
	equal(x.host.t, "state here", x.State(), EPDisconnected)
	equal(x.host.t, "state at the peer", y.State(), EPDisconnected)
}
