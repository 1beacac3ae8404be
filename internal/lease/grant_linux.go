package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// answerLease makes the lease of the connection.
func (s *session) answerLease(ctx context.Context, sequence uint32, b *requestBody) error {
	r, err := b.parse()
	if err != nil {
		return s.fail(sequence, "", fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	g, err := s.lend(ctx, r)
	if err != nil {
		return s.fail(sequence, r.Interface, err)
	}
	defer g.Close()
	return s.write(kindGranted, sequence, g.body(), g)
}

// lend checks a request and makes the lease.
func (s *session) lend(ctx context.Context, r Request) (*Grant, error) {
	r.setDefaults()
	switch err := r.validate(); {
	case err != nil:
		return nil, err
	case s.lease != 0:
		return nil, fmt.Errorf("%w: this connection has lease %d; another lease takes another connection", ErrInvalid, s.lease)
	case !slices.Contains(s.server.interfaces, r.Interface):
		return nil, fmt.Errorf("%w: this daemon leases %s, not %s", ErrInterface, strings.Join(s.server.interfaces, ", "), r.Interface)
	}
	rule, err := s.server.policy.Load().find(&s.who, &r)
	if err != nil {
		return nil, err
	}
	select {
	case s.account.making <- struct{}{}:
		defer func() { <-s.account.making }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.make(ctx, r, rule)
}

// make makes a lease within the limits of a rule. The session makes the user's only one at this time.
func (s *session) make(ctx context.Context, r Request, rule *rule) (*Grant, error) {
	if err := rule.room(s.who.UID, r.bytes(1), s.server.Leases()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, leaseLimit)
	defer cancel()
	g, err := s.server.kernel.Lease(ctx, r, s.who.Holder, rule.limits)
	if err != nil {
		return nil, err
	}
	bytes := r.bytes(len(g.Sockets))
	if err := s.fits(g, rule, bytes); err != nil {
		g.Close()
		_ = s.server.kernel.Release(g.ID)
		return nil, err
	}
	s.lease = g.ID
	s.server.table.put(Held{g.ID, g.Interface, g.Mode, s.who.Holder, bytes, time.Now()})
	s.server.counters.granted.Add(1)
	s.server.log.Info("leased", "lease", g.ID, "interface", g.Interface, "mode", string(g.Mode), "uid", s.who.UID,
		"gid", s.who.GID, "pid", s.who.PID, "rule", rule.name)
	return g, nil
}

// fits checks a grant, whose number of sockets was not known before.
func (s *session) fits(g *Grant, rule *rule, bytes uint64) error {
	if n := len(g.Sockets); n == 0 || n > maxSockets || n != len(g.UMEMs) || len(g.Ports) > maxPorts {
		return fmt.Errorf("%w: a lease with %d sockets, %d memories and %d ports", ErrInterface, n, len(g.UMEMs), len(g.Ports))
	}
	return rule.room(s.who.UID, bytes, s.server.Leases())
}

// answerAdopt gives the connection the lease that its process got from an earlier daemon.
func (s *session) answerAdopt(ctx context.Context, sequence, id uint32) error {
	if s.lease != 0 {
		return s.fail(sequence, "", fmt.Errorf("%w: this connection has lease %d", ErrInvalid, s.lease))
	}
	held, ok := s.server.table.adopt(id, s.who.Holder)
	if !ok {
		return s.fail(sequence, "", fmt.Errorf("%w %d of process %d without a connection", ErrNoLease, id, s.who.PID))
	}
	s.lease = id
	g, err := s.server.kernel.Adopt(ctx, id, s.who.Holder)
	if err != nil {
		s.release()
		return s.fail(sequence, held.Interface, err)
	}
	s.server.counters.adopted.Add(1)
	s.server.log.Info("adopted", "lease", id, "interface", held.Interface, "uid", s.who.UID, "pid", s.who.PID)
	return s.write(kindGranted, sequence, g.body(), nil)
}
