package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTransferred(t *testing.T) {
	const table = "serving on 10.9.0.1, UDP port 17473: xdp:igb, mode copy\nSHA-256 at MTU 1500\n"
	const rows = `{"op":"send","mode":"copy","retransmits":2,"valid":true},{"op":"write","mode":"copy","drops":1,"valid":true},{"op":"read","mode":"copy",`
	for name, tt := range map[string]struct {
		out  string
		want outcome
	}{
		"right":   {table + `{"results":[` + rows + `"valid":true}]}`, outcome{Granted: "copy", Right: true, Resent: 2, Drops: 1}},
		"wrong":   {table + "what arrived differs\n" + `{"results":[` + rows + `"valid":false}]}`, outcome{Granted: "copy", Resent: 2, Drops: 1, Trouble: "SHA-256 at MTU 1500; what arrived differs"}},
		"missing": {table + `{"results":[` + strings.TrimSuffix(rows, `,{"op":"read","mode":"copy",`) + `]}`, outcome{Granted: "copy", Resent: 2, Drops: 1, Trouble: "SHA-256 at MTU 1500"}},
		"refused": {"datbench: dat: opening xdp:igb,zero-copy: xdp: igb queue 0: no\n", outcome{Refusal: "igb queue 0: no"}},
		"broken":  {table + "datbench: connection broken\n", outcome{Trouble: "SHA-256 at MTU 1500; datbench: connection broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got outcome
			got.transferred(tt.out, transfers)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOpened(t *testing.T) {
	for out, want := range map[string]outcome{
		"serving on 10.9.0.1, UDP port 17473: xdp:igb, mode generic\n": {Granted: "generic"},
		"datbench: dat: opening xdp:over: xdp: over has no address\n":  {Refusal: "over has no address"},
		"RTNETLINK answers: Invalid argument\n":                        {Trouble: "RTNETLINK answers: Invalid argument"},
	} {
		var got outcome
		got.opened(out)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
			t.Errorf("%s(-want +got)\n%s", out, diff)
		}
	}
}

// TestSearch finds every bound, with and without an expected MTU. It needs few tries if the expected MTU is right.
func TestSearch(t *testing.T) {
	for _, tt := range []struct{ expected, bound, want, most int }{
		{3800, 3800, 3800, 2}, {0, 0, 0, 1}, {largestMTU, largestMTU, largestMTU, 2}, {3800, 3046, 3046, 20}, {3046, 3800, 3800, 20},
		{3800, largestMTU, largestMTU, 4}, {0, 2000, 2000, 20}, {largestMTU, 1280, 1280, 20}, {3000, 1000, 0, 2},
	} {
		tries := 0
		got := search(tt.expected, func(mtu int) bool { tries++; return mtu <= tt.bound })
		if got != tt.want || tries > tt.most {
			t.Errorf("bound %d, %d expected: got %d in %d tries, want %d in %d", tt.bound, tt.expected, got, tries, tt.want, tt.most)
		}
	}
}

func TestExpected(t *testing.T) {
	for _, tt := range []struct {
		c      trial
		kernel string
		want   string
	}{
		{trial{NIC: "igb", Asked: "zero-copy", MTU: 1500}, "7.3.4+deb13-amd64", "zero-copy"},
		{trial{NIC: "igb", Asked: "zero-copy", MTU: 1500}, "6.12.107+deb13-amd64", ""},
		{trial{NIC: "igb", Asked: "auto", MTU: 9000}, "7.3.4+deb13-amd64", "generic"},
		{trial{NIC: "plain", Asked: "auto", MTU: 1500}, "6.1.0-50-amd64", "copy"},
		{trial{NIC: "virtio", Asked: "auto", MTU: 9000}, "6.1.0-50-amd64", "udp"},
		{trial{NIC: "e1000e", Asked: "copy", MTU: 1500}, "7.3.4+deb13-amd64", ""},
	} {
		if got := tt.c.expected(parseRelease(tt.kernel)); got != tt.want {
			t.Errorf("%v under %s: got %q, want %q", tt.c, tt.kernel, got, tt.want)
		}
	}
}

// TestDocument: every finding has a row, and no cell breaks its table.
func TestDocument(t *testing.T) {
	f := findings{Command: "make nics", Kernels: []string{"7.3.4+deb13-amd64"}, Skipped: []string{"trixie: no mirror"},
		Trials: []outcome{
			{trial: trial{NIC: "igb", Asked: "auto", MTU: 9000, Queues: 1}, Kernel: "7.3.4+deb13-amd64", Granted: "generic", Right: true, Resent: 3},
			{trial: trial{NIC: "virtio", Over: "vlan", Asked: "copy", MTU: 1500}, Kernel: "6.1.0-50-amd64", Refusal: "a | b"},
		},
		Bounds: []outcome{{trial: trial{NIC: "igb", Asked: "copy", MTU: 3046}, Kernel: "7.3.4+deb13-amd64", Refusal: "too large"}},
		Faults: []fault{{Name: "carrier-lost", NIC: "igb", About: "the cable is out", Kernel: "7.3.4+deb13-amd64", Seen: "it broke"}},
	}
	got := f.document()
	for _, want := range []string{
		"* Skipped: trixie: no mirror.\n",
		"| igb | 7.3.4 | copy | 3046 | too large |\n",
		"| igb | 7.3.4 | auto | 9000 | 1 | generic; 3 resent, 0 dropped |\n",
		"| vlan | virtio_net, iommu_platform=on | 6.1.0-50 | copy | refused: a \\| b |\n",
		"| carrier-lost | igb | 7.3.4 | the cable is out | **fails**: it broke |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}
