//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
)

type verdictCase struct {
	name  string
	frame []byte
	want  steerVerdict
}

func verdictCases() []verdictCase {
	const (
		redirected = steerVerdictREDIRECTED
		other      = steerVerdictPASSED_OTHER
		fragment   = steerVerdictPASSED_FRAGMENT
		options    = steerVerdictPASSED_OPTIONS
		malformed  = steerVerdictPASSED_MALFORMED
	)
	return []verdictCase{
		{"v4", frame4(100), redirected},
		{"v6", frame6(100), redirected},
		{"v4 empty", frame4(0), redirected},
		{"v6 empty", frame6(0), redirected},
		{"v4 full MTU", frame4(1472), redirected},
		{"v6 full MTU", frame6(1452), redirected},
		{"v4 padded to 60 bytes", append(frame4(1), make([]byte, 17)...), redirected},
		{"v4 UDP shorter than IP", put16(frame4(100), offUDP4+offUDPLength, 8), redirected},
		{"v4 without don't-fragment", put16(frame4(100), offIP4Fragment, 0), redirected},
		{"v4 reserved flag", put16(frame4(100), offIP4Fragment, 0x8000), redirected},

		// The program redirects these packets; package xdp drops and counts them.
		{"v4 land", put8(frame4(100), offIP4Dst-1, local4.As4()[3]), redirected},
		{"v4 TTL 0", put8(frame4(100), offIP+8, 0), redirected},
		{"v6 hop limit 0", put8(frame6(100), offIP+7, 0), redirected},
		{"v4 header checksum wrong", put16(frame4(100), offIP+10, 0xbad), redirected},
		{"v4 from a group", put8(frame4(100), offIP4Dst-4, 224), redirected},

		{"802.1Q v4", tag(frame4(100), 0x8100), redirected},
		{"802.1Q v6", tag(frame6(100), 0x8100), redirected},
		{"802.1ad v4", tag(frame4(100), 0x88a8), redirected},
		{"802.1Q v4, VLAN 5", tagVLAN(frame4(100), 0x8100, 5), other},
		{"802.1Q v6, VLAN 4095", tagVLAN(frame6(100), 0x8100, 4095), other},
		{"802.1ad v4, VLAN 256", tagVLAN(frame4(100), 0x88a8, 256), other},
		{"QinQ, VLAN 5 in a priority", tag(tagVLAN(frame4(100), 0x8100, 5), 0x88a8), other},
		{"QinQ v4", tag(tag(frame4(100), 0x8100), 0x88a8), other},
		{"QinQ v6", tag(tag(frame6(100), 0x8100), 0x8100), other},

		{"ARP", ethernet(0x0806, make([]byte, 46)), other},
		{"LLC", ethernet(100, make([]byte, 100)), other},
		{"unknown type", put16(frame4(100), offEtherType, 0x9000), other},
		{"broadcast", put8(frame4(100), 0, 0xff), other},
		{"multicast", put8(frame6(100), 0, 0x33), other},
		{"MAC of another, first byte", put8(frame4(100), 0, 6), other},
		{"MAC of another, last byte", put8(frame6(100), 5, 2), other},
		{"v4 TCP", put8(frame4(100), offIP4Proto, 6), other},
		{"v4 UDP-Lite", put8(frame4(100), offIP4Proto, 136), other},
		{"v6 TCP", put8(frame6(100), offIP6Next, 6), other},
		{"v6 ICMP", put8(frame6(100), offIP6Next, 58), other},
		{"v6 ESP", extension6(frame6(100), 50), other},
		{"v6 authentication header", extension6(frame6(100), 51), other},
		{"v6 mobility header", extension6(frame6(100), 135), other},
		{"v6 no next header", put8(frame6(100), offIP6Next, 59), other},
		{"v4 other port", put16(frame4(100), offUDP4+offUDPDst, testPort+1), other},
		{"v6 other port", put16(frame6(100), offUDP6+offUDPDst, testPort+1), other},
		{"v4 source port", put16(frame4(100), offUDP4+offUDPDst, testSource), redirected},
		{"v6 source port", put16(frame6(100), offUDP6+offUDPDst, testSource), redirected},
		{"v4 highest source port", put16(frame4(100), offUDP4+offUDPDst, 65535), redirected},
		{"v4 beside a source port", put16(frame4(100), offUDP4+offUDPDst, testSource+1), other},
		{"v6 beside a source port", put16(frame6(100), offUDP6+offUDPDst, testSource-1), other},
		{"v4 port 0", put16(frame4(100), offUDP4+offUDPDst, 0), other},
		{"v4 source port in other byte order", put16(frame4(100), offUDP4+offUDPDst, testSource>>8|testSource<<8&0xffff), other},
		{"v4 source port over TCP", put8(put16(frame4(100), offUDP4+offUDPDst, testSource), offIP4Proto, 6), other},
		{"v4 source port, MAC of another", put8(put16(frame4(100), offUDP4+offUDPDst, testSource), 5, 2), other},
		{"v4 source port, UDP length over IP", put16(put16(frame4(100), offUDP4+offUDPDst, testSource), offUDP4+offUDPLength, 109), malformed},
		{"v4 port in other byte order", put16(frame4(100), offUDP4+offUDPDst, testPort>>8|testPort<<8&0xffff), other},
		{"v4 port as source", put16(put16(frame4(100), offUDP4, testPort), offUDP4+offUDPDst, 53), other},

		{"v4 first fragment", put16(frame4(100), offIP4Fragment, 0x2000), fragment},
		{"v4 middle fragment", put16(frame4(100), offIP4Fragment, 0x2010), fragment},
		{"v4 last fragment", put16(frame4(100), offIP4Fragment, 0x0010), fragment},
		{"v4 fragment at highest offset", put16(frame4(100), offIP4Fragment, 0x1fff), fragment},
		{"v6 fragment", extension6(frame6(100), 44), fragment},

		{"v4 options", options4(frame4(100)), options},
		{"v4 IHL 15 over the end", put8(frame4(10), offIP, 0x4f), options},
		{"v6 hop by hop", extension6(frame6(100), 0), options},
		{"v6 routing", extension6(frame6(100), 43), options},
		{"v6 destination options", extension6(frame6(100), 60), options},

		{"runt", ethernet(0x0800, nil), malformed},
		{"runt VLAN", ethernet(0x8100, []byte{0, 5}), malformed},
		{"v4 IHL 4", put8(frame4(100), offIP, 0x44), malformed},
		{"v4 IHL 0", put8(frame4(100), offIP, 0x40), malformed},
		{"v4 version 6", put8(frame4(100), offIP, 0x65), malformed},
		{"v6 version 4", put8(frame6(100), offIP, 0x45), malformed},
		{"v4 IP length 0", put16(frame4(100), offIP4Length, 0), malformed},
		{"v4 IP length 19", put16(frame4(100), offIP4Length, 19), malformed},
		{"v4 IP length without UDP", put16(frame4(100), offIP4Length, 27), malformed},
		{"v4 IP length over the end", put16(frame4(100), offIP4Length, 129), malformed},
		{"v4 IP length largest", put16(frame4(100), offIP4Length, 0xffff), malformed},
		{"v6 payload length 0", put16(frame6(100), offIP6Length, 0), malformed},
		{"v6 payload length 7", put16(frame6(100), offIP6Length, 7), malformed},
		{"v6 payload length over the end", put16(frame6(100), offIP6Length, 109), malformed},
		{"v4 UDP length 0", put16(frame4(100), offUDP4+offUDPLength, 0), malformed},
		{"v4 UDP length 7", put16(frame4(100), offUDP4+offUDPLength, 7), malformed},
		{"v4 UDP length over IP", put16(frame4(100), offUDP4+offUDPLength, 109), malformed},
		{"v4 UDP length over IP, in the padding", put16(append(frame4(1), make([]byte, 17)...), offUDP4+offUDPLength, 20), malformed},
		{"v6 UDP length 7", put16(frame6(100), offUDP6+offUDPLength, 7), malformed},
		{"v6 UDP length over IP", put16(frame6(100), offUDP6+offUDPLength, 109), malformed},
	}
}

