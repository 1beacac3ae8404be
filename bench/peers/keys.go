package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/identity"
)

// endNames are the names of the two ends in the names of their files.
var endNames = [...]string{serverEnd: "server", clientEnd: "client"}

// makeKeys makes a new directory with a key for each end, and a file of peers for each end with the line of the other
// one. host is the address of the server. The caller removes the directory.
func makeKeys(host string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "datxdp-peers-"); err != nil {
		return "", err
	}
	for end, name := range endNames {
		other := endNames[1-end]
		key, err := identity.CreateKey(filepath.Join(dir, name+".key"))
		if err == nil {
			line := identity.Text(key)
			if end == serverEnd {
				line += " from=" + host
			}
			err = os.WriteFile(filepath.Join(dir, other+".peers"), []byte(line+"\n"), 0o600)
		}
		if err != nil {
			_ = os.RemoveAll(dir) // the first error counts
			return "", fmt.Errorf("make keys for secure mode: %w", err)
		}
	}
	return dir, nil
}

// withKeys returns the command of one end, for a row of datbench. In secure mode, the files of makeKeys are in a directory.
func (r *row) withKeys(c tool.Command, dir string, end int) tool.Command {
	if !r.secure {
		return c
	}
	file := func(kind string) string { return filepath.Join(dir, endNames[end]+kind) }
	c.Args = slices.Concat(c.Args, []string{"--key", file(".key"), "--peers", file(".peers")})
	return c
}
