//go:build race

package stream

import (
	"sync"
	"sync/atomic"
)

// The race detector does not see that a Read of one end follows a Write of the other end, because the bytes go through
// the engine. Package net tells it so for all connections together. Here, each direction of a stream between two ends of
// this process has an edge of its own. It exists in race builds only.

// edge orders what the writer of a direction has done before what its reader does later.
type edge struct{ *atomic.Uint32 }

// edges have those of the ends of this process, by the first ring of the reader.
var edges sync.Map

// raceEdges are the edges of a stream.
type raceEdges struct {
	in, out edge
	ring    remoteRing // key of in
}

// open registers the edge of the direction to this end, whose first ring is ring.
func (r *raceEdges) open(ring remoteRing) {
	r.ring, r.in = ring, edge{new(atomic.Uint32)}
	edges.Store(ring, r.in)
}

// meet finds the edge of the direction to the peer, whose first ring is ring. A peer in another process has none.
func (r *raceEdges) meet(ring remoteRing) {
	if e, ok := edges.Load(ring); ok {
		r.out = e.(edge)
	}
}

func (r *raceEdges) close() { edges.CompareAndDelete(r.ring, r.in) }

// release is called by a writer before its bytes leave.
func (e edge) release() {
	if e.Uint32 != nil {
		e.Add(1)
	}
}

// acquire is called by a reader after it has got bytes or the end.
func (e edge) acquire() {
	if e.Uint32 != nil {
		e.Load()
	}
}
