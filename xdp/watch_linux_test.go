package xdp

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// witness is a Keeper that records the events. own is locked by the owner of the sockets.
type witness struct {
	own   sync.Mutex
	heard chan string
	ended chan error
}

func (w *witness) Exclude(_ int, f func()) {
	w.own.Lock()
	defer w.own.Unlock()
	f()
}

func (w *witness) Changed(_ int, _ bool, text string) { w.heard <- text }
func (w *witness) Ended(err error)                    { w.ended <- err }

// hears waits for a change whose text contains the words.
func (w *witness) hears(t *testing.T, words string) {
	t.Helper()
	var all []string
	for limit := time.After(2 * patience); ; {
		select {
		case text := <-w.heard:
			if strings.Contains(text, words) {
				return
			}
			all = append(all, text)
		case err := <-w.ended:
			t.Fatalf("ended with %v before %q; heard %q", err, words, all)
		case <-limit:
			t.Fatalf("not heard: %q, but %q", words, all)
		}
	}
}

// ends waits for the end of the device; the error must contain the words.
func (w *witness) ends(t *testing.T, words ...string) {
	t.Helper()
	select {
	case err := <-w.ended:
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("ended with %v, which does not say %q", err, word)
			}
		}
	case <-time.After(2 * patience):
		t.Fatalf("the device goes on; want an end that says %q", words)
	}
}

// watched opens a device on each side of a lab and watches the device of side A.
func watched(t *testing.T, queues int) (*lab.Lab, *Device, *Device, *witness) {
	t.Helper()
	l := newLab(t, 1500, queues)
	w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
	a, b := openDevice(t, l, lab.A, small()), openDevice(t, l, lab.B, small())
	a.Watch(w)
	return l, a, b, w
}

// Changes that do not end a device are reported, and packets flow afterwards.
func TestWatchFollows(t *testing.T) {
	l, a, b, w := watched(t, 1)
	on := func(what string, f func() error) {
		t.Helper()
		if err := l.Do(lab.A, f); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	up := func(s lab.Side, is bool) {
		t.Helper()
		if err := l.SetUp(s, is); err != nil {
			t.Fatal(err)
		}
	}
	to, err := a.sockets[0].Resolve(b.sockets[0].Local(), 9)
	if err != nil {
		t.Fatal(err)
	}
	up(lab.B, false)
	w.hears(t, "lost its carrier")
	up(lab.B, true)
	w.hears(t, "has its carrier again")
	exchange(t, a, b)

	up(lab.A, false)
	w.hears(t, "taken down")
	up(lab.A, true)
	w.hears(t, "carrier again")

	if err := l.SetMTU(1400); err != nil {
		t.Fatal(err)
	}
	w.hears(t, "MTU was changed from 1500 to 1400")
	for deadline := time.Now().Add(patience); a.sockets[0].PathMTU(to) != 1400-28; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("path MTU %d after the change", a.sockets[0].PathMTU(to))
		}
	}
	extra := netip.MustParsePrefix("10.99.0.1/24")
	on("add", func() error { return labtest.AddAddress(lab.Interface, extra) })
	w.hears(t, "10.99.0.1 was added")
	on("remove", func() error { return labtest.RemoveAddress(lab.Interface, extra) })
	w.hears(t, "10.99.0.1 was removed")

	on("rename", func() error { return labtest.Rename(lab.Interface, "other0") })
	w.hears(t, "from veth0 to other0")
	if a.Name() != "other0" {
		t.Errorf("the device is called %s", a.Name())
	}
	on("rename back", func() error { return labtest.Rename("other0", lab.Interface) })
	if got := a.sockets[0].Health(); !got.TxProven || !got.RxProven || got.Stalled {
		t.Errorf("%+v", got)
	}
}

