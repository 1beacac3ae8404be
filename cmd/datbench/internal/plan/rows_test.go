package plan

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/cmd/datbench/internal/tap"
	"github.com/datxdp/datxdp/internal/result"
)

func TestRows(t *testing.T) {
	c := DefaultOptions()
	c.IA, c.Ops, c.Metrics = "xdp:eth0,zero-copy", []string{result.Send, result.Read}, []string{result.Latency, result.Bandwidth}
	var got []string
	for _, r := range c.Rows("xdp") {
		got = append(got, r.Title()+" "+r.WantMode+" "+strconv.Itoa(r.QueueDepth()))
	}
	want := []string{"round trip send 64 B zero-copy 1", "round trip read 64 B zero-copy 1",
		"bandwidth send 1 MiB zero-copy " + strconv.Itoa(bandwidthDepth), "bandwidth read 1 MiB zero-copy " + strconv.Itoa(bandwidthDepth)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// contract lists the rows of the main job over XDP, in order. stream and tcp_spin need --full, and
// tcp_shared has one row.
func contract() []string {
	rows := []string{"bw raw 9000", "bw write 9000", "bw tcp 9000", "bw raw 65000", "bw write 65000", "bw tcp 65000", "bw tcp_shared 1500"}
	for _, metric := range []string{"lat", "rate", "bw"} {
		for _, op := range append(result.OperationNames(result.ClassFrames, result.ClassDAT), result.TCP) {
			rows = append(rows, metric+" "+op+" 1500")
		}
	}
	return slices.Sorted(slices.Values(rows))
}

// TestMainRows: the main job has the rows of the contract.
func TestMainRows(t *testing.T) {
	cfg := DefaultOptions()
	rows := func() (got []string) {
		for _, phases := range mainPhasesXDP(&cfg, Link{Transport: TransportXDP, MTU: 1500}) {
			for _, ph := range phases {
				for _, r := range ph.Rows {
					name := r.Metric + " " + r.Op + " " + strconv.Itoa(r.MTU)
					if r.OverUDP() {
						name += " udp"
					}
					got = append(got, name)
				}
			}
		}
		return slices.Sorted(slices.Values(got))
	}
	udp := []string{"lat send 1500 udp", "rate send 1500 udp", "bw write 1500 udp", "bw write 9000 udp"}
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(contract(), udp...))), rows()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cfg.Transport = TransportXDP
	if diff := cmp.Diff(contract(), rows()); diff != "" {
		t.Errorf("--transport xdp (-want +got):\n%s", diff)
	}
	cfg.Ops, cfg.MTUs = []string{result.Write}, []int{9000}
	if labs := mainPhasesXDP(&cfg, Link{}); len(labs) != 1 || CountRows(labs[0]) != 1 {
		t.Errorf("filtered: got %+v, want one row", labs)
	}
}

// TestMainJobTime: the rows of the main job take at most 20 s, so that a run takes less than 30 s with the times in which
// ends are opened and closed.
func TestMainJobTime(t *testing.T) {
	cfg := DefaultOptions()
	var sum time.Duration
	for _, phases := range mainPhasesXDP(&cfg, Link{Transport: TransportXDP, MTU: 1500}) {
		for _, ph := range phases {
			for _, r := range ph.Rows {
				sum += r.Warmup + r.Duration
			}
		}
	}
	if sum > 20*time.Second {
		t.Errorf("the rows take %s", sum)
	}
}

// TestMainStations: the phases over kernel UDP have adapters on the addresses of the ends, and the phase of kernel TCP
// beside XDP has adapters on their interfaces.
func TestMainStations(t *testing.T) {
	cfg := DefaultOptions()
	l := Link{Transport: TransportXDP, MTU: 1500,
		Target:    End{IA: "xdp:a0", Addr: netip.MustParseAddr("10.0.0.1")},
		Initiator: End{IA: "xdp:b0", Addr: netip.MustParseAddr("10.0.0.2")}}
	want := map[string]string{
		"send udp": "dat udp:10.0.0.1 udp:10.0.0.2", "write udp": "dat udp:10.0.0.1 udp:10.0.0.2",
		"send xdp": "dat xdp:a0 xdp:b0", "tcp_shared tcp": "tcp_shared xdp:a0 xdp:b0",
	}
	seen := map[string]bool{}
	for _, phases := range mainPhasesXDP(&cfg, l) {
		for _, ph := range phases {
			got := ph.Target.Kind + " " + ph.Target.IA + " " + ph.Initiator.IA
			for _, r := range ph.Rows {
				name := r.Op + " " + r.Transport
				if w := want[name]; w != "" && w != got {
					t.Errorf("%s at MTU %d: got %s, want %s", name, r.MTU, got, w)
				}
				seen[name] = true
			}
		}
	}
	for name := range want {
		if !seen[name] {
			t.Errorf("no row of %s", name)
		}
	}
}

func TestImpairment(t *testing.T) {
	var i Impairment
	if got := i.Passes(); len(got) != 1 || got[0] != "" {
		t.Errorf("none: got passes %q", got)
	}
	if err := i.Set("loss=1%,dup=0.5,seed=7"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "loss=0.01,dup=0.5,seed=7"}, i.Passes()); diff != "" {
		t.Errorf("passes (-want +got):\n%s", diff)
	}
	if err := i.Set("loss=1%"); err != nil || i.Seed < 1 || i.Seed > maxSeed {
		t.Errorf("seed %d, %v: want one that was drawn", i.Seed, err)
	}
	again, err := tap.Parse(i.Text())
	if err != nil || again != i.Rates {
		t.Errorf("%q is read as %+v, %v", i.Text(), again, err)
	}
	if err := i.Set(""); err != nil || i.Text() != "" {
		t.Errorf("got %q, %v, want none", i.Text(), err)
	}
}

// TestImpairedRows: each row is measured with and without the impairment. TCP is measured only if packets are lost.
func TestImpairedRows(t *testing.T) {
	dat := []string{"bw write 1500", "lat send 1500", "bw write 1500 impaired", "lat send 1500 impaired"}
	tcp := []string{"bw tcp 1500 plain", "lat tcp 1500 plain", "bw tcp 1500 impaired plain", "lat tcp 1500 impaired plain"}
	for rates, want := range map[string][]string{"loss=1%": append(dat[:4:4], tcp...), "corrupt=1%": append(dat[:4:4], tcp...), "dup=1%": dat} {
		cfg := DefaultOptions()
		if err := cfg.Impair.Set(rates); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ph := range MainJob(&cfg, Link{Transport: TransportXDP, MTU: 1500})[0] {
			for _, r := range ph.Rows {
				name := r.Metric + " " + r.Op + " " + strconv.Itoa(r.MTU)
				if r.Impair != "" {
					name += " impaired"
				}
				if ph.NoOffloads {
					name += " plain"
				}
				if r.Impair != ph.Target.Impair || r.Impair != ph.Initiator.Impair {
					t.Errorf("%s: %q at the target, %q at the initiator", name, ph.Target.Impair, ph.Initiator.Impair)
				}
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rates, diff)
		}
	}
}

// TestWantMode: options after the name of an adapter do not belong to the mode.
func TestWantMode(t *testing.T) {
	for ia, want := range map[string]string{"xdp:eth0,copy": "copy", "xdp:eth0,zero-copy silence=5s": "zero-copy", "xdp:eth0 port=4000": "",
		"auto:eth0": "", "udp:10.0.0.1": ""} {
		if got := wantMode(ia); got != want {
			t.Errorf("%s: got %q, want %q", ia, got, want)
		}
	}
}
