//go:build !race

package stream

// raceEdges and edge do something in race builds only (see edge_race.go).
type (
	raceEdges struct{ in, out edge }
	edge      struct{}
)

func (*raceEdges) open(remoteRing) {}
func (*raceEdges) meet(remoteRing) {}
func (*raceEdges) close()          {}
func (edge) release()              {}
func (edge) acquire()              {}
