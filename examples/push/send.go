package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// receiver is one host that gets the file.
type receiver struct {
	host              string
	ep                *dat.EP
	answer            int            // offset in sender.data for its messages
	window            dat.RMRTriplet // its memory for chunks
	written, credited int            // number of chunks that it has received, and that it has written to its file
	sum               []byte         // its checksum of the file
	err               error          // why it was dropped; nil if it was not
}

// sender reads the file once into memory for window chunks, and writes each chunk to all receivers.
type sender struct {
	evd  *dat.EVD
	data []byte // window chunks, a checksum, and a message of each receiver
	mem  *dat.LMR
	all  []*receiver

	patience time.Duration // longest wait for a receiver
}

func send(ctx context.Context, ia *dat.IA, name string, hosts []string, patience time.Duration) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", name)
	}
	s := &sender{data: make([]byte, window*chunkSize+(1+len(hosts))*sha256.Size), patience: patience}
	if err := s.dial(ctx, ia, hosts, offer(filepath.Base(name), info.Size())); err != nil {
		return err
	}
	p := newProgress(os.Stderr, info.Size())
	chunks, sum, err := s.copy(ctx, io.LimitReader(file, info.Size()), p)
	if err == nil {
		err = s.compare(ctx, chunks, sum, p)
	}
	p.finish(int64(s.slowest()) * chunkSize)
	if err != nil && err != errNobody {
		return err
	}
	return s.report(name, sum)
}

// dial offers the file to all receivers and waits for their answers.
func (s *sender) dial(ctx context.Context, ia *dat.IA, hosts []string, offer []byte) error {
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	if s.mem, err = ia.CreateLMR(s.data, pz, dat.MemLocalRead|dat.MemLocalWrite); err != nil {
		return err
	}
	// For each receiver: a completion for every write and every receive, and the events of the connection.
	if s.evd, err = ia.CreateEVD(len(hosts)*(2*window+8), nil, dat.EVDConnection|dat.EVDDTO); err != nil {
		return err
	}
	for i, host := range hosts {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return fmt.Errorf("receiver %s: give the IP address that it prints", host)
		}
		r := &receiver{host: host, answer: window*chunkSize + (1+i)*sha256.Size}
		if r.ep, err = ia.CreateEP(pz, dat.EPConfig{RecvEVD: s.evd, RequestEVD: s.evd, ConnectEVD: s.evd}); err != nil {
			return err
		}
		_ = r.ep.SetConsumerContext(r) // lets next find the receiver of an event; it cannot fail on a new endpoint
		for range window + 1 {
			if err := s.expect(r); err != nil {
				return err
			}
		}
		if err := r.ep.Connect(addr, service, 5*time.Second, offer); err != nil {
			return fmt.Errorf("receiver %s: %w", host, err)
		}
		s.all = append(s.all, r)
	}
	err = s.waitFor(ctx, func(r *receiver) bool { return r.window.Length > 0 })
	if err == errNobody {
		return s.report("", nil)
	}
	return err
}

// expect posts a receive for a credit or the checksum.
func (s *sender) expect(r *receiver) error {
	return r.ep.PostRecv([]dat.LMRTriplet{s.mem.Segment(r.answer, sha256.Size)}, 0, dat.CompletionDefault)
}

// copy sends the file. Before it reads a chunk, all receivers must have room for the chunk, and all writes from the
// chunk's buffer must have completed.
func (s *sender) copy(ctx context.Context, file io.Reader, p *progress) (chunks int, sum []byte, err error) {
	hash := sha256.New()
	for chunk := 0; ; chunk++ {
		if err := s.waitFor(ctx, func(r *receiver) bool { return r.done() > chunk-window }); err != nil {
			return 0, nil, err
		}
		p.show(int64(s.slowest()) * chunkSize)
		at := chunk % window * chunkSize
		n, err := io.ReadFull(file, s.data[at:][:chunkSize])
		if err == io.EOF {
			return chunk, hash.Sum(nil), nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return 0, nil, err
		}
		hash.Write(s.data[at:][:n])
		s.each(func(r *receiver) error { return s.write(r, at, n) })
	}
}

// write copies n bytes at offset at to the same offset of a receiver's window. The immediate data is n.
func (s *sender) write(r *receiver, at, n int) error {
	to := dat.RMRTriplet{Context: r.window.Context, Address: r.window.Address + uint64(at), Length: uint64(n)}
	return r.ep.PostRDMAWriteImm([]dat.LMRTriplet{s.mem.Segment(at, n)}, 0, to, uint32(n), dat.CompletionDefault)
}

