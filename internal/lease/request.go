package lease

import (
	"fmt"
	"math/bits"
	"strings"
)

// setDefaults replaces zeros by the defaults.
func (r *Request) setDefaults() {
	set := func(field *uint32, value uint32) {
		if *field == 0 {
			*field = value
		}
	}
	set(&r.Frames, defaultFrames)
	set(&r.FrameSize, defaultFrameSize)
	set(&r.Rings.Rx, defaultRx)
	set(&r.Rings.Tx, defaultTx)
	set(&r.Rings.Fill, r.Rings.Rx)
	set(&r.Rings.Completion, r.Rings.Tx)
	set(&r.Engines, defaultEngines)
	set(&r.Ports, defaultPorts)
}

// validate checks a request with defaults.
func (r *Request) validate() error {
	for _, c := range []struct {
		what              string
		value, least, top uint64
	}{
		{"frames", uint64(r.Frames), minFrames, maxFrames},
		{"bytes of a frame", uint64(r.FrameSize), 2048, 4096},
		{"slots of the rx ring", uint64(r.Rings.Rx), minRing, maxRing},
		{"slots of the tx ring", uint64(r.Rings.Tx), minRing, maxRing},
		{"slots of the fill ring", uint64(r.Rings.Fill), minRing, maxRing},
		{"slots of the completion ring", uint64(r.Rings.Completion), minRing, maxRing},
		{"source ports", uint64(r.Ports), 1, maxPorts},
	} {
		if c.value < c.least || c.value > c.top || bits.OnesCount64(c.value) != 1 {
			return fmt.Errorf("%w: %d %s: choose a power of two from %d to %d", ErrInvalid, c.value, c.what, c.least, c.top)
		}
	}
	switch {
	case r.Engines > maxEngines:
		return fmt.Errorf("%w: %d engines: at most %d", ErrInvalid, r.Engines, maxEngines)
	case r.Memory > maxMemory || r.Memory%uint64(r.FrameSize) != 0:
		return fmt.Errorf("%w: %d bytes of memory: choose a multiple of %d up to %d", ErrInvalid, r.Memory, r.FrameSize, uint64(maxMemory))
	case !validInterface(r.Interface):
		return fmt.Errorf("%w: no name of an interface: %q", ErrInvalid, r.Interface)
	}
	return nil
}

// validInterface tells whether the kernel accepts a name (dev_valid_name), with ASCII only.
func validInterface(name string) bool {
	return name != "" && len(name) < maxInterface && name != "." && name != ".." &&
		!strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' || r == ':' })
}

// bytes is the locked memory of a lease with a number of sockets.
func (r *Request) bytes(sockets int) uint64 {
	return uint64(sockets) * (uint64(r.Frames)*uint64(r.FrameSize) + r.Memory)
}
