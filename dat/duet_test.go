package dat

import (
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// duet has two connected endpoints on a simulated network. One goroutine polls both sides.
type duet struct{ x, y *point }

func newDuet(t testing.TB, qlen int) duet {
	n := newSimWith(t, simlink.Config{Unchecked: true})
	a, b := newHosts(t, n, Options{})
	attr := DefaultEPAttr()
	d := duet{a.pointWith(&attr, 2<<20, qlen), b.pointWith(&attr, 2<<20, qlen)}
	join(d.x, d.y)
	return d
}

// drain polls both sides until it has taken the given number of completions on each side.
func (d duet) drain(t testing.TB, requests, receives int) {
	var ev Event
	for requests > 0 || receives > 0 {
		if d.x.request.Dequeue(&ev) == nil {
			requests--
			if ev.Status != DTOSuccess {
				t.Fatal(ev.Status)
			}
		}
		if d.y.recv.Dequeue(&ev) == nil {
			receives--
		}
	}
}
