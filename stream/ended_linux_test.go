package stream

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestDeviceEnds: when the device of a listener ends, Accept returns the adapter's error. The
// program can listen at the device again when it has closed the listener.
func TestDeviceEnds(t *testing.T) {
	labtest.RequireXDP(t)
	n, err := lab.New(lab.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, n.Close()) })
	const adapter = "xdp:" + lab.Interface
	listen := func() (l *Listener, err error) {
		err = n.Do(lab.B, func() (err error) {
			l, err = Listen(t.Context(), adapter, 7000)
			return err
		})
		return l, err
	}
	l, err := listen()
	check(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	check(t, n.Do(lab.B, func() error { return labtest.DetachProgram(lab.Interface) }))
	if err := soon(t, "Accept", func() error { return <-ended }); err == nil || !strings.Contains(err.Error(), "program was detached") {
		t.Errorf("Accept: %v", err)
	}
	check(t, l.Close())
	l, err = listen()
	check(t, err)
	check(t, l.SetDeadline(time.Now().Add(10*time.Second)))
	var client *dat.IA
	check(t, n.Do(lab.A, func() (err error) {
		client, err = dat.Open(adapter, options)
		return err
	}))
	defer func() { check(t, client.Close()) }()
	d := Dialer{IA: client}
	c, err := d.dial(context.Background(), l.Addr().String())
	check(t, err)
	accepted, err := l.Accept()
	check(t, err)
	c.reset()
	check(t, accepted.Close())
	check(t, l.Close())
}