func TestVerdicts(t *testing.T) {
	for _, multiBuffer := range []bool{true, false} {
		t.Run(fmt.Sprintf("multiBuffer=%t", multiBuffer), func(t *testing.T) {
			p := loadProgram(t, testOptions(), multiBuffer).withSocket(t)
			checkVerdicts(t, p, verdictCases())
		})
	}
}

// Without a configured MAC address, the program redirects packets to every unicast MAC address.
func TestAnyMAC(t *testing.T) {
	o := testOptions()
	o.MAC = [6]byte{}
	checkVerdicts(t, loadProgram(t, o, true).withSocket(t), []verdictCase{
		{"ours", frame4(100), steerVerdictREDIRECTED},
		{"of another", put8(frame4(100), 5, 9), steerVerdictREDIRECTED},
		{"broadcast", put8(frame4(100), 0, 0xff), steerVerdictPASSED_OTHER},
		{"multicast", put8(frame6(100), 0, 0x33), steerVerdictPASSED_OTHER},
	})
}

func TestVerdictsWithoutSocket(t *testing.T) {
	cases := verdictCases()
	for i := range cases {
		if cases[i].want == steerVerdictREDIRECTED {
			cases[i].want = steerVerdictPASSED_NO_SOCKET
		}
	}
	checkVerdicts(t, loadProgram(t, testOptions(), true), cases)
}