// compare sends the SHA-256 of the file to all receivers, and waits for the SHA-256 that each receiver has computed. A
// receiver keeps the file if the two are equal.
func (s *sender) compare(ctx context.Context, chunks int, sum []byte, p *progress) error {
	const at = window * chunkSize
	copy(s.data[at:], sum)
	s.each(func(r *receiver) error {
		return r.ep.PostSend([]dat.LMRTriplet{s.mem.Segment(at, len(sum))}, 0, dat.CompletionDefault)
	})
	for chunk := max(chunks-window, 0); chunk < chunks; chunk++ { // each chunk has its own time limit
		if err := s.waitFor(ctx, func(r *receiver) bool { return r.done() > chunk }); err != nil {
			return err
		}
		p.show(int64(s.slowest()) * chunkSize)
	}
	return s.waitFor(ctx, func(r *receiver) bool { return r.sum != nil })
}

func (s *sender) report(name string, sum []byte) error {
	var errs []error
	for _, r := range s.all {
		if r.err == nil && !bytes.Equal(r.sum, sum) {
			r.err = fmt.Errorf("its SHA-256 is %x", r.sum)
		}
		if r.err != nil {
			errs = append(errs, fmt.Errorf("%s does not have the file: %w", r.host, r.err))
		}
	}
	if have := len(s.all) - len(errs); have > 0 {
		fmt.Printf("%s: %d of %d receivers have it, SHA-256 %x\n", name, have, len(s.all), sum)
	}
	return errors.Join(errs...)
}

// done returns the number of chunks that are in the receiver's file and whose writes have completed.
func (r *receiver) done() int { return min(r.written, r.credited) }

// slowest returns the smallest result of done, or 0 if all receivers were dropped.
func (s *sender) slowest() int {
	least := -1
	for _, r := range s.all {
		if r.err == nil && (least < 0 || r.done() < least) {
			least = r.done()
		}
	}
	return max(least, 0)
}

// each calls do for every receiver. It drops the receivers for which do fails.
func (s *sender) each(do func(*receiver) error) {
	for _, r := range s.all {
		if r.err == nil {
			r.leave(do(r))
		}
	}
}

// leave drops a receiver because of an error.
func (r *receiver) leave(why error) {
	if why != nil && r.err == nil {
		r.err = why
		_ = r.ep.Disconnect(dat.CloseAbrupt) // fails if it is not connected
	}
}

var errNobody = errors.New("no receiver is left")

// waitFor handles events until cond returns true for every receiver. It drops receivers for which cond is still false
// after the sender's patience, because the others would have to wait for them.
func (s *sender) waitFor(ctx context.Context, cond func(*receiver) bool) error {
	limit, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for {
		left, waits := 0, false
		s.each(func(r *receiver) error {
			left++
			waits = waits || !cond(r)
			return nil
		})
		if left == 0 {
			return errNobody
		}
		if !waits {
			return nil
		}
		err := s.next(limit)
		if err != nil && limit.Err() != nil && ctx.Err() == nil {
			s.each(func(r *receiver) error {
				if cond(r) {
					return nil
				}
				return fmt.Errorf("it has done nothing for %v", s.patience)
			})
		} else if err != nil {
			return err
		}
	}
}

// next waits for one event and handles it.
func (s *sender) next(ctx context.Context) error {
	var ev dat.Event
	if _, err := s.evd.WaitContext(ctx, 1, &ev); err != nil {
		return err
	}
	of, err := ev.EP.ConsumerContext()
	if err != nil {
		return err
	}
	r := of.(*receiver)
	r.leave(s.handle(r, &ev))
	return nil
}

func (s *sender) handle(r *receiver, ev *dat.Event) error {
	switch {
	case ev.Number == dat.EventEstablished:
		_, err := binary.Decode(ev.PrivateData, binary.BigEndian, &r.window)
		if err != nil || r.window.Length != window*chunkSize {
			return errors.New("it does not speak this protocol")
		}
	case ev.Number == dat.EventPeerRejected:
		return fmt.Errorf("it refuses: %q", ev.PrivateData)
	case ev.Number == dat.EventTimedOut, ev.Number == dat.EventNonPeerRejected, ev.Number == dat.EventUnreachable:
		return fmt.Errorf("%w: is it receiving there, and nothing else just now?", ev.Err())
	case ev.Status == dat.DTOFlushed: // the connection has ended, which the next event reports
	case r.sum != nil && (ev.Number == dat.EventDisconnected || ev.Number == dat.EventBroken): // it has disconnected after its last message
	case ev.Number != dat.EventDTOCompletion && ev.Number != dat.EventIBDTO || ev.Status != dat.DTOSuccess:
		return fmt.Errorf("it has ended the connection: %v %v", ev.Number, ev.Status)
	case ev.Op == dat.DTORDMAWriteImm:
		r.written++
	case ev.Op == dat.DTOReceive && ev.Length == 0:
		r.credited++
		return s.expect(r)
	case ev.Op == dat.DTOReceive:
		r.sum = bytes.Clone(s.data[r.answer:][:ev.Length])
	}
	return nil
}
