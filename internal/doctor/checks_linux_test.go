package doctor

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/ianame"
)

func severityOf(fs []Finding) Severity {
	s := OK
	for _, f := range fs {
		s = max(s, f.Severity)
	}
	return s
}

func TestKernel(t *testing.T) {
	tests := []struct {
		release string
		want    Severity
		found   string
	}{
		{"6.18.44-generic", OK, "Linux 6.18.44-generic: AF_XDP"},
		{"6.8.0", Info, "a larger transmit budget comes with 6.17"},
		{"5.15.0-91", Info, "native mode at jumbo MTU comes with 5.18, packets of several frames (multi-buffer) comes with 6.6"},
		{"5.10.0", Error, "too old"},
		{"unknown", Warning, "unknown"},
	}
	for _, tt := range tests {
		if got := kernelFinding(tt.release); severityOf(got) != tt.want || !strings.Contains(got[0].Found, tt.found) {
			t.Errorf("%s: got %+v, want %v, %q", tt.release, got, tt.want, tt.found)
		}
	}
}

func TestLacks(t *testing.T) {
	bits := func(all ...uint) (caps uint64) {
		for _, b := range all {
			caps |= 1 << b
		}
		return caps
	}
	net := bits(unix.CAP_NET_ADMIN, unix.CAP_NET_RAW)
	tests := []struct {
		name   string
		caps   uint64
		kernel version
		want   string
	}{
		{"none", 0, version{6, 1}, "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF"},
		{"all", net | bits(unix.CAP_BPF), version{6, 1}, ""},
		{"old kernel", net | bits(unix.CAP_BPF), version{5, 15}, "CAP_PERFMON"},
		{"old root", net | bits(unix.CAP_SYS_ADMIN), version{5, 15}, ""},
		{"no socket", bits(unix.CAP_NET_ADMIN, unix.CAP_BPF), version{6, 1}, "CAP_NET_RAW"},
	}
	for _, tt := range tests {
		if got := strings.Join(names(lacks(tt.caps, tt.kernel)), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMemlock(t *testing.T) {
	tests := []struct {
		limit  uint64
		queues int
		want   Severity
		found  string
	}{
		{unix.RLIM_INFINITY, 64, OK, "any amount of memory may be locked, 1024 MiB are needed"},
		{16 << 20, 1, OK, "16 MiB of memory may be locked"},
		{64 << 10, 1, Error, "only 64 KiB of memory may be locked, 16 MiB are needed for 1 queue"},
		{16 << 20, 4, Error, "only 16 MiB of memory may be locked, 64 MiB are needed for 4 queues"},
	}
	for _, tt := range tests {
		if got := memlockFinding(tt.limit, tt.queues, uint64(tt.queues)<<24); severityOf(got) != tt.want || !strings.Contains(got[0].Found, tt.found) {
			t.Errorf("%d for %d queues: got %+v, want %v, %q", tt.limit, tt.queues, got, tt.want, tt.found)
		}
	}
}

func TestExcludes(t *testing.T) {
	tests := []struct {
		have, want string
		is         bool
	}{
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.2", "10.0.0.1", false},
		{"0.0.0.0", "10.0.0.1", true},
		{"::", "10.0.0.1", true},
		{"::", "fd00::1", true},
		{"0.0.0.0", "fd00::1", false},
	}
	for _, tt := range tests {
		if got := excludes(netip.MustParseAddr(tt.have), netip.MustParseAddr(tt.want)); got != tt.is {
			t.Errorf("%s against %s: got %t", tt.have, tt.want, got)
		}
	}
}

// TestRemove: the recommended command matches the way in which the program is attached.
func TestRemove(t *testing.T) {
	tests := []struct {
		name string
		p    program
		want string
	}{
		{"netlink", program{id: 7, name: "p", mode: "xdpgeneric", known: true}, "ip link set dev eth0 xdpgeneric off"},
		{"link of a process", program{id: 7, link: 3, known: true, by: holder{42, "suricata"}}, "kill 42"},
		{"link of nobody seen", program{id: 7, link: 3, known: true}, "bpftool link detach id 3"},
		{"libxdp", program{id: 7, name: "xdp_dispatcher", mode: "xdpdrv", known: true}, "xdp-loader unload eth0 --all"},
		{"unknown", program{id: 7, mode: "xdpdrv"}, ""},
	}
	for _, tt := range tests {
		got := programFinding("eth0", tt.p)[0]
		if command, _ := strings.CutPrefix(got.Command, "sudo "); command != tt.want || got.Severity != Error {
			t.Errorf("%s: %+v, want %q", tt.name, got, tt.want)
		}
	}
}

// TestProgramModes: if there are programs in two modes, the kernel reports the name of neither.
func TestProgramModes(t *testing.T) {
	const attachedMulti = 4 // XDP_ATTACHED_MULTI of linux/if_link.h
	tests := []struct {
		name  string
		on    *netlink.LinkXdp
		want  Severity
		found string
	}{
		{"none", nil, OK, "no XDP program is on eth0"},
		{"none said", &netlink.LinkXdp{}, OK, "no XDP program is on eth0"},
		{"two", &netlink.LinkXdp{Attached: true, AttachMode: attachedMulti}, Error, "XDP programs are on eth0 in more than one mode"},
	}
	for _, tt := range tests {
		x := &exam{facts: facts{link: &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "eth0", Xdp: tt.on}}}}
		got := checkProgram(t.Context(), x)
		if severityOf(got) != tt.want || got[0].Found != tt.found || (got[0].Fix == "") != (tt.want == OK) {
			t.Errorf("%s: got %+v, want %v, %q", tt.name, got, tt.want, tt.found)
		}
	}
}

// TestRareFixes: findings that this test cannot cause on the host have a remedy too.
func TestRareFixes(t *testing.T) {
	x := &exam{Target: Target{kind: ianame.XDP, Port: 17474, Peer: netip.MustParseAddr("192.0.2.9")}}
	x.link = &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "nowhere0"}}
	x.address = netip.MustParseAddr("192.0.2.7")
	odd := errors.New("odd")
	udp := &exam{Target: Target{kind: ianame.UDP}}
	for command, got := range map[string][]Finding{
		"ip route get 192.0.2.9 oif nowhere0":                   x.routeUnread(odd),
		"datbench doctor --ia udp:192.0.2.7 --port 17474 --try": x.refusal(odd),
		"": udp.refusal(odd),
	} {
		if got[0].Severity != Error || got[0].Fix == "" || got[0].Command != command || !strings.Contains(got[0].Found, "odd") {
			t.Errorf("got %+v, want an error with a fix, and %q to type", got[0], command)
		}
	}
}

// TestHolderName: the name of a process does not control the terminal.
func TestHolderName(t *testing.T) {
	if got, want := (holder{42, "\x1b[31mred"}).String(), `process 42 ("\x1b[31mred")`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
