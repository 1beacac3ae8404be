package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/simlink"
)

// A peer that switches to a ring which was not announced to it must end the stream. Otherwise the announcement, which is
// still to be sent, would name a ring that is in use already.
func TestSwitchBeforeAnnouncement(t *testing.T) {
	c := &Conn{}
	c.in.first.buf = make([]byte, minRing)
	c.in.announced.buf, c.out.announce = make([]byte, 4*minRing), true
	if err := c.control(control{kind: controlSwitch}); err != errProtocol {
		t.Errorf("switch before the announcement: %v, want %v", err, errProtocol)
	}
	if c.in.announced.buf == nil || c.in.growing() {
		t.Error("the ring is in use")
	}
}

// TestRingsWithoutData: a peer that announces one ring after the other, and gets no data between them, ends its stream
// with the third. After data, it may announce two again: a larger ring, and the first size when it is idle.
func TestRingsWithoutData(t *testing.T) {
	hc := newHostileCase(t)
	x := hc.connect(t, false)
	announce := func() {
		hc.h.control(control{controlRing, remoteRing{hc.h.mem.RMRContext(), hc.h.mem.Address(), minPeerRing}})
	}
	read := func() error { // until the byte, which is sent after the ring, has come
		hc.h.data(1)
		_, err := x.Read(make([]byte, 1))
		return err
	}
	for range 3 {
		for range maxUnusedRings {
			announce()
			check(t, read())
		}
		_, err := x.Write([]byte("x"))
		check(t, err)
	}
	for range maxUnusedRings {
		announce()
		check(t, read())
	}
	announce()
	if _, err := x.Read(make([]byte, 1)); !errors.Is(err, errProtocol) {
		t.Errorf("Read after %d rings: %v, want %v", maxUnusedRings+1, err, errProtocol)
	}
	hc.h.end()
	_ = x.Close()
	hc.left(t)
}

// hostileActs are messages that are wrong always, or in the wrong order, or never.
var hostileActs = []struct {
	name string
	do   func(h *hostile)
}{
	{"ring", func(h *hostile) {
		h.control(control{controlRing, remoteRing{h.mem.RMRContext(), h.mem.Address(), minPeerRing}})
	}},
	{"ring of 4 GiB", func(h *hostile) {
		h.control(control{controlRing, remoteRing{h.mem.RMRContext(), h.mem.Address(), math.MaxUint32}})
	}},
	{"ring at the end of the address space", func(h *hostile) {
		h.control(control{controlRing, remoteRing{h.mem.RMRContext(), math.MaxUint64 - 100, 1000}})
	}},
	{"ring without memory", func(h *hostile) { h.control(control{controlRing, remoteRing{0, 0, minPeerRing}}) }},
	{"small ring", func(h *hostile) { h.control(control{controlRing, remoteRing{h.mem.RMRContext(), h.mem.Address(), 1}}) }},
	{"cut ring", func(h *hostile) { h.send(controlRing, 1, 2, 3) }},
	{"switch", func(h *hostile) { h.control(control{kind: controlSwitch}) }},
	{"long switch", func(h *hostile) { h.send(controlSwitch, 0) }},
	{"end", func(h *hostile) { h.control(control{kind: controlEnd}) }},
	{"unknown message", func(h *hostile) { h.send(77) }},
	{"empty message", func(h *hostile) { h.send() }},
	{"long message", func(h *hostile) { h.send(make([]byte, controlSize+1)...) }},
	{"byte", func(h *hostile) { h.data(1) }},
	{"half a ring", func(h *hostile) { h.data(int(h.ring.size) / 2) }},
	{"full ring", func(h *hostile) { h.data(int(h.ring.size)) }},
	{"data behind the ring", func(h *hostile) { h.write(uint64(h.ring.size), 1, 0) }},
	{"credit of nothing", func(h *hostile) { h.write(0, 0, 0) }},
	{"credit of one message", func(h *hostile) { h.write(0, 0, credit{messages: 1}.immediate()) }},
	{"credit of one byte", func(h *hostile) { h.write(0, 0, credit{consumed: 1}.immediate()) }},
	{"credit of everything", func(h *hostile) { h.write(0, 0, math.MaxUint32) }},
	{"write without a message", func(h *hostile) { h.overwrite() }},
	{"read", func(h *hostile) {
		_ = h.ep.PostRDMARead([]dat.LMRTriplet{h.mem.Segment(hostileRing, 8)}, 0, dat.RMRTriplet{Context: h.ring.context, Address: h.ring.address, Length: 8}, 0)
	}},
	{"invalidate", func(h *hostile) {
		_ = h.ep.PostSendWithInvalidate([]dat.LMRTriplet{h.mem.Segment(hostileRing, 1)}, 0, 0, h.ring.context)
	}},
	{"flood", func(h *hostile) {
		for range hostileDepth {
			h.data(1)
		}
	}},
	{"pause", func(h *hostile) { runtime.Gosched() }},
	{"disconnect", func(h *hostile) { _ = h.ep.Disconnect(dat.CloseGraceful) }},
}

