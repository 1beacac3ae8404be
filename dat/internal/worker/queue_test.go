package worker

import (
	"net/netip"
	"testing"

	"github.com/datxdp/datxdp/wire"
)

func jobOf(addr string) *wire.Job { return &wire.Job{From: netip.MustParseAddr(addr)} }

// fill pushes jobs of an address until the queue refuses one, and returns their number.
func (q *queue) fill(addr string) (n int) {
	for q.push(jobOf(addr)) {
		n++
	}
	return n
}

// TestShares: no address and no network takes all places, and the queue is bounded.
func TestShares(t *testing.T) {
	var q queue
	if n := q.fill("10.0.0.1"); n < 20 || n > maxStrangers/levels[2].share {
		t.Errorf("an address has %d places", n)
	}
	for i := range 256 { // every address of the network
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		q.fill(a.String())
	}
	if free := maxStrangers - q.jobs(); free < 40 {
		t.Errorf("a network leaves %d places", free)
	}
	if n := q.fill("fd00::1"); n == 0 {
		t.Error("a network has no place")
	}
	for i := range 1 << 16 { // each network of a site
		a := netip.MustParseAddr("fd00:0:1::").As16()
		a[6], a[7] = byte(i>>8), byte(i)
		q.push(&wire.Job{From: netip.AddrFrom16(a)})
	}
	if free := maxStrangers - q.jobs(); free < 20 {
		t.Errorf("a site leaves %d places", free)
	}
	if n := q.fill("fd00:0:2::1"); n == 0 {
		t.Error("another site has no place")
	}
	for i := range 1 << 16 { // an address of each of many sites
		q.push(&wire.Job{From: netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1})})
	}
	if q.jobs() > maxStrangers {
		t.Errorf("%d jobs wait", q.jobs())
	}
	for q.jobs() > 0 {
		if q.pop() == nil {
			t.Fatal("a job is missing")
		}
	}
	if q.pop() != nil || len(q.root.groups) != 0 {
		t.Errorf("%d networks are left", len(q.root.groups))
	}
}

// TestTurns: sites take turns, within a site networks, within a network addresses, and the jobs of an address keep their
// order.
func TestTurns(t *testing.T) {
	var q queue
	names := map[*wire.Job]string{}
	for _, x := range []struct{ addr, name string }{
		{"10.0.0.1", "a1"}, {"10.0.0.1", "a2"}, {"10.0.0.1", "a3"}, {"10.0.0.2", "b1"}, {"10.0.0.2", "b2"}, {"10.0.9.1", "c1"}, {"10.0.9.1", "c2"},
		{"10.1.0.1", "d1"}, {"10.1.0.1", "d2"},
	} {
		j := jobOf(x.addr)
		if names[j] = x.name; !q.push(j) {
			t.Fatal("no place")
		}
	}
	for _, want := range []string{"a1", "d1", "c1", "d2", "b1", "c2", "a2", "b2", "a3"} {
		if got := names[q.pop()]; got != want {
			t.Fatalf("the turn of %q, want %q", got, want)
		}
	}
}

// TestClosed: a closed worker takes no job, and its goroutine has ended.
func TestClosed(t *testing.T) {
	w := New()
	w.Close()
	select {
	case <-w.done:
	default:
		t.Error("the goroutine runs")
	}
	if w.Submit(jobOf("10.0.0.1")) || w.Submit(&wire.Job{}) {
		t.Error("a closed worker takes a job")
	}
}

// TestRest: during a rest, jobs of strangers wait and do not wake the worker. Other jobs do.
func TestRest(t *testing.T) {
	w := &Worker{wake: make(chan struct{}, 1), resting: true}
	stranger, own := jobOf("10.0.0.1"), &wire.Job{}
	if !w.Submit(stranger) || len(w.wake) != 0 {
		t.Error("a job of a stranger was refused, or woke the worker")
	}
	if !w.Submit(own) || len(w.wake) != 1 {
		t.Error("a job of this host was refused, or did not wake the worker")
	}
	for i, want := range []*wire.Job{own, nil} {
		if j, _ := w.next(); j != want {
			t.Errorf("job %d of the rest is %p, want %p", i, j, want)
		}
	}
	if w.setResting(false); w.strangers.jobs() != 1 {
		t.Errorf("%d jobs wait", w.strangers.jobs())
	}
	if j, _ := w.next(); j != stranger {
		t.Errorf("after the rest comes %p, want %p", j, stranger)
	}
}
