package dat

import "io"

// Every object with Free also has Close, so that it is an io.Closer.
var (
	_ io.Closer = (*IA)(nil)
	_ io.Closer = (*CNO)(nil)
	_ io.Closer = (*EP)(nil)
	_ io.Closer = (*EVD)(nil)
	_ io.Closer = (*LMR)(nil)
	_ io.Closer = (*PSP)(nil)
	_ io.Closer = (*PZ)(nil)
	_ io.Closer = (*RMR)(nil)
	_ io.Closer = (*RSP)(nil)
	_ io.Closer = (*SRQ)(nil)
)

// Close is Free.
func (c *CNO) Close() error { return c.Free() }

// Close is Free.
func (ep *EP) Close() error { return ep.Free() }

// Close is Free.
func (e *EVD) Close() error { return e.Free() }

// Close is Free.
func (l *LMR) Close() error { return l.Free() }

// Close is Free.
func (p *PSP) Close() error { return p.Free() }

// Close is Free.
func (p *PZ) Close() error { return p.Free() }

// Close is Free.
func (r *RMR) Close() error { return r.Free() }

// Close is Free.
func (r *RSP) Close() error { return r.Free() }

// Close is Free.
func (s *SRQ) Close() error { return s.Free() }
