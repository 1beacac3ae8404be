// Package mesh makes temporary networks of several hosts for tests and measurements. Each host is a network namespace
// with one veth, lab.Interface. The other ends are ports of a bridge in one more namespace. A BPF program at each port
// drops a part of the frames to each other host, so that a test can lose frames at random and cut hosts off. The package
// exists on Linux only.
package mesh
