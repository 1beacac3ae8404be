package claim

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/exclusive"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

var local = netip.MustParseAddr("192.0.2.1")

// open opens an Address until the end of the test.
func open(t *testing.T, addr netip.Addr) *Address {
	t.Helper()
	a, err := Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// elsewhere opens an Address as another process would: with a descriptor of its own.
func elsewhere(t *testing.T, addr netip.Addr) *Address {
	t.Helper()
	mu.Lock()
	own := spaces
	spaces = make(map[uint64]*space)
	mu.Unlock()
	defer func() {
		mu.Lock()
		spaces = own
		mu.Unlock()
	}()
	a, err := Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func wants(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestClaim: a qualifier of an address has one process at a time.
func TestClaim(t *testing.T) {
	a, b := open(t, local), elsewhere(t, local)
	wants(t, "first", a.Claim(5), nil)
	wants(t, "again", a.Claim(5), ErrInUse)
	wants(t, "other process", b.Claim(5), ErrInUse)
	wants(t, "other qualifier", b.Claim(6), nil)
	wants(t, "qualifier of the other process", a.Claim(6), ErrInUse)
	b.Release(5) // which b does not have
	wants(t, "kept", elsewhere(t, local).Claim(5), ErrInUse)
	a.Release(5)
	wants(t, "released", b.Claim(5), nil)
	wants(t, "close", b.Close(), nil)
	for _, qual := range []uint64{5, 6} {
		wants(t, "closed", a.Claim(qual), nil)
	}
	wants(t, "claim after close", b.Claim(5), nil)
	var none *Address
	wants(t, "no address", errors.Join(none.Claim(5), none.Close()), nil)
	none.Release(5)
}

// TestAddresses: which spellings are the same address.
func TestAddresses(t *testing.T) {
	lo, err := net.InterfaceByIndex(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		one, other string
		same       bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::1", true},
		{"fe80::1%1", "fe80::1%" + lo.Name, true},
		{"fe80::1%1", "fe80::1%2", false},
	} {
		a, b := open(t, netip.MustParseAddr(c.one)), elsewhere(t, netip.MustParseAddr(c.other))
		wants(t, c.one, a.Claim(5), nil)
		if got := b.Claim(5); errors.Is(got, ErrInUse) != c.same {
			t.Errorf("%s beside %s: %v", c.other, c.one, got)
		}
		wants(t, "close", errors.Join(a.Close(), b.Close()), nil)
	}
}

// TestOneProcess: two adapters of a process for the same address do not exclude each other. The claim lasts until both
// have given it up.
func TestOneProcess(t *testing.T) {
	a, again, b := open(t, local), open(t, local), elsewhere(t, local)
	wants(t, "both", errors.Join(a.Claim(5), again.Claim(5)), nil)
	wants(t, "close", a.Close(), nil)
	wants(t, "one is left", b.Claim(5), ErrInUse)
	again.Release(5)
	wants(t, "none is left", b.Claim(5), nil)
}

// TestMany: one descriptor has many claims.
func TestMany(t *testing.T) {
	a, b := open(t, local), elsewhere(t, local)
	before := descriptors(t)
	const n = 5000
	for qual := range uint64(n) {
		wants(t, "claim", a.Claim(qual<<40), nil)
	}
	if d := descriptors(t) - before; d != 0 {
		t.Errorf("%d descriptors for %d claims", d, n)
	}
	wants(t, "the last", b.Claim((n-1)<<40), ErrInUse)
	wants(t, "close", a.Close(), nil)
	wants(t, "closed", b.Claim((n-1)<<40), nil)
}

func descriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestRace: of several processes that claim a qualifier at the same time, exactly one gets it.
func TestRace(t *testing.T) {
	const rounds, processes = 200, 8
	var all [processes]*Address
	for i := range all {
		all[i] = elsewhere(t, local)
	}
	for qual := range uint64(rounds) {
		var claiming sync.WaitGroup
		var winners atomic.Int32
		for _, a := range all {
			claiming.Go(func() {
				l := a.space.locks
				for {
					switch err := l.lock(a.record(qual)); err {
					case nil:
						winners.Add(1)
						return
					case ErrInUse:
						return
					}
				}
			})
		}
		claiming.Wait()
		if n := winners.Load(); n != 1 {
			t.Fatalf("%d processes have the qualifier", n)
		}
	}
}

// TestKilled: the claims of a process end with it, and a program that it has executed does not have them.
func TestKilled(t *testing.T) {
	const role = "DATXDP_CLAIM"
	if os.Getenv(role) != "" {
		a, err := Open(local)
		if err == nil {
			err = a.Claim(5)
		}
		outlives := exec.Command("cat")
		outlives.Stdin = os.Stdin
		fmt.Println("claimed", errors.Join(err, outlives.Start()))
		select {}
	}
	p := labtest.NewProcess(t, 20*time.Second, "env", role+"=1", os.Args[0], "-test.run=^TestKilled$")
	stdin, err := p.Cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close() // ends cat
	p.Start((*exec.Cmd).Start).Await("claimed <nil>")
	b := open(t, local)
	wants(t, "claimed", b.Claim(5), ErrInUse)
	p.Kill()
	wants(t, "killed", b.Claim(5), nil)
}

// TestNamespaces: the same address of two network namespaces has two processes. A claim is one of the namespace in which
// the Address was opened, whichever thread claims.
func TestNamespaces(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	var a, b, again *Address
	for s, open := range map[lab.Side]func(){lab.A: func() { a, again = open(t, local), elsewhere(t, local) }, lab.B: func() { b = open(t, local) }} {
		if err := l.Do(s, func() error { open(); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, "two namespaces", errors.Join(a.Claim(5), b.Claim(5)), nil)
	if err := l.Do(lab.B, func() error { return again.Claim(5) }); !errors.Is(err, ErrInUse) {
		t.Errorf("on a thread of another namespace: %v", err)
	}
}

// TestExclusive: the child of a fork closes the descriptor of the claims, which therefore has to be listed while it is open.
func TestExclusive(t *testing.T) {
	listed := func(fd int) bool {
		for i := range exclusive.Table() {
			if exclusive.Table()[i].Load() == int32(fd)+1 {
				return true
			}
		}
		return false
	}
	a := elsewhere(t, local)
	fd := int(a.space.locks.(fileLocks).file.Fd())
	if !listed(fd) {
		t.Error("the descriptor is not listed")
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	wants(t, "close", a.Close(), nil)
	if listed(fd) {
		t.Errorf("descriptor %d is still listed", fd)
	}
}
