//go:build !linux

package servicetest

import "testing"

func labs(t *testing.T) []Network {
	t.Skip("namespaces need Linux")
	return nil
}
