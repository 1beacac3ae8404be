package wire

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// number sets every number in v to a different value.
func number(v reflect.Value, n *uint64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			number(v.Field(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			number(v.Index(i), n)
		}
	default:
		*n++
		v.SetUint(*n)
	}
}

func TestStatsAdd(t *testing.T) {
	var one, n = Stats{}, uint64(0)
	number(reflect.ValueOf(&one).Elem(), &n)
	sum, want := one, Stats{}
	sum.Add(one)
	var twice func(a, b reflect.Value)
	twice = func(a, b reflect.Value) {
		switch a.Kind() {
		case reflect.Struct:
			for i := range a.NumField() {
				twice(a.Field(i), b.Field(i))
			}
		case reflect.Array:
			for i := range a.Len() {
				twice(a.Index(i), b.Index(i))
			}
		default:
			b.SetUint(2 * a.Uint())
		}
	}
	twice(reflect.ValueOf(one), reflect.ValueOf(&want).Elem())
	if sum != want {
		t.Errorf("a field was not added:\n got %+v\nwant %+v", sum, want)
	}
	if n < 2*histogramBuckets {
		t.Errorf("%d numbers in Stats", n)
	}
}

func TestHistogramBuckets(t *testing.T) {
	var h Histogram
	for i := range histogramBuckets - 1 {
		bound := h.Bound(i)
		if below, at := bucketOf(uint64(bound)-1), bucketOf(uint64(bound)); below != i || at != i+1 {
			t.Errorf("bound %v: %d ns less is in bucket %d, itself in %d; want %d and %d", bound, 1, below, at, i, i+1)
		}
	}
	for i, want := range map[int]time.Duration{-100: 0, -1: 0, histogramBuckets - 1: math.MaxInt64, 1000: math.MaxInt64} {
		if got := h.Bound(i); got != want {
			t.Errorf("bound of bucket %d is %v, want %v", i, got, want)
		}
	}
	if got := bucketOf(1<<64 - 1); got != histogramBuckets-1 {
		t.Errorf("the longest time is in bucket %d", got)
	}
	h.observe(3*time.Microsecond, 2)
	h.observe(0, 1)
	if h.Buckets[0] != 1 || h.Buckets[bucketOf(3000)] != 2 || h.Sum != 6000 {
		t.Errorf("got %+v", h)
	}
}

// Each retransmission must be counted once, under its cause. The histograms must match the network.
func TestRetransmitCauses(t *testing.T) {
	var all Stats
	for seed := range uint64(8) {
		w := newWorld(t, simlink.Config{Seed: seed + 1, Delay: 20 * time.Microsecond, Loss: 0.1, Reorder: 0.05, MTU: 1472, FrameSize: 2048}, 2)
		a, b := w.nodes[0], w.nodes[1]
		cfg := plain
		cfg.NoCredit = true
		ca, cb := w.pair(cfg)
		src, dst := a.memory(60000), b.memory(60000)
		w.run(5 * time.Millisecond) // time for the search for the path MTU
		a.post(ca, ca.PostSend(src.seg(0, 100), 0, 0))
		w.run(10 * time.Millisecond)
		b.postRecv(cb, dst.seg(0, 100), 2)
		w.run(time.Millisecond)
		w.net.SetMTU(a.addr, b.addr, 1250)
		a.post(ca, ca.PostWrite(src.seg(0, 60000), 1, dst.at(0), 0))
		w.until("completion", 10*time.Second, func() bool { return a.request.Len() == 2 })
		st := a.eng.Stats()
		if st.Latency.Sum < uint64(2*40*time.Microsecond) {
			t.Errorf("seed %d: two requests took %d ns over a network of 20 µs", seed, st.Latency.Sum)
		}
		all.Add(st)
		all.Add(b.eng.Stats())
	}
	var sum uint64
	for cause, n := range all.RetransmitsBy {
		sum += n
		if n == 0 && Cause(cause) != CauseEvicted { // needs a peer without free frames
			t.Errorf("nothing was sent again because of %v", Cause(cause))
		}
	}
	if sum != all.Retransmits {
		t.Errorf("%d packets sent again, by cause %v", all.Retransmits, all.RetransmitsBy)
	}
	if all.NotReadySent == 0 || all.NotReadyReceived == 0 || all.EmptyPolls == 0 || all.EmptyPolls >= all.Polls {
		t.Errorf("got %+v", all)
	}
	if got := total(&all.Latency); got != all.TxRequests {
		t.Errorf("%d latencies of %d requests", got, all.TxRequests)
	}
	if got := total(&all.RoundTrip); got == 0 || all.RoundTrip.Sum < got*uint64(39*time.Microsecond) {
		t.Errorf("%d round trips took %d ns over a network of 20 µs", got, all.RoundTrip.Sum)
	}
}

