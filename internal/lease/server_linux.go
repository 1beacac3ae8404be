package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Server leases interfaces to the clients that connect to a Unix socket. Any goroutine may call its methods.
type Server struct {
	kernel     Kernel
	interfaces []string // that are leased; the others are refused
	log        *slog.Logger
	policy     atomic.Pointer[Policy]
	accounts   accounts
	table      table
	counters   counters
	refusals   logLimit
	idle       time.Duration // idleLimit; shorter in tests
}

// NewServer makes a Server for some interfaces. It removes what dead clients of an earlier daemon have left.
func NewServer(k Kernel, interfaces []string, p *Policy, log *slog.Logger) (*Server, error) {
	s := &Server{kernel: k, interfaces: interfaces, log: log, accounts: accounts{byUID: make(map[uint32]*account)},
		table: table{leases: make(map[uint32]entry)}, idle: idleLimit}
	s.policy.Store(p)
	found, err := k.Sweep()
	if err != nil {
		return nil, fmt.Errorf("lease: sweeping what an earlier daemon left: %w", err)
	}
	s.table.setOrphans(found, true)
	return s, nil
}

// SetPolicy replaces the policy. Leases that exist are kept.
func (s *Server) SetPolicy(p *Policy) { s.policy.Store(p) }

// Leases returns the leases that exist, by number.
func (s *Server) Leases() []Held { return s.table.all() }

// Serve serves the clients of a listener, a SOCK_SEQPACKET Unix socket, until ctx is done or the listener fails. Then it
// closes the listener and all connections. The leases go on: they wait for the next daemon.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	ctx, stop := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer stop()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	serving.Go(func() { s.maintain(ctx) })
	for {
		c, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			s.log.Warn("a client cannot connect", "error", err)
			pause(ctx, acceptPause)
		default:
			s.begin(ctx, c, &serving)
		}
	}
}

// pause waits for a time, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// begin serves a connection in a goroutine, or refuses it.
func (s *Server) begin(ctx context.Context, c *net.UnixConn, serving *sync.WaitGroup) {
	who, err := subjectOf(c)
	if err != nil {
		s.log.Warn("a client is refused", "error", err)
		c.Close()
		return
	}
	most := s.policy.Load().connections(&who)
	account := s.accounts.enter(who.UID, most, time.Now())
	if account == nil {
		s.refuseConnection(c, &who, most)
		return
	}
	serving.Go(func() {
		defer s.accounts.leave(account)
		(&session{server: s, conn: c, who: who, account: account}).serve(ctx)
	})
}

// refuseConnection says why, and closes a connection. It does not wait: the buffer of a new connection is empty.
func (s *Server) refuseConnection(c *net.UnixConn, who *Subject, most int) {
	err := fmt.Errorf("%w: no rule is for user %d", ErrDenied, who.UID)
	if most > 0 {
		err = fmt.Errorf("%w: user %d has too many connections, or all users together", ErrLimit, who.UID)
	}
	s.refused(who, "", err)
	_ = c.SetWriteDeadline(time.Now().Add(writeLimit))
	_, _ = c.Write(encode(kindFailed, 0, failure(err)))
	c.Close()
}

// refused counts a refusal, and logs it within a bound: every user may cause refusals.
func (s *Server) refused(who *Subject, ifname string, err error) {
	s.counters.refused[statusOf(err)].Add(1)
	hidden, ok := s.refusals.next(time.Now())
	if !ok {
		return
	}
	s.log.Info("refused", "hidden", hidden, "interface", ifname, "uid", who.UID, "gid", who.GID, "pid", who.PID, "error", err)
}

// maintain removes the leases of orphans that end, and forgets users.
func (s *Server) maintain(ctx context.Context) {
	for {
		pause(ctx, sweepPeriod)
		if ctx.Err() != nil {
			return
		}
		s.accounts.prune(time.Now())
		if s.table.orphans() == 0 {
			continue
		}
		found, err := s.kernel.Sweep()
		if err != nil {
			s.log.Error("leases of ended programs cannot be removed", "error", err)
			continue
		}
		s.table.setOrphans(found, false)
	}
}

// Listen makes the socket at a path. A socket that no daemon serves any more is replaced. Every user may connect, because
// the policy decides.
func Listen(path string) (*net.UnixListener, error) {
	addr := &net.UnixAddr{Name: path, Net: "unixpacket"}
	if c, err := net.DialUnix(addr.Net, nil, addr); err == nil {
		c.Close()
		return nil, fmt.Errorf("lease: another daemon serves %s", path)
	}
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("lease: %w", err)
		}
	}
	l, err := net.ListenUnix(addr.Net, addr)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, fmt.Errorf("lease: %w", err)
	}
	return l, nil
}
