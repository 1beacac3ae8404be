package workload

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/datxdp/datxdp/cmd/datbench/internal/tap"
)

// wrapWith converts a layer of package tap to the function type of the field dat.Options.Wrap. The type parameter L
// stands for link.Link. This package must not import package link, so it cannot write link.Link. The compiler infers L
// from the type of that field.
func wrapWith[L, T any](layer func(L) T) func(L) L {
	return func(below L) L { return any(layer(below)).(L) }
}

// compose returns a function that puts the layers lower and upper over a link, upper on top. A nil layer is left out.
func compose[L any](lower, upper func(L) L) func(L) L {
	switch {
	case lower == nil:
		return upper
	case upper == nil:
		return lower
	}
	return func(below L) L { return upper(lower(below)) }
}

// impairing returns a layer that impairs each link with a seed of its own, and calls record with each impaired link.
func impairing[L any](layer func(L, tap.Rates) *tap.Impaired, rates tap.Rates, record func(*tap.Impaired)) func(L) L {
	return wrapWith(func(below L) *tap.Impaired {
		t := layer(below, rates)
		record(t)
		rates.Seed++
		return t
	})
}

// Capture writes the file of --pcap. Opening the first adapter writes the file header. After each flush the file is
// complete.
type Capture struct {
	File   *os.File
	pcap   *tap.Pcap
	failed bool // flush has returned the error
}

func (c *Capture) begin() (_ *tap.Pcap, err error) {
	if c.pcap == nil {
		c.pcap, err = tap.NewPcap(c.File)
	}
	return c.pcap, err
}

func (c *Capture) flush() error {
	if c == nil || c.pcap == nil || c.failed {
		return nil
	}
	if err := c.pcap.Flush(); err != nil {
		c.failed = true
		return fmt.Errorf("--pcap: %w", err)
	}
	return nil
}

// Close completes the file. It has a header even if nothing was captured.
func (c *Capture) Close() error {
	if c == nil {
		return nil
	}
	_, err := c.begin()
	if err == nil {
		err = c.flush()
	}
	return errors.Join(err, c.File.Close())
}

// NewCapture opens a capture file; it returns nil if name is empty.
func NewCapture(name string) (*Capture, error) {
	f, err := CreatePcap(name)
	if f == nil {
		return nil, err
	}
	return &Capture{File: f}, nil
}

// CreatePcap creates the capture file; it returns nil if name is empty. It is called before anything is measured, so
// that a wrong name fails immediately. The name may be that of a pipe with a reader: if the reader ends, so does the
// capture.
func CreatePcap(name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, fmt.Errorf("--pcap: %w", err)
	}
	return f, nil
}
