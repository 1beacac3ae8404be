package xdp

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/bpf"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// fakeNIC first reports the number of queues that the test has set, then the real number.
type fakeNIC struct {
	first  channels
	calls  int
	second func() // called before the second result
	stray  bool
}

func (f *fakeNIC) ring(string) int         { return 0 }
func (f *fakeNIC) strayHeader(string) bool { return f.stray }
func (f *fakeNIC) Close() error            { return nil }

func (f *fakeNIC) channels(name string) (c channels, err error) {
	if f.calls++; f.calls == 1 {
		return f.first, nil
	}
	if f.second != nil {
		f.second()
	}
	e, err := openEthtool()
	if err != nil {
		return c, err
	}
	c, err = e.channels(name)
	return c, errors.Join(err, e.Close())
}

// openWith opens the interface on side A; n reports its queues and rings.
func openWith(t *testing.T, l *lab.Lab, n nic) *Device {
	t.Helper()
	var d *Device
	onSide(t, l, lab.A, func() (err error) {
		d, err = open(lab.Interface, n, small())
		return err
	})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Queues that the driver creates when the program is attached get sockets.
func TestQueuesAddedAtAttach(t *testing.T) {
	l := newLab(t, 1500, 4)
	d := openWith(t, l, &fakeNIC{first: channels{combined: 2, maxCombined: 4}})
	if len(d.sockets) != 4 || d.addedQueues != 2 {
		t.Errorf("%d sockets, %d queues were added; want 4 and 2", len(d.sockets), d.addedQueues)
	}
	exchange(t, d, openDevice(t, l, lab.B, small()))
}

// If queues that the driver created do not transmit, Open fails. The error tells the user an ethtool command that
// creates all queues beforehand, so that the driver adds none.
func TestAddedQueuesThatDoNotTransmit(t *testing.T) {
	for _, tc := range []struct {
		before, after, most uint32
		want                string
	}{{1, 3, 4, "combined 3"}, {2, 4, 4, "combined 3"}, {1, 9, 16, "combined 9"}, {8, 16, 16, "combined 9"}} {
		d := &Device{name: "eth7", addedQueues: int(tc.after - tc.before), nic: &fakeNIC{first: channels{combined: tc.after, maxCombined: tc.most}}}
		err := d.refuseAdded("queues 1, 2 do not transmit")
		if !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "ethtool -L eth7 "+tc.want+")") {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// Queues that the driver creates get no socket in zero-copy mode, because the driver removes them with the program.
func TestNoZeroCopyOnAddedQueues(t *testing.T) {
	d := &Device{name: "eth7", addedQueues: 2, steer: new(bpf.Steer), nic: &fakeNIC{first: channels{combined: 4, maxCombined: 4}}}
	err := d.openQueues(4, &host{}, &Options{Mode: ZeroCopy})
	if !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "can crash the kernel") || len(d.sockets) > 0 {
		t.Errorf("%d sockets: %v", len(d.sockets), err)
	}
}

// Open waits for a carrier that was lost when the program was attached.
func TestCarrierLostAtAttach(t *testing.T) {
	l := newLab(t, 1500, 1)
	var up sync.WaitGroup
	d := openWith(t, l, &fakeNIC{first: channels{combined: 1, maxCombined: 1}, second: func() {
		if err := l.SetUp(lab.B, false); err != nil {
			t.Error(err)
		}
		up.Add(1)
		time.AfterFunc(200*time.Millisecond, func() {
			defer up.Done()
			if err := l.SetUp(lab.B, true); err != nil {
				t.Error(err)
			}
		})
	}})
	if !d.routes.Refresh().Carrier {
		t.Error("the interface is open and has no carrier")
	}
	up.Wait()
	if err := l.SetUp(lab.B, false); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	d.awaitCarrier(true, 20*time.Millisecond)
	d.awaitCarrier(false, time.Hour)
	if took := time.Since(start); took > patience {
		t.Errorf("waited %v for a carrier that does not come", took)
	}
}

// One proof frame shows that a queue transmits. No host accepts it as its own.
func TestProof(t *testing.T) {
	works, pending, dead, isDown := newFake(t, 1500), newFake(t, 1500), newFakeNIC(t, 1500, 256), newFake(t, 1500)
	pending.answers = []syscall.Errno{unix.EAGAIN, unix.EAGAIN, unix.EAGAIN, unix.EAGAIN, unix.EAGAIN}
	dead.batch = 0
	*dead.s.tx.flags = ringNeedWakeup
	dead.answers = make([]syscall.Errno, 1<<16)
	for range 1 << 10 {
		isDown.answers = append(isDown.answers, unix.ENETDOWN)
	}
	got := silentSockets([]*Socket{works.s, dead.s, pending.s, isDown.s}, 20*time.Millisecond)
	if !slices.Equal(got, []int{1}) {
		t.Errorf("queues %v do not transmit, want queue 1", got)
	}
	for _, k := range []*fakeKernel{works, pending} {
		if len(k.sent) != 1 {
			t.Fatalf("%d frames", len(k.sent))
		}
		frame := k.sent[0]
		if len(frame) != 60 || !bytes.Equal(frame[:6], k.s.mac[:]) || !bytes.Equal(frame[6:12], k.s.mac[:]) || be.Uint16(frame[12:]) != 0x88b5 {
			t.Errorf("frame % x", frame)
		}
		if st := k.s.Stats(); st.TxPackets != 0 || st.TxDropped != 0 {
			t.Errorf("the proof is counted as traffic: %+v", st)
		}
	}
	for _, k := range []*fakeKernel{works, pending, dead, isDown} {
		conserve(t, k.s)
	}
}

func TestSilentQueues(t *testing.T) {
	for _, tc := range []struct {
		queues []int
		want   string
	}{{[]int{3}, "queue 3 does not transmit"}, {[]int{0, 2}, "queues 0, 2 do not transmit"}} {
		err := silentError("eth7", ZeroCopy, tc.queues)
		if !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), tc.want+" in zero-copy mode") {
			t.Errorf("%v", err)
		}
	}
}

// Zero-copy is refused before a frame is sent if the driver would send it with a wrong header. The error is the one after
// which Auto chooses copy mode, as make nics shows.
func TestNoZeroCopyWithStrayHeaders(t *testing.T) {
	k := newFake(t, 1500)
	k.s.caps.Mode = string(ZeroCopy)
	d := &Device{name: "eth7", sockets: []*Socket{k.s}, nic: &fakeNIC{stray: true}}
	err, fault := d.prove(), (*modeError)(nil)
	if !errors.As(err, &fault) || fault.mode != ZeroCopy || !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "choose copy mode") {
		t.Errorf("zero-copy: %v", err)
	}
	if len(k.sent) > 0 {
		t.Errorf("%d frames were sent", len(k.sent))
	}
	conserve(t, k.s)
}