func checkVerdicts(t *testing.T, p program, cases []verdictCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.run(tt.frame)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("verdict: got %d, want %d\n% x", got, tt.want, tt.frame)
			}
		})
	}
}

// TestTruncated cuts valid frames to every length that the kernel accepts. The program redirects none of them.
func TestTruncated(t *testing.T) {
	p := loadProgram(t, testOptions(), true).withSocket(t)
	for name, frame := range map[string][]byte{
		"v4":      frame4(30),
		"v6":      frame6(30),
		"VLAN v4": tag(frame4(30), 0x8100),
		"VLAN v6": tag(frame6(30), 0x8100),
	} {
		for size := 14; size < len(frame); size++ {
			if got, err := p.run(frame[:size]); err != nil || got != steerVerdictPASSED_MALFORMED {
				t.Errorf("%s cut to %d of %d bytes: got %d, %v, want %d",
					name, size, len(frame), got, err, steerVerdictPASSED_MALFORMED)
			}
		}
	}
}

// TestMultiBuffer runs frames of several buffers: the checks of lengths must include all buffers.
func TestMultiBuffer(t *testing.T) {
	p := loadProgram(t, testOptions(), true).withSocket(t)
	const payload = 30000
	checkVerdicts(t, p, []verdictCase{
		{"v4", frame4(payload), steerVerdictREDIRECTED},
		{"v6", frame6(payload), steerVerdictREDIRECTED},
		{"v4 cut", frame4(payload)[:payload], steerVerdictPASSED_MALFORMED},
		{"v6 cut", frame6(payload)[:payload], steerVerdictPASSED_MALFORMED},
	})
}

func TestAddresses(t *testing.T) {
	last4, last6 := netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("2001:db8::8")
	o := testOptions()
	for i := range MaxAddresses - 3 {
		o.Addresses = append(o.Addresses, netip.AddrFrom4([4]byte{192, 0, 3, byte(i)}))
	}
	o.Addresses = append(o.Addresses, last4, local6, last6)
	p := loadProgram(t, o, true).withSocket(t)

	to := func(frame []byte, offset int, dst netip.Addr) []byte {
		copy(frame[offset:], dst.AsSlice())
		return frame
	}
	checkVerdicts(t, p, []verdictCase{
		{"first v4", to(frame4(100), offIP4Dst, o.Addresses[0]), steerVerdictREDIRECTED},
		{"last v4", to(frame4(100), offIP4Dst, last4), steerVerdictREDIRECTED},
		{"first v6", frame6(100), steerVerdictREDIRECTED},
		{"last v6", to(frame6(100), offIP6Dst, last6), steerVerdictREDIRECTED},
		{"v4 of another host", frame4(100), steerVerdictPASSED_OTHER},
		{"v6 of another host", to(frame6(100), offIP6Dst, remote6), steerVerdictPASSED_OTHER},
		{"v6 of a mapped v4 address", to(frame6(100), offIP6Dst, netip.AddrFrom16(last4.As16())), steerVerdictPASSED_OTHER},
		{"v4 zero", to(frame4(100), offIP4Dst, netip.IPv4Unspecified()), steerVerdictPASSED_OTHER},
		{"v6 zero", to(frame6(100), offIP6Dst, netip.IPv6Unspecified()), steerVerdictPASSED_OTHER},
		{"v4 fragment of another host", put16(frame4(100), offIP4Fragment, 0x2000), steerVerdictPASSED_OTHER},
	})
}