// Changes that end a device are named in its error. Resolve then returns this error.
func TestWatchEnds(t *testing.T) {
	mine := netip.PrefixFrom(lab.A.Addr4(), 24)
	for _, tc := range []struct {
		name   string
		change func(*lab.Lab) error
		words  []string
	}{
		{"deleted", func(*lab.Lab) error { return labtest.Delete(lab.Interface) }, []string{"was deleted"}},
		{"address removed", func(*lab.Lab) error { return labtest.RemoveAddress(lab.Interface, mine) }, []string{"address 10.73.0.1 was removed"}},
		{"Ethernet address", func(*lab.Lab) error {
			return labtest.SetMAC(lab.Interface, net.HardwareAddr{2, 0x73, 0, 0, 0, 9})
		}, []string{"Ethernet address", "00 09"}},
		{"program detached", func(*lab.Lab) error { return labtest.DetachProgram(lab.Interface) }, []string{"program was detached"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, a, _, w := watched(t, 1)
			a.addressGrace.Store(5)
			onSide(t, l, lab.A, func() error { return tc.change(l) })
			w.ends(t, append(tc.words, "xdp: veth0: ", "open it again")...)
			if _, err := a.sockets[0].Resolve(netip.MustParseAddrPort("10.73.0.2:17473"), 1); err == nil || !strings.Contains(err.Error(), tc.words[0]) {
				t.Errorf("resolving afterwards: %v", err)
			}
		})
	}
	t.Run("moved", func(t *testing.T) {
		l, _, _, w := watched(t, 1)
		other := labtest.New(t, lab.Options{})
		onSide(t, l, lab.A, func() error {
			if err := labtest.Rename(lab.Interface, "moved0"); err != nil {
				return err
			}
			return labtest.Move("moved0", other, lab.A)
		})
		w.ends(t, "moved to another network namespace")
	})
	t.Run("queues", func(t *testing.T) {
		l := newLab(t, 1500, 4)
		w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
		for _, side := range []lab.Side{lab.A, lab.B} { // on both sides: a veth uses at most as many receive queues as its peer has transmit queues
			onSide(t, l, side, func() error { return setQueues(lab.Interface, 2) })
		}
		openDevice(t, l, lab.A, small()).Watch(w)
		onSide(t, l, lab.A, func() error { return setQueues(lab.Interface, 4) })
		w.ends(t, "receive queues was changed from 2 to 4")
	})
}

// setQueues sets the number of queues, as ethtool -L does.
func setQueues(name string, n uint32) error {
	e, err := openEthtool()
	if err != nil {
		return err
	}
	defer func() { _ = e.Close() }()
	c := channels{cmd: unix.ETHTOOL_SCHANNELS, rx: n, tx: n}
	return ethtoolDo(e.fd, name, &c)
}

// A change of the receive ring's size is reported.
func TestWatchRingSize(t *testing.T) {
	l := newLab(t, 1500, 1)
	n := &ringNIC{}
	w := &witness{heard: make(chan string, 100), ended: make(chan error, 1)}
	openWith(t, l, n).Watch(w)
	w.hears(t, "receive ring was changed")
}

// ringNIC is a NIC whose receive ring has another size each time.
type ringNIC struct {
	fakeNIC
	size int
}

func (r *ringNIC) ring(string) int { r.size++; return r.size }
func (r *ringNIC) channels(string) (channels, error) {
	return channels{combined: 1, maxCombined: 1}, nil
}

// stick makes the driver of a queue ignore kicks until the queue is reopened: a kick succeeds but transmits nothing.
func stick(t *testing.T, d *Device, w *witness) *Socket {
	t.Helper()
	s := d.sockets[0]
	s.mu.Lock()
	s.kick = func(bool) unix.Errno { return 0 }
	s.mu.Unlock()
	w.own.Lock()
	defer w.own.Unlock()
	to, err := s.Resolve(netip.AddrPortFrom(lab.B.Addr4(), DefaultPort), 7)
	if err != nil {
		t.Fatal(err)
	}
	awaitNeighbour(t, s, to)
	s.Send(message(t, s, to, 64, 1))
	return s
}

// A stalled tx ring is reported, then kicked, then reopened. Frames that the owner holds stay valid.
func TestStalledQueueIsOpenedAgain(t *testing.T) {
	_, a, b, w := watched(t, 1)
	s := a.sockets[0]
	held := make([]link.Buf, 3)
	if s.Alloc(held) != 3 {
		t.Fatal("no frames")
	}
	held[1].Data[0] = 77
	stick(t, a, w)
	w.hears(t, "has not moved for 200ms")
	if !s.Health().Stalled {
		t.Error("no stall is known")
	}
	w.hears(t, "was opened again in copy mode")
	w.hears(t, "moves again")
	if h := s.Health(); h.Stalled || h.Stalls != 1 || h.Reopens != 1 || !h.TxProven {
		t.Errorf("%+v", h)
	}
	w.own.Lock()
	defer w.own.Unlock()
	if held[1].Data[0] != 77 {
		t.Error("a frame of the owner was written")
	}
	s.Free(held)
	settled(t, s)
	if st := s.Stats(); st.TxDropped == 0 {
		t.Errorf("%+v: the packet that was lost is not counted", st)
	}
	exchange(t, a, b)
}