// hostileCase runs a stream beside a peer that does some of hostileActs and then ends the connection.
type hostileCase struct {
	h *hostile
	l *Listener
	d Dialer
}

func newHostileCase(t testing.TB) *hostileCase {
	a, b := sim(t, simlink.Config{})
	lc := ListenConfig{IA: b}
	l, err := lc.Listen(context.Background(), 7000)
	check(t, err)
	t.Cleanup(func() { check(t, l.Close()) })
	return &hostileCase{newHostile(t, a), l, Dialer{IA: b}}
}

// connect makes a stream that has dialed or accepted.
func (hc *hostileCase) connect(t testing.TB, dials bool) *Conn {
	made := make(chan net.Conn, 1)
	go func() {
		var c net.Conn
		var err error
		if dials {
			c, err = hc.d.DialContext(context.Background(), "", "10.0.0.1:7100")
		} else {
			c, err = hc.l.Accept()
		}
		if err != nil {
			t.Error(err)
		}
		made <- c
	}()
	if dials {
		hc.h.accept()
	} else {
		hc.h.dial(hc.l.addr)
	}
	c := <-made
	if c == nil {
		t.FailNow()
	}
	return c.(*Conn)
}

// run returns the errors with which Read and Write have ended.
func (hc *hostileCase) run(t testing.TB, dials bool, acts []byte) (read, written error) {
	c := hc.connect(t, dials)
	var calls sync.WaitGroup
	calls.Go(func() { _, read = io.Copy(io.Discard, onlyReader{c}) })
	calls.Go(func() {
		for p := make([]byte, 700); written == nil; {
			_, written = c.Write(p)
		}
	})
	for _, act := range acts {
		hostileActs[act].do(hc.h)
	}
	hc.h.end()
	calls.Wait()
	c.mu.Lock()
	if sizes := len(c.in.first.buf) + len(c.in.second.buf) + len(c.in.announced.buf); sizes > 3*maxRing {
		t.Errorf("receive rings of %d bytes", sizes)
	}
	c.mu.Unlock()
	_ = c.Close()
	return read, written
}

// isClear reports whether a user of a stream can tell what has happened.
func isClear(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && slices.ContainsFunc([]error{errProtocol, errSmall, syscall.ECONNRESET, syscall.EPIPE},
		func(kind error) bool { return errors.Is(err, kind) })
}

func (hc *hostileCase) try(t testing.TB, acts ...byte) {
	for _, dials := range []bool{false, true} {
		names := make([]string, len(acts))
		for i, act := range acts {
			names[i] = hostileActs[act].name
		}
		hang := time.AfterFunc(time.Minute, func() { panic(names) })
		read, written := hc.run(t, dials, acts)
		hang.Stop()
		if read != nil && !isClear(read) || read == nil && !slices.Contains(names, "end") {
			t.Errorf("%q, dials %t: read: %v", names, dials, read)
		}
		if !isClear(written) {
			t.Errorf("%q, dials %t: written: %v", names, dials, written)
		}
	}
}

// left reports what the streams have left behind.
func (hc *hostileCase) left(t testing.TB) {
	check(t, Drain(t.Context()))
	if n := hc.l.stack.memory.total(); n != 0 {
		t.Errorf("rings have %d bytes too many", n)
	}
	if all, err := hc.l.stack.ia.Connections(); err != nil || len(all) > 0 {
		t.Errorf("%d connections, %v", len(all), err)
	}
}