// TestRandomFrames runs the program on random frames and on valid frames with random damage. It compares the verdicts
// with a second implementation of the rules.
func TestRandomFrames(t *testing.T) {
	p := loadProgram(t, testOptions(), true).withSocket(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	runs := 0
	for start := time.Now(); time.Since(start) < time.Second; runs++ {
		frame := randomFrame(rng)
		want := expectedVerdict(frame)
		if got, err := p.run(frame); err != nil || got != want {
			t.Fatalf("seed %d, frame %d: got %d, %v, want %d\n% x", seed, runs, got, err, want, frame)
		}
	}
	t.Logf("%d frames", runs)
}

func randomFrame(rng *rand.Rand) []byte {
	frames := []func(int) []byte{frame4, frame6}
	frame := frames[rng.IntN(2)](rng.IntN(200))
	if rng.IntN(10) == 0 {
		for i := range frame {
			frame[i] = byte(rng.Uint32())
		}
	}
	if rng.IntN(4) == 0 {
		offset := offUDP4
		if frame[offEtherType] == 0x86 && len(frame) >= offUDP6+8 {
			offset = offUDP6
		}
		put16(frame, offset+offUDPDst, []uint16{testSource, testSource + 1, 65535}[rng.IntN(3)])
	}
	if rng.IntN(4) == 0 {
		frame = tag(frame, []uint16{0x8100, 0x88a8}[rng.IntN(2)])
	}
	for range rng.IntN(4) {
		frame[rng.IntN(min(len(frame), 66))] = byte(rng.Uint32())
	}
	if rng.IntN(3) == 0 {
		frame = frame[:14+rng.IntN(len(frame)-13)]
	}
	return frame
}

// TestVerdictNames compares the enum in the object with the names and fields in Go.
func TestVerdictNames(t *testing.T) {
	spec, err := loadSteer()
	if err != nil {
		t.Fatal(err)
	}
	var enum *btf.Enum
	if err := spec.Types.TypeByName("verdict", &enum); err != nil {
		t.Fatal(err)
	}
	want := map[string]steerVerdict{
		"REDIRECTED":       steerVerdictREDIRECTED,
		"PASSED_OTHER":     steerVerdictPASSED_OTHER,
		"PASSED_NO_SOCKET": steerVerdictPASSED_NO_SOCKET,
		"PASSED_FRAGMENT":  steerVerdictPASSED_FRAGMENT,
		"PASSED_OPTIONS":   steerVerdictPASSED_OPTIONS,
		"PASSED_MALFORMED": steerVerdictPASSED_MALFORMED,
		"VERDICTS":         steerVerdictVERDICTS,
	}
	for _, v := range enum.Values {
		if got, ok := want[v.Name]; !ok || uint64(got) != v.Value {
			t.Errorf("%s: C has %d, Go has %d, %t", v.Name, v.Value, got, ok)
		}
		delete(want, v.Name)
	}
	if len(want) != 0 {
		t.Errorf("not in C: %v", want)
	}
	if got := spec.Maps[steerMapCounters].MaxEntries; got != uint32(steerVerdictVERDICTS) {
		t.Errorf("counters: got %d entries, want %d", got, steerVerdictVERDICTS)
	}
}

// TestCounterFields checks that every verdict has its own field.
func TestCounterFields(t *testing.T) {
	var c Counters
	for v := range steerVerdictVERDICTS {
		*c.field(v)++
	}
	if want := (Counters{1, 1, 1, 1, 1, 1}); c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
}
