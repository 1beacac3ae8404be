package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/examples/services/internal/servicetest"
	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/lab/mesh"
)

const nodes = 3

func TestMain(m *testing.M) {
	servicetest.Main(m, func() {
		if os.Args[len(os.Args)-1] == "load" {
			loadMain()
		} else {
			main()
		}
	})
}

// cluster is three nodes, each on its own host. The last host is for clients.
type cluster struct {
	t       *testing.T
	network servicetest.Network
	mesh    *mesh.Mesh
	dir     string
	addrs   []string // of the nodes
	running [nodes]*labtest.Process
}

func newCluster(t *testing.T, n servicetest.Network, m *mesh.Mesh) *cluster {
	c := &cluster{t: t, network: n, mesh: m, dir: t.TempDir()}
	for _, h := range n.Hosts[:nodes] {
		c.addrs = append(c.addrs, h.Addr)
	}
	for i := range nodes {
		c.start(i)
	}
	return c
}

// start starts a node, also one that was killed. The node does not sync its log to disk: a kill loses nothing that it
// has written, because the host continues.
func (c *cluster) start(i int) {
	h := c.network.Hosts[i]
	c.running[i] = h.Start(c.t, "--self", h.Addr, "--nodes", strings.Join(c.addrs, ","), "--dir", filepath.Join(c.dir, h.Addr),
		"--no-sync", "--election", "500ms", "--snapshot", "200").Await("^serving on ")
}

// client starts a client.
func (c *cluster) client(args ...string) *labtest.Process {
	return c.network.Hosts[nodes].Start(c.t, append([]string{"--nodes", strings.Join(c.addrs, ",")}, args...)...)
}

func (c *cluster) stop() {
	for _, p := range c.running {
		p.Interrupt()
	}
}

// TestCommands runs each command of the program, also while one node is away.
func TestCommands(t *testing.T) {
	networks, m := servicetest.Meshes(t, nodes+1)
	for _, n := range networks {
		t.Run(n.Name, func(t *testing.T) {
			c := newCluster(t, n, m)
			labtest.Match(t, c.client("put", "colour", "blue").Output(), "")
			labtest.Match(t, c.client("get", "colour").Output(), "blue\n")
			c.running[0].Kill()
			labtest.Match(t, c.client("cas", "colour", "blue", "green").Output(), "")
			labtest.Match(t, c.client("cas", "colour", "blue", "red").Fails(), "raft: colour has another value")
			c.start(0)
			labtest.Match(t, c.client("get", "colour").Output(), "green\n")
			labtest.Match(t, c.client("get", "shape").Fails(), "raft: no such key")
			labtest.Match(t, c.client("put", "colour", "\x1b[31mred").Output(), "")
			labtest.Match(t, c.client("get", "colour").Output(), `"\\x1b\[31mred"`+"\n")
			labtest.Match(t, c.client("get").Fails(), "raft: say what to do: .*")
			out := c.client("bench", "100").Output()
			t.Log(out)
			labtest.Match(t, out, "put: "+servicetest.Times)
			c.stop()
		})
	}
}

// faults are what a schedule does to a node. Each returns what ends it.
var faults = []struct {
	name string
	do   func(c *cluster, node int) (end func())
}{
	{"kill", func(c *cluster, node int) func() {
		c.running[node].Kill()
		return func() { c.start(node) }
	}},
	{"isolate", func(c *cluster, node int) func() {
		c.cut(node, 1, 1)
		return func() { c.cut(node, loss, loss) }
	}},
	{"mute", func(c *cluster, node int) func() {
		c.cut(node, 1, loss)
		return func() { c.cut(node, loss, loss) }
	}},
	{"deafen", func(c *cluster, node int) func() {
		c.cut(node, loss, 1)
		return func() { c.cut(node, loss, loss) }
	}},
}

// loss is the part of all frames that is lost at random.
const loss = 0.01

// cut sets the loss between a node and the other nodes. Clients reach the node in any case, and may read what is no
// longer true there.
func (c *cluster) cut(node int, from, to float64) {
	c.t.Helper()
	for other := range nodes {
		if other == node {
			continue
		}
		if err := c.mesh.SetLoss(node, other, from); err != nil {
			c.t.Fatal(err)
		}
		if err := c.mesh.SetLoss(other, node, to); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestLinearizable runs clients while nodes are killed and start again, and while they are cut off, with 1 % loss. The
// seed chooses the order of the faults and their nodes. A run with the same seed takes the same steps, but the clients'
// commands fall differently between them.
func TestLinearizable(t *testing.T) {
	seeds, rounds := 3, 2
	if testing.Short() {
		seeds, rounds = 1, 1
	}
	networks, m := servicetest.Meshes(t, nodes+1)
	for _, n := range networks {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/seed %d", n.Name, seed), func(t *testing.T) {
				if err := m.SetLossAll(loss); err != nil {
					t.Fatal(err)
				}
				testLinearizable(t, newCluster(t, n, m), uint64(seed), rounds)
			})
		}
	}
}

func testLinearizable(t *testing.T, c *cluster, seed uint64, rounds int) {
	r := rand.New(rand.NewPCG(seed, 0))
	h := &history{t: t, load: c.client("--seed", fmt.Sprint(seed), "load")}
	const between = 300 // successful commands between two steps
	h.await(between)
	for range rounds {
		for _, i := range r.Perm(len(faults)) {
			node := r.IntN(nodes)
			if r.IntN(2) == 0 {
				node = slices.Index(c.addrs, h.leader)
			}
			t.Logf("%s node %d of %d, leader %s", faults[i].name, node, nodes, h.leader)
			end := faults[i].do(c, node)
			h.await(between)
			end()
			h.await(between)
		}
	}
	rest := strings.Split(strings.TrimSuffix(h.load.Interrupt(), "\n"), "\n")
	if last := rest[len(rest)-1]; last != converged {
		t.Errorf("the load ends with %q", last)
	}
	for _, line := range rest[:len(rest)-1] {
		h.add(line)
	}
	h.check()
	c.stop()
}
