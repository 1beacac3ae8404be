package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// victimAddress is the variable that makes the test's program a victim at this address and UDP port.
const victimAddress = "STREAM_VICTIM"

// victimPort is the port of a victim's service.
const victimPort = 7000

// beVictim is a process that accepts streams until it is killed.
func beVictim(address string) {
	at := netip.MustParseAddrPort(address)
	ia, err := dat.Open("udp:"+at.Addr().String(), dat.Options{Port: at.Port(), AsyncQLen: dat.NoAsyncEVD})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	lc := ListenConfig{IA: ia}
	l, err := lc.Listen(context.Background(), victimPort)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listening")
	for {
		if _, err := l.Accept(); err != nil {
			os.Exit(1)
		}
	}
}

func startVictim(t *testing.T, at netip.AddrPort) *labtest.Process {
	t.Helper()
	p := labtest.NewProcess(t, time.Minute, os.Args[0])
	p.Start(func(cmd *exec.Cmd) error {
		cmd.Env = append(os.Environ(), victimAddress+"="+at.String())
		return cmd.Start()
	})
	return p.Await("listening")
}

// TestPeerKilled: a stream whose peer process was killed ends with ECONNRESET, as one of kernel TCP does, whether the peer's
// kernel refuses its packets or a new process at the port does not know it.
func TestPeerKilled(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("started again: %v", again), func(t *testing.T) {
			ia, other := udp(t)
			at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 3}), portOf(t, ia))
			check(t, other.Close())
			victim := startVictim(t, at)
			d := Dialer{IA: ia}
			c, err := d.DialContext(t.Context(), "tcp", fmt.Sprintf("%v:%d", at.Addr(), victimPort))
			check(t, err)
			defer c.Close()
			victim.Kill()
			if again {
				defer startVictim(t, at).Kill()
			}
			if err := endOfStream(t, c); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("Read: %v, want ECONNRESET", err)
			}
		})
	}
}

// endOfStream writes to a stream until it ends, and returns the error of its Read.
func endOfStream(t *testing.T, c net.Conn) error {
	t.Helper()
	check(t, c.SetDeadline(time.Now().Add(8*time.Second))) // less than the time of silence that ends it
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	_, err := c.Read(make([]byte, 1))
	return err
}

func portOf(t *testing.T, ia *dat.IA) uint16 {
	t.Helper()
	a, err := ia.Query()
	check(t, err)
	return a.Port
}
