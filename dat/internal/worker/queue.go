package worker

import (
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/wire"
)

// maxStrangers is the number of jobs of strangers that may wait, some 30 ms of work (decision 0016).
const maxStrangers = 256

// newcomerFactor multiplies the shares of a site and a network for the first job of an address.
const newcomerFactor = 4

// level is a set of the groups that addresses belong to. A group takes turns with the others of its level, within its
// group of the level above.
type level struct {
	bits4, bits6 int // length of the prefix of a group
	share        int // a group may have 1/share of the free places
	newcomers    bool
}

// levels are the levels from the largest group to the address. Shares are as for half-open requests. A site is there
// because its owner has all networks in it, with IPv6 65536 of them.
var levels = [...]level{
	{bits4: 16, bits6: 48, share: 2, newcomers: true}, // site
	{bits4: 24, bits6: 64, share: 2, newcomers: true}, // network
	{bits4: 32, bits6: 128, share: 8},                 // address
}

// queue holds the jobs of strangers. Its lists are short, because all jobs together have maxStrangers places.
type queue struct{ root group }

// group is a site, a network or an address with waiting jobs, or the root of them.
type group struct {
	prefix netip.Prefix
	groups []*group    // of the next level, in the order of their turns
	jobs   []*wire.Job // of an address
	n      int         // number of waiting jobs
}

func (q *queue) jobs() int { return q.root.n }

// push queues a job. It returns false if the queue, or the share of a group of the job's address, is full.
func (q *queue) push(j *wire.Job) bool {
	addr := j.From.Unmap().WithZone("")
	free := maxStrangers - q.root.n
	path := [len(levels) + 1]*group{&q.root}
	for i := range levels {
		path[i+1] = path[i].find(levels[i].prefix(addr))
	}
	newcomer := path[len(levels)].n == 0 && free > 1
	for i, l := range levels {
		share := free
		if l.newcomers && newcomer {
			share *= newcomerFactor
		}
		if l.share*path[i+1].n >= share {
			return false
		}
	}
	for i, g := range path {
		if i > 0 && g.n == 0 {
			path[i-1].groups = append(path[i-1].groups, g)
		}
		g.n++
	}
	path[len(levels)].jobs = append(path[len(levels)].jobs, j)
	return true
}

// prefix returns the prefix of an address's group.
func (l *level) prefix(a netip.Addr) netip.Prefix {
	bits := l.bits4
	if a.Is6() {
		bits = l.bits6
	}
	p, _ := a.Prefix(bits) // it fails only for an address with a zone
	return p
}

// find returns a group of the next level. It is a new one if it has no jobs.
func (g *group) find(p netip.Prefix) *group {
	for _, c := range g.groups {
		if c.prefix == p {
			return c
		}
	}
	return &group{prefix: p}
}

// pop removes the job whose turn it is. It returns nil if there is none.
func (q *queue) pop() *wire.Job {
	if q.root.n == 0 {
		return nil
	}
	return q.root.pop()
}

// pop removes the first job of the first group, and gives the turn to the next group.
func (g *group) pop() *wire.Job {
	g.n--
	if len(g.groups) == 0 {
		j := g.jobs[0]
		g.jobs = slices.Delete(g.jobs, 0, 1)
		return j
	}
	first := g.groups[0]
	j := first.pop()
	g.groups = slices.Delete(g.groups, 0, 1)
	if first.n > 0 {
		g.groups = append(g.groups, first)
	}
	return j
}
