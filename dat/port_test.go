package dat

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// ownHost returns a loopback address at which no other test process uses the default port.
func ownHost(last byte) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(64 + os.Getpid()>>8&63), byte(os.Getpid()), last})
}

// taken binds the default port of an address until the end of the test, as another program would.
func taken(t *testing.T, addr netip.Addr) {
	conn := must(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, DefaultPort))))(t)
	t.Cleanup(func() { conn.Close() })
}

// hostOn opens an adapter by name.
func hostOn(t *testing.T, addr netip.Addr, options string, o Options) *host {
	ia := must(Open("udp:"+addr.String()+options, o))(t)
	t.Cleanup(func() { _ = ia.Close() })
	return &host{t: t, ia: ia, addr: addr, pz: must(ia.CreatePZ())(t)}
}

func portOf(t *testing.T, h *host) uint16 {
	t.Helper()
	return must(h.ia.Query())(t).Port
}

// TestDefaultPortTaken: if another process has the default port, an adapter over UDP uses a free port, logs that port,
// and connects from it. If the options name a port that is in use, the open fails with an error that names the option.
func TestDefaultPortTaken(t *testing.T) {
	server, client := ownHost(1), ownHost(2)
	taken(t, client)
	var log bytes.Buffer
	b := hostOn(t, server, "", Options{})
	a := hostOn(t, client, "", Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	port := portOf(t, a)
	if port == DefaultPort || port == 0 || portOf(t, b) != DefaultPort {
		t.Errorf("ports %d and %d", port, portOf(t, b))
	}
	if !strings.Contains(log.String(), "another process has the default UDP port") || !strings.Contains(log.String(), "port="+strconv.Itoa(int(port))) {
		t.Errorf("the log says %s", &log)
	}
	b.listen(testQual, 8)
	proves(pair(a, b, nil))
	for _, o := range []Options{{Port: DefaultPort}, {}} {
		option := ""
		if o.Port == 0 {
			option = " port=17473"
		}
		_, err := Open("udp:"+client.String()+option, o)
		explains(t, "udp:"+client.String()+option, err, ErrInsufficientResources, "port=")
		wants(t, "link error", err, link.ErrBusy)
	}
}

// A client reaches a server on another port than the default if it names that port, whatever port the client has.
func TestPeerPort(t *testing.T) {
	server, client := ownHost(3), ownHost(4)
	taken(t, server)
	b := hostOn(t, server, "", Options{})
	b.listen(testQual, 8)
	a := hostOn(t, client, " port=17474 peerport="+strconv.Itoa(int(portOf(t, b))), Options{})
	if got := portOf(t, a); got != 17474 {
		t.Errorf("port %d, want 17474", got)
	}
	proves(pair(a, b, nil))
	other := hostOn(t, client, " port=17474", Options{PeerPort: portOf(t, b)})
	if other.ia.a != a.ia.a {
		t.Error("opens with other ports of peers have other adapters")
	}
	proves(pair(other, b, nil))
}

// In one process, an open without a port and an open with the port that the first one got share an adapter.
func TestDefaultPortIsShared(t *testing.T) {
	addr, other := ownHost(5), ownHost(6)
	first, again := hostOn(t, addr, "", Options{}), hostOn(t, addr, "", Options{})
	asked := hostOn(t, addr, " port=17473", Options{})
	if first.ia.a != again.ia.a || first.ia.a != asked.ia.a {
		t.Error("three adapters of one port")
	}
	asked, first = hostOn(t, other, " port=17473", Options{}), hostOn(t, other, "", Options{})
	if first.ia.a != asked.ia.a {
		t.Error("two adapters of one port")
	}
	taken(t, ownHost(7))
	first, again = hostOn(t, ownHost(7), "", Options{}), hostOn(t, ownHost(7), "", Options{})
	if first.ia.a != again.ia.a {
		t.Error("two adapters where the default port is taken")
	}
}

// A client reaches a server on another port than the default if it names that port in the call. A process reaches its own
// services without that.
func TestPeerPortOfACall(t *testing.T) {
	server, client := ownHost(8), ownHost(9)
	taken(t, server)
	b := hostOn(t, server, "", Options{})
	b.listen(testQual, 8)
	a := hostOn(t, client, "", Options{})
	for _, c := range []struct {
		from *host
		port uint16
	}{{a, portOf(t, b)}, {b, 0}} {
		x, y := c.from.point(nil), b.point(nil)
		x.peer, y.peer = y, x
		if err := x.ConnectWith(server, testQual, ConnectConfig{Timeout: patience, PeerPort: c.port}); err != nil {
			t.Fatal(err)
		}
		if err := b.request(t).Accept(y.EP, nil); err != nil {
			t.Fatal(err)
		}
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		proves(x, y)
	}
}

// An interface in place of its address names the same adapter.
func TestUDPOnInterface(t *testing.T) {
	ifi := must(net.InterfaceByIndex(1))(t)
	if ifi.Flags&net.FlagLoopback == 0 {
		t.Skip("the first interface is not the loopback interface")
	}
	byName := must(Open("udp:"+ifi.Name+" port=17610", Options{}))(t)
	defer byName.Close()
	addr := must(byName.Query())(t).Address
	byAddress := must(Open("udp:"+addr.String()+" port=17610", Options{}))(t)
	defer byAddress.Close()
	if !addr.IsLoopback() || byName.a != byAddress.a {
		t.Errorf("address %v, and two adapters of one address", addr)
	}
}
