package lease

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// roleVariable makes the test program a client. It has the path of the daemon.
const roleVariable = "DATXDP_LEASE_CLIENT"

// child takes a lease, prints who has which, and returns an exit code.
func child(path string) int {
	c, err := Dial(path)
	if err == nil {
		defer c.Close()
		var g *Grant
		if g, err = c.Lease(Request{Interface: "eth0", Mode: Shared}); err == nil {
			defer g.Close()
			all, _ := c.List()
			fmt.Printf("%d leases of %d", len(all), all[0].Holder.UID)
			return 0
		}
	}
	if errors.Is(err, ErrDenied) {
		fmt.Print("denied")
	} else {
		fmt.Print(err)
	}
	return 0
}

// The kernel says who a client is: user, group and supplementary groups decide, and a user sees its own leases only.
func TestOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become other users")
	}
	dir, err := os.MkdirTemp("", "lease") //nolint:usetesting // other users cannot enter t.TempDir
	check(t, err)
	defer os.RemoveAll(dir)
	check(t, os.Chmod(dir, 0o755))
	d := start(t, newFake(), filepath.Join(dir, "s"), "user:0\nuser:65534\ngroup:4711\n")
	borrow(t, dial(t, d.path))
	for _, c := range []struct {
		uid, gid uint32
		groups   []uint32
		want     string
	}{
		{65534, 65534, nil, "1 leases of 65534"},
		{65533, 4711, nil, "1 leases of 65533"},
		{65533, 65533, []uint32{1, 4711}, "1 leases of 65533"},
		{65533, 65533, many(4711), "1 leases of 65533"},
		{65533, 65533, []uint32{65534}, "denied"},
		{65533, 65533, nil, "denied"},
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"="+d.path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid, Groups: c.groups}}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		check(t, cmd.Run())
		if out.String() != c.want {
			t.Errorf("user %d, group %d, groups %v: %s, want %s", c.uid, c.gid, len(c.groups), out.String(), c.want)
		}
	}
}

// many returns more groups than one call reads, with a given one at the end.
func many(last uint32) (groups []uint32) {
	for i := range uint32(2 * firstGroups) {
		groups = append(groups, 1000+i)
	}
	return append(groups, last)
}
