package doctor_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/doctor"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestVerdictsOfNamesAreWhatHappens: doctor opens the interfaces that open does, whatever their names are made of. An
// alternative name is refused with a sentence that tells the name.
func TestVerdictsOfNamesAreWhatHappens(t *testing.T) {
	labtest.RequireXDP(t)
	const long = "a-name-of-more-than-fifteen-bytes"
	for _, tt := range []struct {
		name, ia string
		works    bool
	}{
		{"eth0.100", "xdp:eth0.100", true}, {"eth0.100", "udp:eth0.100", true},
		{"a,b", "xdp:a,b", true}, {"a,b", "xdp:a,b,copy", true}, {"a,b", "auto:a,b,generic", true}, {"a,b", "udp:a,b", true}, {"a,b", "xdp:a,fast", false},
		{"7", "xdp:7", true}, {"7", "udp:7", true}, {"7", "udp:8", false},
		{"10.5", "auto:10.5", true}, {"10.5", "udp:10.5", true}, {"10.5", "udp:10.73.0.1", true}, {"10.5", "udp:10.73.0.256", false},
		{"copy", "xdp:copy", true}, {"copy", "xdp:copy,copy", true}, {"%d0", "xdp:%d0", false},
		{lab.Interface, "xdp:other0", false}, {lab.Interface, "udp:other0", false}, {lab.Interface, "auto:other0,copy", false},
		{lab.Interface, "xdp:" + long, false}, {lab.Interface, "udp:" + long, false},
	} {
		t.Run(tt.ia, func(t *testing.T) {
			t.Parallel()
			s := &setUp{ia: tt.ia, peer: netip.MustParseAddr("10.73.0.2"), change: func() error {
				return withLink(func(l netlink.Link) error {
					return errors.Join(netlink.LinkAddAltName(l, "other0"), netlink.LinkAddAltName(l, long))
				})
			}}
			l := s.build(t)
			if !strings.Contains(tt.name, "%") {
				must(t, l.Do(lab.A, func() error { return labtest.Rename(lab.Interface, tt.name) }))
			}
			must(t, l.Do(lab.A, func() error {
				r, err := doctor.Examine(t.Context(), doctor.Target{IA: tt.ia})
				says := err == nil && r.Severity < doctor.Error
				ia, err := dat.Open(tt.ia, dat.DefaultOptions())
				if err == nil {
					defer ia.Close()
				}
				if happens := err == nil; says != happens || happens != tt.works {
					t.Errorf("doctor: %t, open: %v; want %t", says, err, tt.works)
				}
				if what, alt := tt.ia[strings.Index(tt.ia, ":")+1:], tt.name == lab.Interface; alt && !strings.Contains(err.Error(), "is another name of veth0") {
					t.Errorf("%s: %v", what, err)
				}
				return nil
			}))
		})
	}
}
