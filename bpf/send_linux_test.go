//go:build amd64 || arm64

package bpf

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// Actions of traffic control.
const (
	tcShot     = 2
	tcRedirect = 7
)

const (
	leaseFirst   = 3     // first engine of the lease under test
	leasePort    = 50000 // source port of the lease under test
	foreignPort  = 50001 // source port of the lease with the engine otherFirst
	otherFirst   = 5
	otherService = 0x1122334455667788
)

// pins mounts a BPF file system for a test.
func pins(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// sender is the program that checks the packets of a lease, not attached to an interface. Loopback stands for the
// interface and the host ends.
func sender(t *testing.T) *sendObjects {
	t.Helper()
	labtest.RequireXDP(t)
	s := &Share{dir: pins(t), options: Options{Ifindex: 1, Port: testPort, MAC: localMAC}}
	objs, err := s.loadCheck(End{First: leaseFirst, MTU: 1500})
	if verifier := (*ebpf.VerifierError)(nil); errors.As(err, &verifier) {
		t.Fatalf("%+v", verifier)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objs.Close() })
	for _, err := range []error{
		objs.Addresses.Put(local4.As16(), uint8(1)), objs.Addresses.Put(local6.As16(), uint8(1)),
		objs.Owners.Put(uint32(leasePort), uint32(leaseFirst+1)), objs.Owners.Put(uint32(foreignPort), uint32(otherFirst+1)),
		objs.Indices.Put(uint32(otherFirst), uint32(1)), objs.Qualifiers.Put(bigEndian(otherService), uint32(otherFirst)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return objs
}

// sent4 and sent6 return a frame that the lease may send to another host.
func sent4(payload int) []byte { return reversed(frame4(payload), 12, 4) }
func sent6(payload int) []byte { return reversed(frame6(payload), 8, 16) }

// reversed exchanges source and destination of a frame with addresses of size bytes at an offset in the IP header.
func reversed(b []byte, at, size int) []byte {
	exchange := func(a, b []byte) {
		for i := range a {
			a[i], b[i] = b[i], a[i]
		}
	}
	ip := b[offIP:]
	exchange(b[:6], b[6:12])
	exchange(ip[at:at+size], ip[at+size:at+2*size])
	u := ip[at+2*size:]
	binary.BigEndian.PutUint16(u, testPort)
	binary.BigEndian.PutUint16(u[offUDPDst:], 17000)
	return b
}

// local4Frame returns a frame of the lease to its own host, with a packet of package wire: its first byte and its
// connection ID.
func local4Frame(to uint16, kind byte, cid uint32) []byte {
	b := sent4(64)
	copy(b[offIP4Dst:], local4.AsSlice())
	put16(b, offUDP4+offUDPDst, to)
	put8(b, offUDP4+8, kind)
	binary.BigEndian.PutUint32(b[offUDP4+8+4:], cid)
	binary.BigEndian.PutUint64(b[offUDP4+8+56:], otherService)
	return b
}

// TestSendProgram: a lease sends only what its adapter would send, from its own ports.
func TestSendProgram(t *testing.T) {
	objs := sender(t)
	const wire, reset, connect, data = 2 << 4, 8, 3, 1
	for _, tc := range []struct {
		name  string
		frame []byte
		want  sendSendVerdict
	}{
		{"IPv4 from the service port", sent4(64), sendSendVerdictSENT},
		{"IPv6 from the service port", sent6(64), sendSendVerdictSENT},
		{"IPv4 from a port of the lease", put16(sent4(64), offUDP4, leasePort), sendSendVerdictSENT},
		{"IPv6 from a port of the lease", put16(sent6(64), offUDP6, leasePort), sendSendVerdictSENT},
		{"no payload", sent4(0), sendSendVerdictSENT},
		{"the MTU", sent4(1500 - 28), sendSendVerdictSENT},
		{"beyond the MTU", sent4(1500 - 27), sendSendVerdictDROPPED_FORM},
		{"port of another lease", put16(sent4(64), offUDP4, foreignPort), sendSendVerdictDROPPED_PORT},
		{"port of nobody", put16(sent6(64), offUDP6, 53), sendSendVerdictDROPPED_PORT},
		{"port 0", put16(sent4(64), offUDP4, 0), sendSendVerdictDROPPED_PORT},
		{"IPv4 source of another host", put8(sent4(64), offIP+15, 9), sendSendVerdictDROPPED_SOURCE},
		{"IPv6 source of another host", put8(sent6(64), offIP+23, 9), sendSendVerdictDROPPED_SOURCE},
		{"mapped IPv4 source", mappedSource(sent6(64)), sendSendVerdictDROPPED_SOURCE},
		{"mapped IPv4 destination", mappedTarget(sent6(64)), sendSendVerdictDROPPED_FORM},
		{"MAC of another host", put8(sent4(64), 11, 9), sendSendVerdictDROPPED_FORM},
		{"ARP", put16(sent4(64), offEtherType, 0x0806), sendSendVerdictDROPPED_FORM},
		{"VLAN", tagVLAN(sent4(64), 0x8100, 5), sendSendVerdictDROPPED_FORM},
		{"priority tag", tag(sent4(64), 0x8100), sendSendVerdictDROPPED_FORM},
		{"provider tag", tagVLAN(sent4(64), 0x88a8, 5), sendSendVerdictDROPPED_FORM},
		{"TCP", put8(sent4(64), offIP4Proto, 6), sendSendVerdictDROPPED_FORM},
		{"ICMP", put8(sent4(64), offIP4Proto, 1), sendSendVerdictDROPPED_FORM},
		{"ICMPv6", put8(sent6(64), offIP6Next, 58), sendSendVerdictDROPPED_FORM},
		{"options", options4(sent4(64)), sendSendVerdictDROPPED_FORM},
		{"hop-by-hop options", extension6(sent6(64), 0), sendSendVerdictDROPPED_FORM},
		{"IPv6 fragment", extension6(sent6(64), 44), sendSendVerdictDROPPED_FRAGMENT},
		{"first fragment", put16(sent4(64), offIP4Fragment, 0x2000), sendSendVerdictDROPPED_FRAGMENT},
		{"later fragment", put16(sent4(64), offIP4Fragment, 0x0010), sendSendVerdictDROPPED_FRAGMENT},
		{"IP length too large", put16(sent4(64), offIP4Length, 93), sendSendVerdictDROPPED_FORM},
		{"IP length too small", put16(sent4(64), offIP4Length, 91), sendSendVerdictDROPPED_FORM},
		{"UDP length too large", put16(sent4(64), offUDP4+offUDPLength, 73), sendSendVerdictDROPPED_FORM},
		{"UDP length too small", put16(sent6(64), offUDP6+offUDPLength, 71), sendSendVerdictDROPPED_FORM},
		{"no room for UDP", put16(sent4(0)[:offUDP4+4], offIP4Length, 24), sendSendVerdictDROPPED_FORM},
		{"TTL 0", put8(sent4(64), offIP+8, 0), sendSendVerdictDROPPED_FORM},
		{"hop limit 0", put8(sent6(64), offIP+7, 0), sendSendVerdictDROPPED_FORM},
		{"to the engine of a neighbour", local4Frame(testPort, wire|data, otherFirst<<24|5), sendSendVerdictSENT_LOCAL},
		{"to the service of a neighbour", local4Frame(testPort, wire|connect, 0), sendSendVerdictSENT_LOCAL},
		{"Reset to a port of a neighbour", local4Frame(foreignPort, wire|reset, 0), sendSendVerdictSENT_LOCAL},
		{"Reset to all neighbours", local4Frame(testPort, wire|reset, 0), sendSendVerdictSENT_LOCAL},
		{"to an engine of nobody", local4Frame(testPort, wire|data, 9<<24), sendSendVerdictDROPPED_NOBODY},
		{"to a port of nobody", local4Frame(53, wire|data, otherFirst<<24), sendSendVerdictDROPPED_NOBODY},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sendVerdict(t, objs, tc.frame); got != tc.want {
				t.Errorf("verdict %d, want %d", got, tc.want)
			}
		})
	}
}

