package stream

import (
	"fmt"
	"net"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestNamespaces: a process that dials and listens on threads of two network namespaces has an adapter in each, although
// both have the same name.
func TestNamespaces(t *testing.T) {
	labtest.RequireXDP(t)
	for _, name := range []string{xdpAdapter, "udp:" + lab.Interface} {
		t.Run(name, func(t *testing.T) {
			n := labtest.New(t, lab.Options{})
			var listeners [2]*Listener
			for _, s := range []lab.Side{lab.A, lab.B} {
				check(t, n.Do(s, func() (err error) {
					listeners[s], err = Listen(t.Context(), name, 7000)
					return err
				}))
				defer listeners[s].Close()
			}
			for _, s := range []lab.Side{lab.A, lab.B} {
				var c *Conn
				check(t, n.Do(s, func() (err error) {
					c, err = Dial(t.Context(), name, fmt.Sprintf("%v:7000", s.Peer().Addr4()))
					return err
				}))
				accepted, err := listeners[s.Peer()].Accept()
				check(t, err)
				if from := accepted.RemoteAddr().(*net.TCPAddr); from.AddrPort().Addr() != s.Addr4() {
					t.Errorf("the stream from %v comes from %v", s.Addr4(), from)
				}
				check(t, accepted.Close())
				check(t, c.Close())
			}
		})
	}
}

// BenchmarkNamespace measures what each Dial pays to find the adapter of its namespace.
func BenchmarkNamespace(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if namespace() == "" {
			b.Fatal("no namespace")
		}
	}
}
