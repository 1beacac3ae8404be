package udplink

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/link"
)

// diary is a Keeper that records its events.
type diary struct {
	changes chan string
	end     chan error
}

func (d diary) Changed(_ int, _ bool, text string) { d.changes <- text }
func (d diary) Ended(err error)                    { d.end <- err }

// A link whose address is removed goes on if the address comes back, and otherwise ends. The removal of another address
// changes nothing.
func TestAddressRemoved(t *testing.T) {
	for _, tc := range families {
		t.Run(tc.name, func(t *testing.T) {
			l := labtest.New(t, lab.Options{})
			bits := map[bool]int{true: 24, false: 64}[tc.newcomer.Is4()]
			own, other := netip.PrefixFrom(tc.addr(lab.A), bits), netip.PrefixFrom(tc.newcomer, bits)
			change := func(f func(string, netip.Prefix) error, p netip.Prefix) {
				t.Helper()
				if err := l.Do(lab.A, func() error { return f(lab.Interface, p) }); err != nil {
					t.Fatal(err)
				}
			}
			change(labtest.AddAddress, other)
			a, b := open(t, l, lab.A, own.Addr(), Options{}), open(t, l, lab.B, tc.addr(lab.B), Options{})
			d := diary{make(chan string, 10), make(chan error, 1)}
			a.grace = 20 * time.Second
			a.Watch(d)
			change(labtest.RemoveAddress, other)
			change(labtest.RemoveAddress, own)
			d.expect(t, "was removed")
			change(labtest.AddAddress, own)
			d.expect(t, "is back")
			send(t, b, mustResolve(t, b, a.Local()), "goes on")
			a.Free(receive(t, a, make([]link.Buf, 1)))
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}

			a = open(t, l, lab.A, own.Addr(), Options{})
			a.grace = time.Millisecond
			a.Watch(d)
			change(labtest.RemoveAddress, own)
			d.expect(t, "was removed")
			if err := <-d.end; !errors.Is(err, link.ErrUnreachable) || !strings.Contains(err.Error(), own.Addr().String()+" was removed") {
				t.Errorf("the link ended with %v", err)
			}
			if _, err := a.Resolve(b.Local(), 0); err == nil || !strings.Contains(err.Error(), "was removed") {
				t.Errorf("Resolve: %v", err)
			}
		})
	}
}

func (d diary) expect(t *testing.T, text string) {
	t.Helper()
	select {
	case got := <-d.changes:
		if !strings.Contains(got, text) {
			t.Fatalf("%q, want that the address %s", got, text)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing says that the address %s", text)
	}
}