// mappedSource gives an IPv6 packet the IPv4 address of this host as its source, in the mapped form.
func mappedSource(b []byte) []byte {
	mapped := local4.As16()
	copy(b[offIP+8:], mapped[:])
	return b
}

func mappedTarget(b []byte) []byte {
	mapped := remote4.As16()
	copy(b[offIP6Dst:], mapped[:])
	return b
}

// sendVerdict passes a frame through the program and returns which counter moved. The program must redirect what it does
// not drop; a Reset for all neighbours leaves in copies.
func sendVerdict(t *testing.T, objs *sendObjects, frame []byte) sendSendVerdict {
	t.Helper()
	before, err := readSent(objs.Sent)
	if err != nil {
		t.Fatal(err)
	}
	action, err := objs.DatxdpSend.Run(&ebpf.RunOptions{Data: frame})
	if err != nil {
		t.Fatal(err)
	}
	after, err := readSent(objs.Sent)
	if err != nil {
		t.Fatal(err)
	}
	found := sendSendVerdictSEND_VERDICTS
	for v := range sendSendVerdictSEND_VERDICTS {
		if *after.field(v) != *before.field(v) {
			found = v
		}
	}
	isReset := len(frame) > offUDP4+8 && frame[offUDP4+8]&15 == 8 && found == sendSendVerdictSENT_LOCAL
	if passed := found <= sendSendVerdictSENT_LOCAL; passed != (action == tcRedirect) && !isReset || action != tcRedirect && action != tcShot {
		t.Errorf("action %d with verdict %d", action, found)
	}
	return found
}
