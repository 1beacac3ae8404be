package doctor

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/ianame"
)

func TestTarget(t *testing.T) {
	tests := []struct {
		ia                      string
		kind                    ianame.Kind
		ifname, mode, addr, err string
	}{
		{"xdp:eth0", ianame.XDP, "eth0", "", "invalid IP", ""},
		{"xdp:eth0,zero-copy", ianame.XDP, "eth0", "zero-copy", "invalid IP", ""},
		{"auto:eth0", ianame.Auto, "eth0", "", "invalid IP", ""},
		{"auto:eth0,copy", ianame.XDP, "eth0", "copy", "invalid IP", ""}, // auto never replaces a mode that was requested by name
		{"udp:10.0.0.1", ianame.UDP, "", "", "10.0.0.1", ""},
		{"xdp:eth0,copy silence=5s", ianame.XDP, "eth0", "copy", "invalid IP", ""},
		{"xdp:eth0 port=0", "", "", "", "", `"port=0" is not a number from 1 to 65535`},
		{"udp:::1", ianame.UDP, "", "", "::1", ""},
		{"eth0", "", "", "", "", `"eth0" is not an adapter: write xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS`},
		{"xdp:", "", "", "", "", `"xdp:" is not an adapter: write xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS`},
		{"rdma:eth0", "", "", "", "", `"rdma:eth0" is not an adapter: no kind is called "rdma", use xdp, auto or udp`},
		{"xdp:eth0,fast", "", "", "", "", `no mode is called "fast": use zero-copy, copy or generic`},
		{"udp:10.0.0.256", "", "", "", "", `"10.0.0.256" is neither an IP address nor an interface of this host, as udp: needs`},
		{"udp:none0", ianame.UDP, "none0", "", "invalid IP", ""}, // a check says that there is no such interface
		{"xdp:eth0 silence=1ms", "", "", "", "", `silence=1ms is not a time from 100ms to 1m0s`},
	}
	for _, tt := range tests {
		t.Run(tt.ia, func(t *testing.T) {
			target := Target{IA: tt.ia}
			err := target.resolve()
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			got := []string{string(target.kind), target.ifname, target.mode, target.addr.String()}
			if diff := cmp.Diff([]string{string(tt.kind), tt.ifname, tt.mode, tt.addr}, got); diff != "" || err != nil || target.Port != dat.DefaultPort {
				t.Errorf("port %d, %v (-want +got):\n%s", target.Port, err, diff)
			}
		})
	}
}

// TestAdd: the severity of an error depends on the kind of adapter.
func TestAdd(t *testing.T) {
	onlyXDP, both := check{name: "a", scope: scopeInterface, xdp: true}, check{name: "b", scope: scopeInterface}
	tests := []struct {
		kind     ianame.Kind
		check    check
		want     Severity
		stopped  string
		fallback string
	}{
		{ianame.XDP, onlyXDP, Error, "bad", ""},
		{ianame.XDP, both, Error, "bad", ""},
		{ianame.Auto, onlyXDP, Warning, "", "bad"},
		{ianame.Auto, both, Error, "bad", ""},
		{ianame.UDP, both, Error, "bad", ""},
	}
	for _, tt := range tests {
		x := &exam{Target: Target{kind: tt.kind, ifname: "eth0"}}
		for _, f := range failure("bad", "", "", "") {
			x.add(tt.check, f)
		}
		f := x.findings[0]
		if f.Severity != tt.want || x.stopped != tt.stopped || x.fallback != tt.fallback || f.Group != "eth0" || f.Check != tt.check.name {
			t.Errorf("%s, check %s: %+v, stopped %q, fallback %q", tt.kind, tt.check.name, f, x.stopped, x.fallback)
		}
	}
}

