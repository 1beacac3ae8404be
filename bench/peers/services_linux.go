package main

import (
	"os/exec"

	"github.com/datxdp/datxdp/internal/lab/mesh"
)

// openMesh creates hosts that a bridge connects. The function that it returns sets the part of the packets that the
// bridge loses.
func openMesh(hosts int) (s *site, lose func(percent float64) error, err error) {
	m, err := mesh.Open(hosts)
	if err != nil {
		return nil, nil, err
	}
	s = &site{close: m.Close, launch: func(end int, cmd *exec.Cmd) (child, error) {
		c, err := m.Start(end, cmd)
		if err != nil {
			return nil, err // a nil *lab.Child would be a child that is not nil
		}
		return c, nil
	}}
	for i := range hosts {
		s.hosts = append(s.hosts, m.Addr(i).String())
	}
	return s, func(percent float64) error { return m.SetLossAll(percent / 100) }, nil
}
