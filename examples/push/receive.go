package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/datxdp/datxdp/dat"
)

// incoming is one file that comes: in chunks, each by an RDMA write that says with its immediate data how
// many bytes it has, then the sender's SHA-256 as a message.
type incoming struct {
	ep     *dat.EP
	data   []byte // window chunks, and one for the message at the end
	mem    *dat.LMR
	name   string
	left   int64
	chunks int // that have come
	file   *os.File
	hash   hash.Hash
}

// receive takes one file after the other.
func receive(ctx context.Context, ia *dat.IA, dir string) error {
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	requests, err := ia.CreateEVD(8, nil, dat.EVDCR)
	if err != nil {
		return err
	}
	if _, err := ia.CreatePSP(service, requests, dat.PSPConsumer); err != nil {
		return err
	}
	about, err := ia.Query()
	if err != nil {
		return err
	}
	fmt.Printf("receiving on %v (%s) into %s\n", about.Address, about.Mode, dir)
	for ev, err := range requests.Events(ctx) {
		if err != nil {
			return err
		}
		in, err := accept(ia, pz, dir, ev.CR)
		if err != nil {
			fmt.Fprintln(os.Stderr, "push:", err)
			continue
		}
		if err := in.take(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "push: %s: %v; it is not kept\n", in.name, err)
		} else {
			fmt.Printf("%s: %d chunks, SHA-256 %x\n", in.name, in.chunks, in.hash.Sum(nil))
		}
		in.close()
	}
	return nil
}

// accept begins a file. The request's private data is its size and name; the answer's where the window is.
func accept(ia *dat.IA, pz *dat.PZ, dir string, cr *dat.CR) (_ *incoming, err error) {
	in := &incoming{data: make([]byte, (window+1)*chunkSize), hash: sha256.New()}
	defer func() {
		if err != nil {
			err = errors.Join(err, cr.Reject([]byte(err.Error()[:min(len(err.Error()), 200)])))
			in.close()
		}
	}()
	about, err := cr.Query()
	if err != nil {
		return nil, err
	}
	if in.name, in.left, err = parseOffer(about.PrivateData); err != nil {
		return nil, err
	}
	// Beside the file that may be there, which is replaced when all has come.
	if in.file, err = os.CreateTemp(dir, "."+in.name+".*"); err != nil {
		return nil, err
	}
	in.name = filepath.Join(dir, in.name)
	if in.mem, err = ia.CreateLMR(in.data, pz, dat.MemAll); err != nil {
		return nil, err
	}
	evd, err := ia.CreateEVD(4*window, nil, dat.EVDConnection|dat.EVDDTO)
	if err != nil {
		return nil, err
	}
	if in.ep, err = ia.CreateEP(pz, evd, evd, evd, nil); err != nil {
		return nil, err
	}
	// A write with immediate data takes a receive, whose memory it leaves alone; the last message does not.
	for range window + 1 {
		if err := in.expect(); err != nil {
			return nil, err
		}
	}
	where, err := binary.Append(nil, binary.BigEndian, in.mem.Remote(0, window*chunkSize))
	if err != nil {
		return nil, err
	}
	return in, cr.Accept(in.ep, where)
}

func (in *incoming) expect() error {
	return in.ep.PostRecv([]dat.LMRTriplet{in.mem.Segment(window*chunkSize, sha256.Size)}, 0, dat.CompletionDefault)
}

// offer is the private data of a request: size and name of the file.
func offer(name string, size int64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(size)), name...)
}

// parseOffer believes no name that leads out of the directory.
func parseOffer(b []byte) (name string, size int64, err error) {
	if len(b) < 9 || int64(binary.BigEndian.Uint64(b)) < 0 {
		return "", 0, errors.New("a request that is no offer of a file")
	}
	name = string(b[8:])
	if name == "." || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return "", 0, fmt.Errorf("the name %q is not that of a file in a directory", name)
	}
	return name, int64(binary.BigEndian.Uint64(b)), nil
}

// take writes what comes to the file, until the sender's sum is here and its own is there.
func (in *incoming) take(ctx context.Context) error {
	param, err := in.ep.Query()
	if err != nil {
		return err
	}
	for ev, err := range param.RecvEVD.Events(ctx) {
		switch {
		case err != nil:
			return err
		case ev.Number == dat.EventEstablished:
		case ev.Number != dat.EventDTOCompletion && ev.Number != dat.EventIBDTO:
			return fmt.Errorf("the sender has ended the connection: %v", ev.Number)
		case ev.Op == dat.DTOSend && ev.Status == dat.DTOSuccess:
		case ev.Status == dat.DTOFlushed: // of a connection that has ended, as the event that follows says
		case ev.Number == dat.EventIBDTO && ev.Status == dat.DTOSuccess:
			if err := in.chunk(int(ev.Imm)); err != nil {
				return err
			}
		case ev.Number == dat.EventDTOCompletion && ev.Status == dat.DTOSuccess:
			return in.compare(ctx, param.RequestEVD, in.data[window*chunkSize:][:ev.Length])
		default:
			return fmt.Errorf("the sender has ended the connection: %v %v", ev.Number, ev.Status)
		}
	}
	return nil
}

// chunk writes one chunk to the file and gives its memory back to the sender.
func (in *incoming) chunk(n int) error {
	if n > chunkSize || int64(n) > in.left {
		return fmt.Errorf("a chunk of %d bytes where %d are left", n, in.left)
	}
	data := in.data[in.chunks%window*chunkSize:][:n]
	if _, err := io.MultiWriter(in.file, in.hash).Write(data); err != nil {
		return err
	}
	in.chunks++
	in.left -= int64(n)
	if err := in.expect(); err != nil {
		return err
	}
	return in.ep.PostSend(nil, 0, dat.CompletionDefault)
}

// compare keeps the file if the sums are one, and tells the sender ours.
func (in *incoming) compare(ctx context.Context, evd *dat.EVD, theirs []byte) error {
	ours := in.hash.Sum(nil)
	if in.left != 0 || string(ours) != string(theirs) {
		return fmt.Errorf("SHA-256 is %x here and %x there, %d bytes are missing", ours, theirs, in.left)
	}
	if err := errors.Join(in.file.Chmod(0o644), in.file.Close(), os.Rename(in.file.Name(), in.name)); err != nil {
		return err
	}
	in.file = nil
	copy(in.data, ours)
	if err := in.ep.PostSend([]dat.LMRTriplet{in.mem.Segment(0, len(ours))}, 0, dat.CompletionDefault); err != nil {
		return err
	}
	// The sender hangs up when it has the answer.
	var ev dat.Event
	for ev.Number != dat.EventDisconnected && ev.Number != dat.EventBroken {
		if _, err := evd.WaitContext(ctx, 1, &ev); err != nil {
			return err
		}
	}
	return nil
}

// close lets go of what the file has held. What came only in part is not kept.
func (in *incoming) close() {
	if in.ep != nil {
		param, err := in.ep.Query()
		if errors.Join(err, in.ep.Free()) == nil {
			_ = param.RecvEVD.Free() // nothing feeds it any more
		}
	}
	if in.mem != nil {
		_ = in.mem.Free() // nothing is bound to it
	}
	if in.file != nil {
		_ = in.file.Close()
		_ = os.Remove(in.file.Name())
	}
}
