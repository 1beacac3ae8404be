package dat

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// endings are events that end a device of side A. Afterwards the device can be opened again.
var endings = []struct {
	name   string
	reason string // in the error
	cause  func(*lab.Lab) error
}{
	{"program detached", "program was detached", func(l *lab.Lab) error {
		return l.Do(lab.A, func() error { return labtest.DetachProgram(lab.Interface) })
	}},
	{"MAC changed", "Ethernet address was changed", func(l *lab.Lab) error {
		return l.Do(lab.A, func() error {
			return labtest.SetMAC(lab.Interface, net.HardwareAddr{2, 0x73, 0, 0, 0, 9})
		})
	}},
	{"interface created again", "interface was deleted", func(l *lab.Lab) error { return l.Rewire(lab.Options{}) }},
}

// TestDeviceEnds ends the device of an adapter. The connections break, each open of the adapter gets an event, IA.Err
// returns the reason, and IA.Context is done.
func TestDeviceEnds(t *testing.T) {
	labtest.RequireXDP(t)
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			n := xdpNet{labtest.New(t, lab.Options{})}
			a, b := newHosts(t, n, Options{})
			second := must(n.open(0, Options{}))(t)
			t.Cleanup(func() { _ = second.Close() })
			x, y := pair(a, b, nil)
			proves(x, y)
			ok(t, a.ia.Err())
			ok(t, e.cause(n.Lab))
			for _, ia := range []*IA{a.ia, second} {
				expectEnd(t, ia, e.reason)
			}
			x.expect(EventBroken)
			ok(t, b.psp.Free())
			opensAgain(t, n, a.ia)
			ok(t, second.Close())
			ok(t, a.ia.Close())
			opensAgain(t, n, nil)
		})
	}
}

func expectEnd(t *testing.T, ia *IA, reason string) {
	t.Helper()
	if ev := await(t, ia.AsyncEVD(), EventAsyncIACatastrophic); ev.Source != ia || ev.Reason != ReasonIAEnded {
		t.Errorf("%+v", ev)
	}
	if err := ia.Err(); err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("the reason is %v", err)
	}
	<-ia.Context().Done()
	if err := context.Cause(ia.Context()); err != ia.Err() {
		t.Errorf("the cause of the context is %v", err)
	}
}

// opensAgain opens the devices of both sides and moves data. Meanwhile the earlier open of side A, if any, keeps its error.
func opensAgain(t *testing.T, n network, earlier *IA) {
	t.Helper()
	t.Run("opened again", func(t *testing.T) {
		a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		b.listen(testQual, 4)
		proves(pair(a, b, nil))
		if earlier != nil && earlier.Err() == nil {
			t.Error("the earlier open has lost its error")
		}
		ok(t, a.ia.Close())
		if err := context.Cause(a.ia.Context()); !errors.Is(err, ErrAbort) {
			t.Errorf("the cause of the context of a closed IA is %v", err)
		}
	})
}

// TestMemoryOutlivesDevice: memory of Alloc belongs to its consumer until the IA is closed, also if the device has ended
// and is open again.
func TestMemoryOutlivesDevice(t *testing.T) {
	labtest.RequireXDP(t)
	n := xdpNet{labtest.New(t, lab.Options{})}
	o := Options{Memory: 1 << 16}
	ended := newHost(t, n, 0, o)
	mem := must(ended.ia.Alloc(4096))(t)
	copy(mem, "of the first adapter")
	ok(t, endings[0].cause(n.Lab))
	expectEnd(t, ended.ia, endings[0].reason)
	again := must(newHost(t, n, 0, o).ia.Alloc(4096))(t)
	copy(again, "of the other adapter")
	if string(mem[:20]) != "of the first adapter" {
		t.Errorf("the memory has changed to %q", mem[:20])
	}
}