func TestVerdict(t *testing.T) {
	peer := netip.MustParseAddr("10.0.0.2")
	tests := []struct {
		name string
		x    exam
		want string
	}{
		{"granted", exam{Target: Target{kind: ianame.XDP, ifname: "eth0", mode: "copy"}}, "AF_XDP will run in copy mode on eth0."},
		{"stopped", exam{Target: Target{kind: ianame.XDP, ifname: "eth0"}, stopped: "eth0 is down"}, "AF_XDP will not work on eth0: eth0 is down."},
		{"fallback", exam{Target: Target{kind: ianame.Auto, ifname: "eth0"}, fallback: "no root"}, "Only UDP will work on eth0, because: no root."},
		{"nothing", exam{Target: Target{kind: ianame.Auto, ifname: "eth0"}, stopped: "eth0 is down"}, "Nothing will work on eth0, neither AF_XDP nor UDP: eth0 is down."},
		{"udp", exam{Target: Target{kind: ianame.UDP, addr: peer}}, "UDP will work on 10.0.0.2."},
		{"no udp", exam{Target: Target{kind: ianame.UDP, addr: peer}, stopped: "taken"}, "UDP will not work on 10.0.0.2: taken."},
		{"no peer", exam{Target: Target{kind: ianame.XDP, ifname: "eth0", mode: "copy", Peer: peer}, unreached: "silence"},
			"AF_XDP will run in copy mode on eth0, but nothing will reach 10.0.0.2: silence."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.x.verdict(); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// sample returns a report with a finding of each severity.
func sample() *Report {
	r := &Report{IA: "xdp:eth0", Port: dat.DefaultPort, Peer: "10.0.0.2", Findings: []Finding{
		{"kernel", "host", OK, "Linux 6.18", "", "", ""},
		{"rings", "eth0", Info, "rings of 256 slots to receive, 256 to send; 4096 and 4096 are possible",
			"A burst that is longer is dropped by the device.", "make them larger if drops are counted", "ethtool -G eth0 rx 4096"},
		{"offloads", "eth0", Warning, "the device merges packets: lro, rx-gro-hw", "Some drivers refuse XDP with it, others drop what was merged, " +
			"and this sentence is longer than a line.", "switch it off", "ethtool -K eth0 lro off rx-gro-hw off"},
		{"route", "peer 10.0.0.2", Error, "no route leads to 10.0.0.2 through eth0", "Nothing can be sent to it.", "check the address", ""},
	}}
	r.finish("AF_XDP will run in zero-copy mode on eth0, but nothing will reach 10.0.0.2: no route leads to 10.0.0.2 through eth0.")
	return r
}

// TestPrint compares the layout with testdata; UPDATE=1 writes it.
func TestPrint(t *testing.T) {
	for name, colour := range map[string]bool{"plain": false, "colour": true} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := sample().Print(&b, colour); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", b.String())
		})
	}
	b, err := json.MarshalIndent(sample(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(b)+"\n")
	var back Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), &back); diff != "" {
		t.Errorf("there and back (-want +got):\n%s", diff)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestNames: every check has a unique name and a description.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range table() {
		if seen[c.name] || c.name == "" || c.about == "" {
			t.Errorf("check %q, %q: the name is taken, or something is empty", c.name, c.about)
		}
		seen[c.name] = true
	}
}

// TestExplainNothing: Explain returns nothing if it finds no explanation.
func TestExplainNothing(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, target := range map[string]Target{
		"no adapter": {IA: "nonsense"}, "nobody's fault": {IA: "udp:127.0.0.1", Port: 17651}, "interrupted": {IA: "xdp:nope0"},
	} {
		ctx := t.Context()
		if name == "interrupted" {
			ctx = over
		}
		if got := Explain(ctx, target); len(got) > 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestSeverityUnknown: an unknown word does not change the severity.
func TestSeverityUnknown(t *testing.T) {
	s := Warning
	if err := s.UnmarshalText([]byte("fatal")); err == nil || s != Warning {
		t.Errorf("got %v, %v, want %v and an error", s, err, Warning)
	}
}
