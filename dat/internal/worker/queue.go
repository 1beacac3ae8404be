package worker

import (
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/wire"
)

// maxStrangers is the number of jobs of strangers that may wait, some 30 ms of work (decision 0016).
const maxStrangers = 256

// Shares of the free places, as for half-open requests: an address may hold a part of them, and its network a larger
// part. The first job of an address counts less for its network.
const (
	addressShare   = 8 // 1/8
	networkShare   = 2 // 1/2
	newcomerFactor = 4
)

// Bits of a network.
const (
	network4 = 24
	network6 = 64
)

// queue holds the jobs of strangers. Its lists are short, because all jobs together have maxStrangers places.
type queue struct {
	networks []*network // in the order of their turns
	jobs     int
}

// network is a network with waiting jobs.
type network struct {
	prefix    netip.Prefix
	addresses []*address // in the order of their turns
	jobs      int
}

// address is an address with waiting jobs.
type address struct {
	addr netip.Addr
	jobs []*wire.Job
}

// push queues a job. It returns false if the queue, or the share of the job's address or network, is full.
func (q *queue) push(j *wire.Job) bool {
	addr := j.From.Unmap().WithZone("")
	free := maxStrangers - q.jobs
	n := q.network(addr)
	a := n.address(addr)
	share := free
	if len(a.jobs) == 0 && free > 1 {
		share *= newcomerFactor
	}
	if addressShare*len(a.jobs) >= free || networkShare*n.jobs >= share {
		return false
	}
	if n.jobs == 0 {
		q.networks = append(q.networks, n)
	}
	if len(a.jobs) == 0 {
		n.addresses = append(n.addresses, a)
	}
	a.jobs = append(a.jobs, j)
	n.jobs++
	q.jobs++
	return true
}

// network returns the network of an address. It is a new one if it has no jobs.
func (q *queue) network(a netip.Addr) *network {
	bits := network4
	if a.Is6() {
		bits = network6
	}
	prefix, _ := a.Prefix(bits) // it fails only for an address with a zone
	for _, n := range q.networks {
		if n.prefix == prefix {
			return n
		}
	}
	return &network{prefix: prefix}
}

// address returns an address of the network. It is a new one if it has no jobs.
func (n *network) address(addr netip.Addr) *address {
	for _, a := range n.addresses {
		if a.addr == addr {
			return a
		}
	}
	return &address{addr: addr}
}

// pop removes the job whose turn it is. It returns nil if there is none.
func (q *queue) pop() *wire.Job {
	if q.jobs == 0 {
		return nil
	}
	n := q.networks[0]
	a := n.addresses[0]
	j := a.jobs[0]
	a.jobs = slices.Delete(a.jobs, 0, 1)
	q.jobs--
	n.jobs--
	n.addresses = n.addresses[1:]
	if len(a.jobs) > 0 {
		n.addresses = append(n.addresses, a)
	}
	q.networks = q.networks[1:]
	if n.jobs > 0 {
		q.networks = append(q.networks, n)
	}
	return j
}
