package network

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// flow is one connection and the application at its active end: a closed loop of RDMA writes.
type flow struct {
	load
	from, to *host
	conn     *wire.Conn
	qual     uint64
	out      int     // writes outstanding
	nextAt   int64   // when the next one may be posted
	posted   []int64 // when the outstanding writes were posted, oldest first
	done     int     // completed writes
	lastDone int64   // when the last one completed
	took     []time.Duration
}

// load is what a flow does.
type load struct {
	size  int           // of a write in bytes
	depth int           // writes outstanding
	think time.Duration // mean time from a completion to the next post; random between 0.4 and 1.6 times this
	limit int           // writes in all; 0 means no limit
	timed bool          // record how long each write takes
}

var (
	bulk     = load{size: opSize, depth: opDepth}
	requests = load{size: smallSize, depth: 1, think: 5 * time.Microsecond, timed: true}
)

// connect makes a connection between two hosts. The flow posts nothing until start.
func (w *World) connect(from, to *host, l load) *flow {
	f := w.dial(from, to, l)
	w.until("establishment", 10*time.Second, f.established)
	return f
}

// dial begins to make a connection.
func (w *World) dial(from, to *host, l load) *flow {
	w.flows++
	f := &flow{load: l, from: from, to: to, conn: from.host.NewConn(from.config(l.depth)), qual: uint64(w.flows), nextAt: never}
	f.conn.User = f
	from.flows = append(from.flows, f)
	from.connectTo(to, f.conn, f.qual)
	return f
}

func (f *flow) established() bool { return f.conn.State() == wire.Established }

// start lets a flow post from a time on.
func (f *flow) start(at int64) {
	f.nextAt = at
	f.from.postAt = min(f.from.postAt, at)
	f.from.world.wake(f.from.number, at)
}

// stop ends the posts of a flow. Writes that are outstanding complete.
func (f *flow) stop() { f.nextAt = never }

// post posts what may be posted now.
func (f *flow) post(now int64) {
	if now < f.nextAt {
		f.from.postAt = min(f.from.postAt, f.nextAt)
		return
	}
	posted := false
	for f.out < f.depth && (f.limit == 0 || f.done+f.out < f.limit) {
		err := f.conn.PostWrite([]wire.Segment{{Context: f.from.region.LocalKey(), Address: regionBase, Length: uint32(f.size)}},
			0, wire.Remote{Key: f.to.region.RemoteKey(), Addr: regionBase}, 0)
		must(err)
		f.out++
		if f.timed {
			f.posted = append(f.posted, now)
		}
		posted = true
	}
	if posted {
		f.from.engine.Kick(f.conn)
	}
}

// completed implements consumer: the oldest write has completed.
func (f *flow) completed(now int64, _ *wire.Completion) {
	f.out--
	f.done++
	f.lastDone = now
	if f.timed {
		f.took = append(f.took, time.Duration(now-f.posted[0]))
		f.posted = f.posted[:copy(f.posted, f.posted[1:])]
	}
	if f.nextAt == never {
		return
	}
	if f.think > 0 {
		f.nextAt = now + int64(float64(f.think)*(0.4+1.2*f.from.world.rng.Float64()))
	}
	f.post(now)
}

// infos returns the state of the connections at their active ends.
func infos(flows []*flow) []wire.ConnInfo {
	all := make([]wire.ConnInfo, len(flows))
	seen := map[*host]map[uint64]wire.ConnInfo{}
	for i, f := range flows {
		if seen[f.from] == nil {
			seen[f.from] = f.from.active()
		}
		all[i] = seen[f.from][f.qual]
	}
	return all
}

// active returns the state of the connections that begin at a host, by qualifier.
func (h *host) active() map[uint64]wire.ConnInfo {
	rows, next := []wire.ConnInfo(nil), 0
	for next >= 0 {
		rows, next = h.engine.Inspect(wire.Time(h.world.now()), next, rows)
	}
	all := make(map[uint64]wire.ConnInfo, len(rows))
	for _, r := range rows {
		if !r.Passive {
			all[r.Qual] = r
		}
	}
	return all
}
