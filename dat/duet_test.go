package dat

import (
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// duet is two connected endpoints on a network in memory that one goroutine drives.
type duet struct{ x, y *point }

func newDuet(t testing.TB, qlen int) duet {
	n := newSimWith(t, simlink.Config{Unchecked: true})
	a, b := newHosts(t, n, Options{})
	attr := DefaultEPAttr()
	d := duet{a.pointWith(&attr, 2<<20, qlen), b.pointWith(&attr, 2<<20, qlen)}
	join(d.x, d.y)
	return d
}

// drain drives both sides until so many completions of each have been taken.
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