// TestHostilePeer: a peer that sends any two messages, in either role, ends only its own stream. The calls of the
// stream return an error, or the end if the peer has sent it.
func TestHostilePeer(t *testing.T) {
	for first := range hostileActs {
		for second := range hostileActs {
			if testing.Short() && (first+second)%5 > 0 {
				continue
			}
			t.Run(hostileActs[first].name+", "+hostileActs[second].name, func(t *testing.T) {
				hc := newHostileCase(t) // of its own: an address that has used wrong keys may not connect for a while
				hc.try(t, byte(first), byte(second))
				hc.left(t)
			})
		}
	}
}

// FuzzHostilePeer is TestHostilePeer with any number of messages.
func FuzzHostilePeer(f *testing.F) {
	for act := range hostileActs {
		f.Add([]byte{byte(act), 12, byte(act), 13, byte(act)})
	}
	f.Fuzz(func(t *testing.T, acts []byte) {
		hc := newHostileCase(t)
		acts = acts[:min(len(acts), 20)]
		for i := range acts {
			acts[i] %= byte(len(hostileActs))
		}
		hc.try(t, acts...)
		hc.left(t)
	})
}

// TestHostileErrors: if a peer violates the protocol, the calls of the stream return the right error.
func TestHostileErrors(t *testing.T) {
	for _, c := range []struct {
		acts []string
		want error
	}{
		{[]string{"small ring"}, errSmall},
		{[]string{"cut ring"}, errProtocol},
		{[]string{"ring", "end", "end"}, errProtocol},
		{[]string{"byte", "end", "byte"}, errProtocol},
		{[]string{"switch"}, errProtocol},
		{[]string{"long switch"}, errProtocol},
		{[]string{"unknown message"}, errProtocol},
		{[]string{"empty message"}, errProtocol},
		{[]string{"credit of nothing"}, errProtocol},
		{[]string{"credit of everything"}, errProtocol},
		{[]string{"long message"}, syscall.ECONNRESET},
		{[]string{"data behind the ring"}, syscall.ECONNRESET},
		{[]string{"invalidate"}, syscall.ECONNRESET},
	} {
		t.Run(fmt.Sprint(c.acts), func(t *testing.T) {
			hc := newHostileCase(t)
			x := hc.connect(t, false)
			for _, name := range c.acts {
				for _, act := range hostileActs {
					if act.name == name {
						act.do(hc.h)
					}
				}
			}
			var err error
			for err == nil {
				_, err = x.Write([]byte("x"))
			}
			if !errors.Is(err, c.want) {
				t.Errorf("Write: %v; want %v", err, c.want)
			}
			for hc.h.ep.State() == dat.EPConnected { // until the stream has ended the connection
				hc.h.poll()
			}
			hc.h.end()
			check(t, x.Close())
			hc.left(t)
		})
	}
}

// TestHostileFlood: a peer that sends as fast as it can neither keeps a call from its deadline nor Close from its end.
func TestHostileFlood(t *testing.T) {
	hc := newHostileCase(t)
	x := hc.connect(t, false)
	var flood sync.WaitGroup
	stop := make(chan struct{})
	flood.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				hc.h.write(hc.h.at%uint64(hc.h.ring.size), 1, 0)
				hc.h.at++
			}
		}
	})
	for range 10 {
		check(t, x.SetReadDeadline(time.Now().Add(time.Millisecond)))
		if _, err := io.Copy(io.Discard, onlyReader{x}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	check(t, x.Close())
	close(stop)
	flood.Wait()
	hc.h.end()
	hc.left(t)
}

// TestOtherStream: a peer that knows the ring of another stream of the adapter cannot write into it.
func TestOtherStream(t *testing.T) {
	hc := newHostileCase(t)
	x := hc.connect(t, false)
	victim, ep := hc.h.ring, hc.h.ep
	y := hc.connect(t, false)
	hc.h.ring = victim
	hc.h.data(1)
	if _, err := y.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("Read of the own stream: %v", err)
	}
	hc.h.end()
	hc.h.ep = ep
	hc.h.data(1)
	if n, err := x.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("Read of the other stream: %d, %v", n, err)
	}
	check(t, errors.Join(y.Close(), x.SetLinger(0), x.Close()))
	hc.h.end()
	hc.left(t)
}
