package dat

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestDeviceEnds detaches the XDP program of an adapter. The connections break, each open of the adapter gets an event,
// IA.Err returns the reason, and IA.Context is done. When all opens have been closed, the device can be opened again.
func TestDeviceEnds(t *testing.T) {
	labtest.RequireXDP(t)
	n := xdpNet{labtest.New(t, lab.Options{})}
	a, b := newHosts(t, n, Options{})
	second := must(n.open(0, Options{}))(t)
	t.Cleanup(func() { _ = second.Close() })
	x, y := pair(a, b, nil)
	proves(x, y)
	if err := a.ia.Err(); err != nil {
		t.Fatal(err)
	}
	ok(t, n.Do(lab.A, func() error { return labtest.DetachProgram(lab.Interface) }))
	for _, ia := range []*IA{a.ia, second} {
		if ev := await(t, ia.AsyncEVD(), EventAsyncIACatastrophic); ev.Source != ia || ev.Reason != ReasonIAEnded {
			t.Errorf("%+v", ev)
		}
		if err := ia.Err(); err == nil || !strings.Contains(err.Error(), "program was detached") {
			t.Errorf("the reason is %v", err)
		}
		<-ia.Context().Done()
		if err := context.Cause(ia.Context()); err != ia.Err() {
			t.Errorf("the cause of the context is %v", err)
		}
	}
	x.expect(EventBroken)
	if _, err := n.open(0, Options{}); err == nil || !strings.Contains(err.Error(), "program was detached") {
		t.Errorf("another open: %v", err)
	}
	ok(t, second.Close())
	ok(t, a.ia.Close())
	again := must(n.open(0, Options{}))(t)
	if err := again.Err(); err != nil {
		t.Error(err)
	}
	ok(t, again.Close())
	if err := context.Cause(again.Context()); !errors.Is(err, ErrAbort) {
		t.Errorf("the cause of the context of a closed IA is %v", err)
	}
}
