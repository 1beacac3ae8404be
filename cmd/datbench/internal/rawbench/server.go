package rawbench

import (
	"context"
	"runtime"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/usage"
)

// Server answers pings, counts data frames and reports the count.
type Server struct {
	end
	count count
	// seen is the number of frames of this package so far.
	seen  uint64
	base  dropCounters
	usage usage.Usage
}

// NewServer opens the answering end.
func NewServer(cfg Config) (*Server, error) {
	e, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &Server{end: e}, nil
}

const (
	// quietAfter is the time without a frame after which a server stops spinning. The server is then between two rows,
	// or its client is gone.
	quietAfter = time.Second
	// nap is how long a quiet server sleeps between two checks of its context.
	nap = 20 * time.Millisecond
)

// Serve spins until the context ends, but sleeps while no frames arrive. It returns an error if the engine fails.
func (s *Server) Serve(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for heard := time.Now(); ctx.Err() == nil; {
		before := s.seen
		for range 256 { // between two checks of the context
			if err := s.port.exchange(s.visit); err != nil {
				return err
			}
		}
		if s.seen != before {
			heard = time.Now()
		} else if time.Since(heard) > quietAfter {
			if err := s.port.wait(nap); err != nil {
				return err
			}
		}
	}
	return nil
}

// visit handles one frame.
func (s *Server) visit(h []byte, size int) (answer bool) {
	if !ours(h) {
		return false
	}
	s.seen++
	switch kindOf(h) {
	case ping:
		setKind(h, pong)
		turn(h)
		return true
	case warm:
		s.begin(runOf(h))
	case data:
		s.begin(runOf(h))
		s.add(size)
	case ask:
		return s.report(h)
	default: // kinds that only a client receives
	}
	return false
}

// dateEvery is the number of frames between two reads of the clock, because a read costs as much as a frame. The error
// is one in a thousand for a run of about 10 000 frames.
const dateEvery = 16

// begin starts the count of a run at its first frame.
func (s *Server) begin(run uint32) {
	if s.count.run == run {
		return
	}
	s.count = count{run: run}
	s.usage = usage.Start()
	s.base = s.drops()
}

func (s *Server) add(size int) {
	c := &s.count
	if c.frames%dateEvery == 0 {
		c.last = time.Now()
	}
	if c.frames == 0 {
		c.first = c.last
	}
	c.frames++
	c.bytes += uint64(size)
}

// report answers with the count of the current run. It ignores requests for other runs.
func (s *Server) report(h []byte) bool {
	if len(h) < askLen || runOf(h) != s.count.run {
		return false
	}
	s.count.dropped = s.drops().since(s.base).rx
	s.count.coreShare = s.usage.Share()
	s.count.encode(h[headLen:])
	setKind(h, result)
	turn(h)
	return true
}
