package job

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/identity"
)

// makeKeys makes a key for each end of a link, and files of peers in which each end has the line of the other one. The
// function remove removes the files.
func makeKeys(l *plan.Link) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "datbench-keys-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	ends := [2]*plan.End{&l.Target, &l.Initiator}
	for i, e := range ends {
		e.Key, e.Peers = filepath.Join(dir, fmt.Sprint(i, ".key")), filepath.Join(dir, fmt.Sprint(i, ".peers"))
		public, err := identity.CreateKey(e.Key)
		if err == nil {
			line := fmt.Sprintf("%s from=%v\n", identity.Text(public), e.Addr)
			err = os.WriteFile(filepath.Join(dir, fmt.Sprint(1-i, ".peers")), []byte(line), 0o600)
		}
		if err != nil {
			remove()
			return nil, fmt.Errorf("make keys for the rows in secure mode: %w", err)
		}
	}
	return remove, nil
}