func total(h *Histogram) (n uint64) {
	for _, b := range h.Buckets {
		n += b
	}
	return n
}

func TestInspect(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	const pairs = inspectSlots + 10
	var ca *Conn
	for range pairs {
		ca, _ = w.pair(plain)
	}
	a.post(ca, ca.PostSend(a.memory(8).seg(0, 8), 1, 0)) // finds no receive
	w.run(time.Second)
	now := Time(w.net.Now())
	rows, next := a.eng.Inspect(now, 0, nil)
	if len(rows) != inspectSlots || next != inspectSlots {
		t.Fatalf("first part: %d rows, next %d", len(rows), next)
	}
	if rows, next = a.eng.Inspect(now, next, rows); len(rows) != pairs || next >= 0 {
		t.Fatalf("all: %d rows, next %d", len(rows), next)
	}
	last := rows[pairs-1]
	if last.State != Established || last.Peer != b.addr.Addr() || last.Qual != service || last.Passive ||
		last.Requests != 1 || !last.Starved || last.Credits != 0 || last.RTT < 9*time.Microsecond || last.Age < time.Second {
		t.Errorf("got %+v", last)
	}
	theirs, _ := b.eng.Inspect(now, 0, nil)
	if theirs[0].State != Established || !theirs[0].Passive || theirs[0].Qual != service || theirs[0].Peer != a.addr.Addr() {
		t.Errorf("got %+v", theirs[0])
	}
}

// A reason from a peer must be converted to a reason with a name, whatever byte it is.
func TestBreakReasonOfPeer(t *testing.T) {
	known := map[BreakReason]bool{BreakNoListener: true, BreakBacklog: true, BreakResources: true, BreakAccess: true, BreakLength: true, BreakNotReady: true, BreakProtocol: true, BreakTimeout: true, BreakLocal: true,
		BreakMemory: true, BreakUnfinished: true, BreakVersion: true, BreakOption: true, BreakPort: true, BreakSecure: true, BreakKeyLimit: true, BreakHandshake: true, BreakDenied: true, BreakEnded: true, BreakNoHost: true, BreakNoNet: true, BreakProhibited: true}
	for b := range 256 {
		want := BreakUnknown
		if known[BreakReason(b)] {
			want = BreakReason(b)
		}
		got := givenByPeer(proto.Reason(b))
		if text := got.String(); got != want|BreakByPeer || text != "closed by the peer: "+want.String() || want.String() == "" {
			t.Errorf("byte %d: reason %#x, %q", b, uint8(got), text)
		}
		_ = BreakReason(b).String() // any value must have a text
	}
}

func TestBreakReason(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	a.post(ca, ca.PostWrite(a.memory(8).seg(0, 8), 1, Remote{Key: 12345}, 0))
	w.until("both to hear", time.Second, func() bool { return a.connect.Len() == 1 && b.connect.Len() == 1 })
	for n, want := range map[*node]string{
		a: "closed by the peer: remote access refused: key, range, right or zone is wrong",
		b: "remote access refused: key, range, right or zone is wrong",
	} {
		var c Completion
		if n.connect.Pop(&c); c.Kind != KindBroken || BreakReason(c.Data).String() != want {
			t.Errorf("got kind %d, reason %q, want %q", c.Kind, BreakReason(c.Data), want)
		}
	}
}
