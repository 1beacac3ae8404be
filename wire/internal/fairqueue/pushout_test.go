package fairqueue

import (
	"net/netip"
	"testing"
	"time"
)

// pushed returns the flow whose message has to end now, or 0. All messages have had their bytes at MinRate since the
// last call.
func (b *bench) pushed() (id int) {
	for i, f := range b.flows {
		if !f.holds {
			continue
		}
		b.update(f, 0, b.now)
		f.bucket.left, f.bucket.lowest = b.timeout, b.timeout
		if b.TimeLeft(f, 0, b.now) <= 0 {
			if id != 0 {
				b.t.Fatalf("the messages of flows %d and %d have to end", id, i)
			}
			id = i
		}
	}
	return id
}

// firstPushed returns the flow whose message has to end first, and the time until then. It gives up after 5 s.
func (b *bench) firstPushed() (id int, after time.Duration) {
	start := b.now
	for id == 0 && b.now.Sub(start) < 5*time.Second {
		b.now = b.now.Add(time.Millisecond)
		id = b.pushed()
	}
	return id, b.now.Sub(start)
}

// Messages of several minutes hold all buffers. One of them must end for a peer with a claim: the oldest one of those
// that hold many buffers. For other peers none must end.
func TestPushOut(t *testing.T) {
	for _, tc := range []struct {
		name    string
		holders []string // addresses of the flows 1, 2, … that hold a buffer
		old     bool     // they have held them for long
		waiter  string
		slow    string // address of a slow peer
		want    int
		after   time.Duration
	}{
		{"another network", []string{"10.0.0.1", "10.0.0.2"}, true, "10.0.1.1", "", 1, PushOutWait},
		{"a neighbour", []string{"10.0.0.1", "10.0.0.2"}, true, "10.0.0.3", "", 1, PushOutWait},
		{"new messages", []string{"10.0.0.1", "10.0.0.2"}, false, "10.0.1.1", "", 1, ProgressTimeout},
		{"a network that holds few", []string{"10.0.1.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"}, true, "10.0.2.1", "", 2, PushOutWait},
		{"a peer that holds few", []string{"10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.2"}, true, "10.0.0.3", "", 2, PushOutWait},
		{"a peer that holds one", []string{"10.0.0.1", "10.0.0.2"}, true, "10.0.0.2", "", 0, 0},
		{"a slow peer", []string{"10.0.0.1", "10.0.0.2"}, true, "10.0.1.1", "10.0.1.1", 0, 0},
		{"a slow network", []string{"10.0.0.1", "10.0.0.2"}, true, "10.0.1.1", "10.0.1.2", 1, PushOutWait},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, 0)
			b.timeout = ProgressTimeout
			if tc.slow != "" {
				b.add(100, tc.slow)
				b.Put()
				b.begin(100)
				b.flows[100].pushedOut = true
				b.release(b.flows[100])
				b.free--
			}
			for i, addr := range tc.holders {
				b.add(i+1, addr)
				b.Put()
				b.Put() // for the thresholds
				if b.begin(i + 1); !b.flows[i+1].holds {
					b.Put()
					b.serve()
					b.free--
				}
				b.free--
				b.now = b.now.Add(time.Millisecond)
			}
			if tc.old {
				b.now = b.now.Add(ProgressTimeout)
			}
			b.add(10, tc.waiter)
			if b.begin(10) {
				t.Fatal("a buffer is free")
			}
			id, after := b.firstPushed()
			if id != tc.want || id != 0 && (after-tc.after).Abs() > 10*time.Millisecond {
				t.Errorf("the message of flow %d has to end after %v, want %d after %v", id, after, tc.want, tc.after)
			}
			b.check()
		})
	}
}

// A peer waits in a network that may hold no further buffer, though one is free. A message of this network must end for
// it, not an older one of another network. Turns of other networks must not put this off.
func TestPushOutInFullNetwork(t *testing.T) {
	b := newBench(t, 18)
	b.timeout = ProgressTimeout
	b.add(1, "10.0.1.1")
	b.add(2, "10.0.2.1")
	b.begin(1)
	for id := 100; b.waiting == 0; id++ {
		b.now = b.now.Add(time.Millisecond)
		b.add(id, netip.AddrFrom4([4]byte{10, 0, 0, byte(id)}).String())
		b.begin(id)
	}
	if b.free == 0 {
		t.Fatal("no buffer is free")
	}
	b.now = b.now.Add(ProgressTimeout)
	for end := b.now.Add(2 * PushOutWait); b.now < end; b.now = b.now.Add(PushOutWait / 5) {
		if id := b.pushed(); id == 100 {
			return
		} else if id != 0 {
			t.Fatalf("the message of flow %d has to end, want 100", id)
		}
		if !b.begin(2) {
			t.Fatal("another network gets no buffer")
		}
		b.finish(2)
	}
	t.Error("no message has to end")
}

// Messages must be pushed out in the order in which they began, one in each PushOutWait, although many peers wait.
func TestPushOutTakesTime(t *testing.T) {
	const buffers = 8
	b := newBench(t, buffers)
	b.timeout = ProgressTimeout
	for id := 1; id <= 3*buffers; id++ {
		b.add(id, netip.AddrFrom4([4]byte{10, 0, 0, byte(id)}).String())
		b.begin(id)
		b.now = b.now.Add(time.Microsecond)
	}
	for want := 1; want <= buffers; want++ {
		id, after := b.firstPushed()
		if id != want || after < PushOutWait {
			t.Errorf("the message of flow %d has to end after %v, want %d after %v", id, after, want, PushOutWait)
		}
		b.finish(id)
		b.check()
	}
}

// The last free buffer must be left for peers that are not slow, unless no message holds a buffer.
func TestLastBuffer(t *testing.T) {
	b := newBench(t, 3)
	b.add(1, "10.0.0.1")
	b.add(2, "10.0.0.1")
	b.begin(1)
	b.flows[1].pushedOut = true
	b.finish(1)
	b.add(3, "10.0.1.1")
	b.begin(3)
	b.add(4, "10.0.2.1")
	b.begin(4)
	if b.free != 1 || b.begin(1) {
		t.Fatalf("%d free, or the slow peer has got the last buffer", b.free)
	}
	b.add(5, "10.0.3.1")
	if !b.begin(5) {
		t.Fatal("a peer that is not slow gets no buffer")
	}
	if b.finish(5) != 0 {
		t.Error("the slow peer has got the last buffer")
	}
	if b.finish(4) != 1 {
		t.Error("the slow peer gets no buffer though another one is left")
	}
	one := newBench(t, 1)
	one.add(1, "10.0.0.1")
	one.begin(1)
	one.flows[1].pushedOut = true
	one.finish(1)
	if !one.begin(1) {
		t.Error("the slow peer does not get the only buffer")
	}
}
