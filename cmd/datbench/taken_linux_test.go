package main

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// commandsOn returns the commands that open an adapter on an interface.
func commandsOn(ia string) [][]string {
	return [][]string{{"server", "--ia", ia}, {"run", lab.B.Addr4().String(), "--ia", ia}}
}

// checkRefused: every command fails at once with one line.
func checkRefused(t *testing.T, l *lab.Lab, ia, want string) {
	t.Helper()
	for _, args := range commandsOn(ia) {
		got := inLab(t, l, lab.A, args...).wait(t)
		if got.code != exitUsage || !regexp.MustCompile("^"+want+"$").MatchString(got.lastLine()) || got.stdout != "" {
			t.Errorf("%v: exit %d, %q\n%s\nwant exit %d\n%s", args, got.code, got.stdout, got.stderr, exitUsage, want)
		}
	}
}

// TestForeignProgram: the error names the XDP program of another owner, which stays attached.
func TestForeignProgram(t *testing.T) {
	t.Parallel()
	labtest.RequireXDP(t)
	for _, generic := range []bool{false, true} {
		t.Run(fmt.Sprintf("generic %t", generic), func(t *testing.T) {
			l := labtest.New(t, lab.Options{})
			var p *labtest.Program
			err := l.Do(lab.A, func() (err error) {
				p, err = labtest.AttachProgram(lab.Interface, generic)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			before := programAt(t, l)
			checkRefused(t, l, "xdp:veth0", fmt.Sprintf(`datbench: dat: opening xdp:veth0: xdp: .*veth0.*%d.*%s.*: detach it, or choose another interface`,
				before, labtest.ProgramName))
			if after := programAt(t, l); after != before || before == 0 {
				t.Errorf("program on the interface: got %d, want %d", after, before)
			}
		})
	}
}

func programAt(t *testing.T, l *lab.Lab) (id uint32) {
	t.Helper()
	err := l.Do(lab.A, func() (err error) {
		id, err = labtest.ProgramOn(lab.Interface)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestBusyQueue: an AF_XDP socket of another program has the queue.
func TestBusyQueue(t *testing.T) {
	t.Parallel()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	var fd int
	if err := l.Do(lab.A, func() (err error) { fd, err = takeQueue(lab.Interface); return err }); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	checkRefused(t, l, "xdp:veth0",
		`datbench: dat: opening xdp:veth0: xdp: veth0.*another AF_XDP socket has the queue: stop its program, or choose another interface`)
}

// takeQueue binds an AF_XDP socket to queue 0 of an interface, without an XDP program.
//
// System calls: socket, mmap, setsockopt(SOL_XDP), bind.
func takeQueue(name string) (fd int, err error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	if fd, err = syscall.Socket(afXDP, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	const frame, frames = 4096, 16
	// The memory stays mapped, because the kernel holds the pages until the socket is closed.
	mem, err := syscall.Mmap(-1, 0, frame*frames, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return fd, errors.Join(err, syscall.Close(fd))
	}
	// Of linux/if_xdp.h.
	const solXDP, rxRing, umemReg, fillRing, completionRing = 283, 2, 4, 5, 6
	reg := struct {
		addr, len                 uint64
		chunk, headroom, flags, _ uint32
	}{uint64(uintptr(unsafe.Pointer(&mem[0]))), uint64(len(mem)), frame, 0, 0, 0}
	addr := struct {
		family, flags          uint16
		ifindex, queue, shared uint32
	}{family: afXDP, ifindex: uint32(ifi.Index)}
	// The conversions are in the argument lists of the calls, which keeps the objects alive.
	_, _, errno := syscall.Syscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), solXDP, umemReg, uintptr(unsafe.Pointer(&reg)), unsafe.Sizeof(reg), 0)
	for _, ring := range []int{fillRing, completionRing, rxRing} {
		err = errors.Join(err, syscall.SetsockoptInt(fd, solXDP, ring, frames))
	}
	if errno == 0 && err == nil {
		_, _, errno = syscall.Syscall(syscall.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&addr)), unsafe.Sizeof(addr))
	}
	runtime.KeepAlive(mem)
	if errno != 0 {
		err = errors.Join(err, errno)
	}
	if err != nil {
		return -1, errors.Join(err, syscall.Close(fd))
	}
	return fd, nil
}

// TestNobodyThere: the client names the cause if it cannot reach a server over AF_XDP. The cases include an absent
// host, a host without a server, and a host with an adapter but without datbench.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	labtest.RequireXDP(t)
	l := labtest.New(t, lab.Options{})
	const start = `: start "datbench server" on it, with UDP port 17473 open between the hosts`
	tests := []struct{ name, host, want string }{
		{"no such host", "10.73.0.9", "datbench: 10.73.0.9 (did not answer|cannot be reached)" + start},
		{"no server", "10.73.0.2", "datbench: 10.73.0.2 is there, but no program has the port" + start},
		{"itself", "10.73.0.1", "datbench: 10.73.0.1 answers, but no datbench listens there" + start},
		{"no route", "192.0.2.1", "datbench: 192.0.2.1 cannot be reached from xdp:veth0, check the address and its route: .*no route to host .*"},
		{"no such name", "nobody.invalid", `datbench: host "nobody.invalid": .*`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := inLab(t, l, lab.A, "run", tt.host, "--ia", "xdp:veth0").wait(t)
			if got.code != exitUsage || !regexp.MustCompile("^"+tt.want+"$").MatchString(got.lastLine()) || got.stdout != "" {
				t.Errorf("got exit %d, %q\n%s\nwant exit %d\n%s", got.code, got.stdout, got.lastLine(), exitUsage, tt.want)
			}
			t.Log(got.lastLine())
		})
	}
}