// Wait returns when the queue is reopened, and sleeps again afterwards.
func TestReopenWhileWaiting(t *testing.T) {
	_, a, _, w := watched(t, 1)
	s := a.sockets[0]
	var waiters sync.WaitGroup
	for range 3 {
		waiters.Go(func() {
			for s.Health().Reopens < 20 {
				s.Wait(-1)
				s.Stats()
			}
		})
	}
	for range 20 {
		w.Exclude(0, func() {
			s.health.reopens.Add(1)
			if err := a.ns.run(func() error { return s.reopen(Copy) }); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		waiters.Wait()
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
			s.Wake() // for a Wait that began meanwhile
		}
	}
}

// If reopening in zero-copy mode does not help, Auto continues in copy mode, and Caps reports copy mode.
func TestStalledQueueGoesOnInCopyMode(t *testing.T) {
	_, a, b, w := watched(t, 1)
	a.sockets[0].caps.Mode = string(ZeroCopy) // veth has no zero-copy, so reopening in this mode fails
	stick(t, a, w)
	w.hears(t, "opened again in copy mode, since it did not transmit in zero-copy mode")
	if got := a.Mode(); got != Copy {
		t.Errorf("mode %s", got)
	}
	w.own.Lock()
	defer w.own.Unlock()
	exchange(t, a, b)
}

// If reopening does not help in any mode, the device ends. This also holds for a mode that was requested by name.
func TestStalledQueueEndsTheDevice(t *testing.T) {
	_, a, _, w := watched(t, 1)
	a.asked = ZeroCopy
	a.sockets[0].caps.Mode = string(ZeroCopy)
	s := stick(t, a, w)
	w.ends(t, "queue 0 does not transmit", "zero-copy")
	w.own.Lock()
	defer w.own.Unlock()
	bufs := make([]link.Buf, 4)
	for range 10 { // the owner receives nothing, and nothing panics
		n := s.Alloc(bufs)
		s.Send(bufs[:n])
		s.Free(bufs[:s.Recv(bufs)])
		s.Wait(0)
	}
	conserve(t, s)
}

// A ring that does not move because there is no carrier is not reported as stalled.
func TestNoStallWithoutCarrier(t *testing.T) {
	l, a, _, w := watched(t, 1)
	if err := l.SetUp(lab.B, false); err != nil {
		t.Fatal(err)
	}
	w.hears(t, "lost its carrier")
	s := a.sockets[0]
	s.mu.Lock()
	deaf := make(chan struct{}, 100)
	s.kick = func(bool) unix.Errno { deaf <- struct{}{}; return 0 }
	s.mu.Unlock()
	w.own.Lock()
	s.queueProof()
	w.own.Unlock()
	time.Sleep((reviveTicks + 2) * watchTick) // to see that nothing happens, which causes no event
	if h := s.Health(); h.Stalls != 0 || h.Reopens != 0 {
		t.Errorf("%+v", h)
	}
	for len(deaf) > 0 {
		<-deaf
	}
	if err := l.SetUp(lab.B, true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-deaf: // waiting packets are transmitted when the carrier is back
	case <-time.After(patience):
		t.Error("nobody kicked the driver")
	}
}

// Close ends the watch even while it reports changes.
func TestCloseWhileWatched(t *testing.T) {
	l, a, _, w := watched(t, 1)
	var changes sync.WaitGroup
	changes.Go(func() {
		for mtu := range 20 {
			if err := l.SetMTU(1400 + mtu); err != nil {
				t.Error(err)
			}
		}
	})
	w.hears(t, "MTU")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	changes.Wait()
	if slices.Contains(a.Links(), nil) {
		t.Error("a link is nil")
	}
}
