package lease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"
)

// session serves one connection. One goroutine owns it.
type session struct {
	server  *Server
	conn    *net.UnixConn
	who     Subject
	account *account
	lease   uint32 // its lease, or 0
}

// serve answers requests until the client hangs up, breaks the protocol, or ctx is done.
func (s *session) serve(ctx context.Context) {
	defer s.conn.Close()
	defer context.AfterFunc(ctx, func() { s.conn.Close() })()
	for s.next(ctx) == nil {
	}
	if s.lease != 0 && ctx.Err() == nil {
		s.release()
	}
}

// release ends the lease.
func (s *session) release() {
	if err := s.server.kernel.Release(s.lease); err != nil {
		s.server.log.Error("a lease cannot be released", "lease", s.lease, "error", err)
	}
	s.server.table.remove(s.lease)
	s.server.log.Info("released", "lease", s.lease, "uid", s.who.UID, "pid", s.who.PID)
	s.lease = 0
}

// next reads one request and answers it. An error ends the connection.
func (s *session) next(ctx context.Context) error {
	message, err := s.read()
	if err != nil {
		return err
	}
	s.server.counters.requests.Add(1)
	h, body, malformed := decode(message)
	if err := s.server.accounts.wait(ctx, s.account, cost(h.Kind)); err != nil {
		return err
	}
	if malformed != nil {
		if !errors.Is(malformed, ErrVersion) {
			malformed = fmt.Errorf("%w: %w", ErrInvalid, malformed)
		}
		_ = s.fail(h.Sequence, "", malformed)
		return malformed
	}
	return s.answer(ctx, h, body)
}

// read reads one message. It takes no descriptors: the kernel drops those that a client sends, and says so.
func (s *session) read() ([]byte, error) {
	var deadline time.Time
	if s.lease == 0 {
		deadline = time.Now().Add(s.server.idle)
	}
	if err := s.conn.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	b := make([]byte, maxMessage)
	n, _, flags, _, err := s.conn.ReadMsgUnix(b, nil)
	if err != nil {
		return nil, err
	}
	if flags&(syscall.MSG_TRUNC|syscall.MSG_CTRUNC) != 0 {
		return nil, errMalformed
	}
	return b[:n], nil
}

// cost is the price of a request in tokens.
func cost(k kind) float64 {
	if k == kindLease {
		return leaseCost
	}
	return 1
}

func (s *session) answer(ctx context.Context, h header, body any) error {
	var err error
	switch b := body.(type) {
	case *requestBody:
		return s.answerLease(ctx, h.Sequence, b)
	case *adoptBody:
		return s.answerAdopt(ctx, h.Sequence, b.Lease)
	case *listenBody:
		if err = s.held(); err == nil && h.Kind == kindListen {
			err = s.server.kernel.Listen(s.lease, b.Qualifier)
		} else if err == nil {
			s.server.kernel.Unlisten(s.lease, b.Qualifier)
		}
	case *routeBody:
		return s.answerRoute(h.Sequence, b)
	case *listBody:
		return s.answerList(h.Sequence, b.After)
	default:
		err = fmt.Errorf("%w: kind %d is an answer", ErrInvalid, h.Kind)
	}
	if err != nil {
		return s.fail(h.Sequence, "", err)
	}
	return s.write(kindDone, h.Sequence, &doneBody{}, nil)
}

// held returns an error if the connection has no lease.
func (s *session) held() error {
	if s.lease == 0 {
		return fmt.Errorf("%w of this connection", ErrNoLease)
	}
	return nil
}

func (s *session) answerRoute(sequence uint32, b *routeBody) error {
	err := s.held()
	var route Route
	if to := parseAddr(b.To); err == nil && to.IsValid() {
		route, err = s.server.kernel.Route(s.lease, to)
	} else if err == nil {
		err = fmt.Errorf("%w: no address", ErrInvalid)
	}
	if err != nil {
		return s.fail(sequence, "", err)
	}
	return s.write(kindRouted, sequence, &routedBody{putAddr(route.From), uint32(route.MTU)}, nil)
}

// answerList sends the leases with the smallest numbers above one. Root sees all, others see their own.
func (s *session) answerList(sequence, after uint32) error {
	all := slices.DeleteFunc(s.server.Leases(), func(h Held) bool {
		return h.ID <= after || s.who.UID != 0 && s.who.UID != h.Holder.UID
	})
	var b listedBody
	for i, h := range all[:min(len(all), listPage)] {
		b.Leases[i] = h.body()
	}
	return s.write(kindListed, sequence, &b, nil)
}

// fail refuses a request.
func (s *session) fail(sequence uint32, ifname string, err error) error {
	s.server.refused(&s.who, ifname, err)
	return s.write(kindFailed, sequence, failure(err), nil)
}

// write sends an answer with files. A client that does not read is given up.
func (s *session) write(k kind, sequence uint32, body any, g *Grant) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	message := encode(k, sequence, body)
	if g == nil {
		_, err := s.conn.Write(message)
		return err
	}
	rights, err := g.rights()
	if err != nil {
		return err
	}
	_, _, err = s.conn.WriteMsgUnix(message, rights, nil)
	return err
}

// rights is the control message with the files: sockets, then UMEMs.
func (g *Grant) rights() ([]byte, error) {
	var fds []int
	for _, f := range slices.Concat(g.Sockets, g.UMEMs) {
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, err
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return nil, err
		}
	}
	return syscall.UnixRights(fds...), nil
}
