package dat

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// counted is a link that counts packets and checks that it is closed once.
type counted struct {
	link.Link
	received atomic.Int64
	closed   int
}

func (c *counted) Recv(bufs []link.Buf) int {
	n := c.Link.Recv(bufs)
	c.received.Add(int64(n))
	return n
}

var errLayer = errors.New("the layer says so")

func (c *counted) Close() error {
	c.closed++
	return errors.Join(errLayer, c.Link.Close())
}

// TestWrap: all packets pass through the links that Options.Wrap returns. These links are closed with the adapter, and
// no resource is left.
func TestWrap(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		var layers []*counted
		o := Options{Wrap: func(below link.Link) link.Link {
			layers = append(layers, &counted{Link: below})
			return layers[len(layers)-1]
		}}
		a, b := newHost(t, n, 0, o), newHost(t, n, 1, Options{})
		b.listen(testQual, 8)
		x, y := pair(a, b, nil)
		proves(x, y)
		if err := a.ia.Close(); !errors.Is(err, errLayer) {
			t.Errorf("closing: got %v, want %v", err, errLayer)
		}
		for _, l := range layers {
			if l.closed != 1 || l.received.Load() == 0 {
				t.Errorf("closed %d times, %d packets received", l.closed, l.received.Load())
			}
		}
		if len(layers) == 0 {
			t.Error("no layer")
		}
		again := must(n.open(0, Options{}))(t) // the device is free again
		ok(t, again.Close())
	})
}
