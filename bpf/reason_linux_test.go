//go:build amd64 || arm64

package bpf

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestReasonOfRefusal: the error quotes the message of a driver that refuses the program.
func TestReasonOfRefusal(t *testing.T) {
	l := newLab(t, lab.Options{})
	if err := l.Do(lab.A, func() error { return labtest.AddReluctant("few", "many") }); err != nil {
		t.Fatal(err)
	}
	o := labOptions(Native)
	o.Interface = "few"
	_, err := attachIn(l, o)
	if !errors.Is(err, ErrRefused) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v, want %v", err, ErrRefused)
	}
	if want := "XDP expects number of rx queues not less than peer tx queues"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q in it", err, want)
	}
	if got := programs(t, l); len(got) != 0 {
		t.Errorf("attached by asking for the reason: %+v", got)
	}
}

// TestReasonOfNothing: if the driver accepts the program at the second attempt, reason detaches it.
func TestReasonOfNothing(t *testing.T) {
	l := newLab(t, lab.Options{})
	s := mustAttach(t, newLab(t, lab.Options{}), labOptions(Native)) // only to load a program, on another interface
	err := l.Do(lab.A, func() error {
		ifi, err := labOptions(Native).find()
		if err != nil {
			return err
		}
		if got := reason(ifi.Index, s.objs.DatxdpSteer.FD(), 1<<2); got != "" {
			t.Errorf("got %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := programs(t, l); len(got) != 0 {
		t.Errorf("it stays: %+v", got)
	}
}
