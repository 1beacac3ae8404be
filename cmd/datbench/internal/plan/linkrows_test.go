package plan

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLinksJob: each link has the same rows, with adapters in its mode at both ends. No two rows have the same identity.
func TestLinksJob(t *testing.T) {
	cfg := DefaultOptions()
	l := Link{Transport: TransportXDP, MTU: 1500,
		Target:    End{IA: "xdp:a0", Addr: netip.MustParseAddr("10.0.0.1")},
		Initiator: End{IA: "xdp:b0", Addr: netip.MustParseAddr("10.0.0.2")}}
	var got []string
	seen := map[any]bool{}
	for _, ph := range LinksJob(&cfg, l)[0] {
		for _, r := range ph.Rows {
			got = append(got, ph.Target.Kind+" "+ph.Target.IA+" "+ph.Initiator.IA+": "+r.Title()+": "+r.WantMode)
			if seen[r.Row] {
				t.Errorf("%s: two rows with this identity", r.Title())
			}
			seen[r.Row] = true
		}
	}
	want := []string{"tcp xdp:a0 xdp:b0: bandwidth tcp 1 MiB at MTU 1500: "}
	for _, link := range []struct{ adapters, over, in, mode string }{
		{"xdp:a0,copy xdp:b0,copy", "", " in copy mode", "copy"},
		{"xdp:a0,generic xdp:b0,generic", "", " in generic mode", "generic"},
		{"udp:10.0.0.1 udp:10.0.0.2", " over udp", "", "udp"},
	} {
		want = append(want,
			"dat "+link.adapters+": round trip send 64 B"+link.over+" at MTU 1500"+link.in+": "+link.mode,
			"dat "+link.adapters+": message rate send 64 B"+link.over+" at MTU 1500"+link.in+": "+link.mode,
			"dat "+link.adapters+": bandwidth write 1 MiB"+link.over+" at MTU 1500"+link.in+": "+link.mode,
			"tcp_shared "+link.adapters+": bandwidth tcp_shared 1 MiB at MTU 1500 in "+link.mode+" mode: "+link.mode,
			"dat "+link.adapters+": bandwidth write 1 MiB"+link.over+" at MTU 9000"+link.in+": "+link.mode)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
