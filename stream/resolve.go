package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// resolve returns the addresses of host:port, in the order of RFC 6724. If the network ends in 4 or 6, it returns only
// those of IPv4 or IPv6. Without a host, or with an unspecified one, the address is that of the adapter itself: package
// net takes the local system then.
func (s *stack) resolve(ctx context.Context, network, address string) ([]*net.TCPAddr, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	hosts, err := s.lookUp(ctx, family(network), host)
	if err != nil {
		return nil, err
	}
	var all []*net.TCPAddr
	for _, h := range hosts {
		all = append(all, net.TCPAddrFromAddrPort(netip.AddrPortFrom(h.Unmap(), uint16(port))))
	}
	return all, nil
}

func (s *stack) lookUp(ctx context.Context, family, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.Unmap().IsUnspecified() {
		own, err := s.address()
		if err != nil {
			return nil, err
		}
		return []netip.Addr{own.AddrPort().Addr()}, nil
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() != "" && family != "ip4" {
		return []netip.Addr{a}, nil // LookupNetIP removes the zone
	}
	return net.DefaultResolver.LookupNetIP(ctx, family, host)
}

// family returns the argument of LookupNetIP for the name of a network, such as tcp4.
func family(network string) string {
	switch {
	case strings.HasSuffix(network, "4"):
		return "ip4"
	case strings.HasSuffix(network, "6"):
		return "ip6"
	}
	return "ip"
}

// minShare is the least time for an attempt, if the whole time suffices for it (net.Dialer has the same).
const minShare = 2 * time.Second

// connectAny connects to the first of the addresses that answers. Each attempt has the same share of the time that is
// left, as those of net.Dialer have. The error names each address.
func (d *Dialer) connectAny(ctx context.Context, s *stack, all []*net.TCPAddr) (*Conn, error) {
	end := time.Now().Add(d.timeout())
	var failures []error
	for i, remote := range all {
		if ctx.Err() != nil && i > 0 {
			break
		}
		c, err := d.connect(ctx, s, remote, share(ctx, end, len(all)-i))
		if err == nil {
			return c, nil
		}
		failures = append(failures, &net.OpError{Op: "dial", Net: network, Addr: remote, Err: err})
	}
	if len(failures) == 1 {
		return nil, failures[0]
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: &allFailed{failures}}
}

// share returns the time for the next of n addresses. The last one has all that is left.
func share(ctx context.Context, end time.Time, n int) time.Duration {
	if t, ok := ctx.Deadline(); ok && n > 1 && t.Before(end) {
		end = t
	}
	left := time.Until(end)
	return min(left, max(left/time.Duration(n), minShare))
}

// allFailed is the error of a dial to several addresses.
type allFailed struct{ all []error }

func (e *allFailed) Error() string {
	var texts []string
	for _, err := range e.all {
		texts = append(texts, strings.TrimPrefix(err.Error(), fmt.Sprintf("dial %s ", network)))
	}
	return strings.Join(texts, "; ")
}

func (e *allFailed) Unwrap() []error { return e.all }

// Timeout reports whether the time was over for each address that the adapter reaches.
func (e *allFailed) Timeout() bool {
	timeout := false
	for _, err := range e.all {
		var t net.Error
		switch {
		case errors.Is(err, dat.ErrInvalidAddress):
		case errors.As(err, &t) && t.Timeout():
			timeout = true
		default:
			return false
		}
	}
	return timeout
}
