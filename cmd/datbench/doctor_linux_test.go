package main

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

func TestKernelCheck(t *testing.T) {
	tests := []struct{ release, finding, fix string }{
		{"6.18.44-generic", findingOK, ""},
		{"6.8.0", findingWarn, "a larger transmit budget comes with 6.17"},
		{"5.15.0-91", findingWarn, "jumbo frames (multi-buffer) comes with 6.6; transmit metadata comes with 6.8; a larger transmit budget comes with 6.17"},
		{"5.10.0", findingFail, "upgrade to Linux 5.11 or newer"},
		{"unknown", findingWarn, "version not understood; Linux 5.11 or newer is needed"},
	}
	for _, tt := range tests {
		t.Run(tt.release, func(t *testing.T) {
			if got := kernelCheck(tt.release); got.finding != tt.finding || got.fix != tt.fix {
				t.Errorf("got %+v, want %s, %q", got, tt.finding, tt.fix)
			}
		})
	}
}

func TestHasPort(t *testing.T) {
	const table = "  sl  local_address rem_address   st\n  100: 0100007F:4441 00000000:0000 07\n"
	if !hasPort([]byte(table), 0x4441) || hasPort([]byte(table), 0) {
		t.Error("port 0x4441 is in the table as a local port, and 0 is not")
	}
}

// attribute is one netlink attribute, padded.
func attribute(kind uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestParseXDP(t *testing.T) {
	nested := slices.Concat(attribute(iflaXDPMode, []byte{2}), attribute(iflaXDPProgram, binary.NativeEndian.AppendUint32(nil, 42)))
	all := slices.Concat(attribute(3, []byte("eth0\x00")), attribute(iflaXDP|nestedFlag, nested))
	id, mode, err := parseXDP(attributes(all)[iflaXDP])
	if id != 42 || mode != "xdpgeneric" || err != nil {
		t.Errorf("got %d, %q, %v, want 42, xdpgeneric", id, mode, err)
	}
}

func FuzzAttributes(f *testing.F) {
	f.Add(attribute(iflaXDP, attribute(iflaXDPMode, []byte{1})))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range attributes(b) {
			if len(v) > len(b) {
				t.Errorf("an attribute of %d bytes in %d", len(v), len(b))
			}
			_, _, _ = parseXDP(v)
		}
	})
}

func TestDoctor(t *testing.T) {
	got := datbench(t, "doctor", "lo")
	if got.code != exitValid && got.code != exitUsage {
		t.Errorf("exit status %d: %s", got.code, got.stderr)
	}
	if failed := strings.Contains(got.stdout, findingFail); failed != (got.code == exitUsage) {
		t.Errorf("exit status %d with\n%s", got.code, got.stdout)
	}
	for _, want := range []string{"kernel", "privilege", "AF_XDP", "locked memory", "UDP port 17473", "lo XDP"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	got = datbench(t, "doctor", "nope0")
	if got.code != exitUsage || !strings.HasPrefix(got.lastLine(), `datbench: no interface "nope0"; this host has lo`) {
		t.Errorf("unknown interface: exit %d, %s", got.code, got.lastLine())
	}
}
