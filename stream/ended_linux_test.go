package stream

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

const xdpAdapter = "xdp:" + lab.Interface

// TestDeviceEnds: when the device of a server ends, Accept and the Reads of its streams return. When the device is back,
// the program can listen at it again, also before it has closed the earlier listener and streams.
func TestDeviceEnds(t *testing.T) {
	labtest.RequireXDP(t)
	address := netip.PrefixFrom(lab.B.Addr4(), 24)
	remove := func() error { return labtest.RemoveAddress(lab.Interface, address) }
	add := func() error { return labtest.AddAddress(lab.Interface, address) }
	for _, e := range []struct {
		name, adapter, reason string
		end, back             func() error
	}{
		{"program detached", xdpAdapter, "program was detached", func() error { return labtest.DetachProgram(lab.Interface) }, func() error { return nil }},
		{"address removed", xdpAdapter, "address 10.73.0.2 was removed", remove, add},
		{"address of kernel UDP removed", "udp:10.73.0.2", "address 10.73.0.2 was removed", remove, add},
	} {
		t.Run(e.name, func(t *testing.T) {
			n := labtest.New(t, lab.Options{})
			client := labAdapter(t, n, lab.A)
			l := labListener(t, n, e.adapter)
			stream := echoes(t, client, l)
			accepted, read := make(chan error, 1), make(chan error, 1)
			go func() { _, err := l.Accept(); accepted <- err }()
			go func() { _, err := stream.Read(make([]byte, 1)); read <- err }()
			check(t, n.Do(lab.B, e.end))
			if err := within(t, 20*time.Second, accepted); err == nil || !strings.Contains(err.Error(), e.reason) {
				t.Errorf("Accept: %v", err)
			}
			if err := within(t, 20*time.Second, read); !errors.Is(err, syscall.ENETDOWN) || !strings.Contains(err.Error(), e.reason) {
				t.Errorf("Read: %v", err)
			}
			check(t, n.Do(lab.B, e.back))
			check(t, echoes(t, client, labListener(t, n, e.adapter)).Close())
			check(t, stream.Close())
			check(t, l.Close())
		})
	}
}

func within(t *testing.T, limit time.Duration, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(limit):
		t.Fatal("the call blocks")
		return nil
	}
}

// labAdapter opens the adapter of one side until the end of the test.
func labAdapter(t *testing.T, n *lab.Lab, s lab.Side) (ia *dat.IA) {
	check(t, n.Do(s, func() (err error) {
		ia, err = dat.Open(xdpAdapter, options)
		return err
	}))
	t.Cleanup(func() { check(t, ia.Close()) })
	return ia
}

// labListener listens on side B until the end of the test.
func labListener(t *testing.T, n *lab.Lab, adapter string) (l *Listener) {
	check(t, n.Do(lab.B, func() (err error) {
		l, err = Listen(t.Context(), adapter, 7000)
		return err
	}))
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// echoes connects to the listener, exchanges a byte, and returns the stream of the listener's side.
func echoes(t *testing.T, client *dat.IA, l *Listener) *Conn {
	t.Helper()
	d := Dialer{IA: client}
	c, err := d.dial(context.Background(), l.Addr().String())
	check(t, err)
	t.Cleanup(c.reset)
	accepted, err := l.Accept()
	check(t, err)
	_, err = c.Write([]byte{1})
	check(t, err)
	_, err = accepted.Read(make([]byte, 1))
	check(t, err)
	return accepted.(*Conn)
}
