package xdp

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

func TestWait(t *testing.T) {
	p := newPair(t, pairOptions{})
	a, b := p.ends[lab.A], p.ends[lab.B]
	to := p.path(t, lab.A)
	in := make([]link.Buf, 32)
	quiet := func() { // waits until no other packets of the new interface arrive
		for b.Wait(50 * time.Millisecond); b.Recv(in) > 0; b.Wait(50 * time.Millisecond) {
		}
	}
	returns := func(what string, d time.Duration, within time.Duration) {
		t.Helper()
		start := time.Now()
		b.Wait(d)
		if took := time.Since(start); took > within {
			t.Errorf("%s: Wait took %v", what, took)
		}
	}
	quiet()
	returns("a limit", 10*time.Millisecond, time.Second)
	returns("no time", 0, time.Second)
	b.Wake()
	returns("a Wake before", -1, time.Second)
	for slept := false; !slept; quiet() { // again, if another packet ended the Wait
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Wait(-1)
		}()
		for over := false; !over && !slept; slept = b.sleepers.Load() > 0 {
			select {
			case <-done:
				over = true
			case <-time.After(time.Millisecond):
			}
		}
		b.Wake()
		<-done
	}
	if b.Stats().Wakeups == 0 {
		t.Error("no wakeup counted")
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		a.Send(message(t, a, to, 64, 1))
	}()
	returns("a packet", 10*time.Second, patience)
	<-sent
	if b.Recv(in) != 1 {
		b.Wait(time.Second)
	}
	start, n := time.Now(), 0
	for time.Since(start) < 100*time.Millisecond {
		b.Wait(time.Second)
		b.Free(in[:b.Recv(in)])
		if n++; n > 50 {
			t.Fatal("Wait spins with nothing to receive")
		}
		if n == 3 {
			time.AfterFunc(100*time.Millisecond, b.Wake)
		}
	}
}

// A socket whose interface is gone uses no processor time: Wait sleeps and Send drops.
func TestInterfaceGone(t *testing.T) {
	p := newPair(t, pairOptions{})
	a := p.ends[lab.A]
	to := p.path(t, lab.A)
	a.Send(message(t, a, to, 64, 1))
	if err := p.lab.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(5000) {
		a.Send(message(t, a, to, 64, i))
	}
	if st := a.Stats(); st.TxDropped < 4000 {
		t.Errorf("%+v", st)
	}
	in := make([]link.Buf, 32)
	for n := 1; n > 0; a.Free(in[:n]) {
		n = a.Recv(in)
	}
	before := a.counters.wakeups.Load()
	for range 20 {
		a.Wait(5 * time.Millisecond)
	}
	if n := a.counters.wakeups.Load() - before; n > 25 {
		t.Errorf("%d wakeups", n)
	}
	const limit = 50 * time.Millisecond
	var slept time.Duration
	for range 20 { // several times, because a signal to the thread ends a Wait early
		start := time.Now()
		a.Wait(limit)
		if slept = time.Since(start); slept >= limit {
			break
		}
	}
	if slept < limit {
		t.Error("Wait returns at once for ever")
	}
	conserve(t, a)
}

func TestRawFrames(t *testing.T) {
	p := newPair(t, pairOptions{mtu: 9000})
	a, b := p.ends[lab.A], p.ends[lab.B]
	bufs := make([]link.Buf, 3)
	if a.Alloc(bufs) != 3 {
		t.Fatal("no frames")
	}
	copy(bufs[0].Data, rawHeader[:])
	bufs[0].Data, bufs[1].Data, bufs[2].Data = bufs[0].Data[:4000], bufs[1].Data[:4000], bufs[2].Data[:100]
	bufs[0].Flags, bufs[1].Flags = link.More, link.More
	bufs[2].Data[99] = 77
	a.SendFrames(bufs)
	in := make([]link.Buf, 32)
	total := 0
	for deadline := time.Now().Add(patience); total != 8100 && time.Now().Before(deadline); {
		n := b.RecvFrames(in)
		for i := range in[:n] {
			if be.Uint16(in[0].Data[ethType:]) == 0x88b5 || total > 0 {
				total += len(in[i].Data)
			}
		}
		if total == 8100 && in[n-1].Data[len(in[n-1].Data)-1] != 77 {
			t.Error("the last byte differs")
		}
		b.Free(in[:n])
	}
	if total != 8100 {
		t.Errorf("%d bytes arrived: %+v", total, b.Stats())
	}
	settled(t, a)
	if a.InFlight() != 0 {
		t.Errorf("%d in flight", a.InFlight())
	}
}
