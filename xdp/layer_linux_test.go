package xdp

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// An interface without Ethernet headers is refused, because AF_XDP would not carry our packets.
func TestTunnelIsRefused(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	onSide(t, l, lab.A, func() error {
		if err := labtest.AddTunnel("tun0", netip.MustParsePrefix("10.74.0.1/24")); err != nil {
			return err
		}
		d, err := Open("tun0", DefaultOptions())
		if err == nil {
			return errors.Join(errors.New("it was opened"), d.Close())
		}
		if !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "no Ethernet header") {
			t.Errorf("got %v", err)
		}
		return nil
	})
}

// A bond and a team are refused in every mode, and the error names an alternative. A NIC and a bridge are accepted.
func TestBondIsRefused(t *testing.T) {
	local := netip.MustParseAddr("10.9.0.1")
	for kind, want := range map[string]bool{"bond": true, "team": true, "bridge": false, "vlan": false, "device": false, "veth": false} {
		err := refuseLayer(&route.Interface{Name: "over0", Kind: kind, Ethernet: true}, local)
		if (err != nil) != want || want && (!errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), "udp:10.9.0.1")) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// overlay is the name of an interface on top of the veth. Its address is in another subnet.
const overlay = "over"

func overlayAddress(side lab.Side) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 75, 0, byte(side) + 1}), 24)
}

func overlayLab(t *testing.T, kind string) *lab.Lab {
	t.Helper()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	for _, side := range []lab.Side{lab.A, lab.B} {
		onSide(t, l, side, func() error { return labtest.AddOver(kind, overlay, lab.Interface, overlayAddress(side)) })
	}
	return l
}

// Packets of the largest size pass through a macvlan and a bridge in both directions.
func TestOverlay(t *testing.T) {
	for _, kind := range []string{"macvlan", "bridge"} {
		t.Run(kind, func(t *testing.T) {
			l := overlayLab(t, kind)
			var ends [2]*Device
			for _, side := range []lab.Side{lab.A, lab.B} {
				onSide(t, l, side, answerOwn)
				ends[side] = openNamed(t, l, side, overlay, DefaultOptions())
				if got := ends[side].Mode(); got != Generic {
					t.Fatalf("mode %s, want %s", got, Generic)
				}
			}
			exchange(t, ends[lab.A], ends[lab.B])
		})
	}
}

// answerOwn makes the veth answer ARP requests only for its own addresses.
func answerOwn() error {
	return os.WriteFile("/proc/sys/net/ipv4/conf/"+lab.Interface+"/arp_ignore", []byte("1"), 0)
}

// Open refuses a macvlan or macvtap if its lower interface also answers ARP requests for its address. The text of the
// error has the command that changes this.
func TestMacvlanBesideItsLowerInterface(t *testing.T) {
	for _, kind := range []string{"macvlan", "macvtap"} {
		t.Run(kind, func(t *testing.T) {
			refuses(t, overlayLab(t, kind), overlay, "sysctl -w net.ipv4.conf."+lab.Interface+".arp_ignore=1")
		})
	}
}

// refuses demands that Open refuses an interface of side A, with a text in its error.
func refuses(t *testing.T, l *lab.Lab, name, want string) {
	t.Helper()
	onSide(t, l, lab.A, func() error {
		d, err := Open(name, DefaultOptions())
		if err == nil {
			return errors.Join(errors.New("it was opened"), d.Close())
		}
		if !errors.Is(err, link.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		return nil
	})
}

// Open refuses an interface without a queue, such as a tap that no program has opened.
func TestNoQueue(t *testing.T) {
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	onSide(t, l, lab.A, func() error { return labtest.AddTap("tap0", netip.MustParsePrefix("10.74.0.1/24")) })
	refuses(t, l, "tap0", "tap0 has no receive queue")
}
