package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/examples/places"
)

// incoming is one file that is being received. Each chunk is an RDMA write with immediate data, which tells the
// receiver that the chunk has arrived. After the last chunk the sender sends its SHA-256 as a message.
type incoming struct {
	ep     *dat.EP
	evd    *dat.EVD
	data   []byte // window chunks, and one for the last message
	mem    *dat.LMR
	name   string
	left   int64 // bytes that have not arrived
	chunks int   // chunks that have arrived
	file   *os.File
	hash   hash.Hash
	stable []byte // copy of the current chunk

	patience time.Duration // longest wait for the sender's next message
}

// cookieOfSum is the cookie of the last message to the sender. All other operations have cookie 0.
const cookieOfSum = 1

// maxFiles is the largest number of files that are received at the same time. Each has memory for window chunks.
const maxFiles = 16

// maxRequests is the number of requests that may wait for the receiver. Beyond it the adapter rejects requests, so it is
// larger than the number of requests that some hosts make at once.
const maxRequests = 256

// inbox counts the files that are being received, by their sender's host. A host may have as many as maxFiles has room
// for (a dynamic threshold), so that a few hosts do not keep others out.
type inbox struct {
	mu    sync.Mutex
	files map[netip.Addr]int
	all   int
}

// enter counts a file of the requesting sender. ok is false if there is no room for it.
func (b *inbox) enter(cr *dat.CR) (host netip.Addr, ok bool) {
	about, err := cr.Query()
	host = places.Host(about.RemoteAddress)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, free := b.files[host], maxFiles-b.all; err != nil || free == 0 || n > 0 && n >= free {
		return host, false
	}
	b.all++
	b.files[host]++
	return host, true
}

func (b *inbox) leave(host netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.files[host]--; b.files[host] == 0 {
		delete(b.files, host)
	}
}

// receive receives files from several senders at the same time, so that an idle sender does not block the others. A
// sender that sends nothing for the duration patience is given up.
func receive(ctx context.Context, ia *dat.IA, dir string, patience time.Duration) error {
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	requests, err := listen(ia)
	if err != nil {
		return err
	}
	about, err := ia.Query()
	if err != nil {
		return err
	}
	fmt.Printf("receiving on %v (%s) into %s\n", about.Address, about.Mode, dir)
	box, errs := inbox{files: map[netip.Addr]int{}}, places.Errors{Out: os.Stderr}
	var receiving sync.WaitGroup
	defer receiving.Wait()
	for ev, err := range places.Events(ctx, ia, requests) {
		if err != nil {
			return err
		}
		host, ok := box.enter(ev.CR)
		if !ok {
			_ = ev.CR.Reject([]byte("it receives as many files as it takes at a time")) // fails if the sender has given up
			continue
		}
		in, err := accept(ia, pz, dir, ev.CR)
		if err != nil {
			box.leave(host)
			errs.Print(fmt.Sprint("push: ", err))
			continue
		}
		in.patience = patience
		receiving.Go(func() {
			defer box.leave(host)
			in.finish(ctx, &errs)
		})
	}
	return nil
}

// listen returns the dispatcher that gets the requests of senders.
func listen(ia *dat.IA) (*dat.EVD, error) {
	requests, err := ia.CreateEVD(maxRequests, nil, dat.EVDCR)
	if err != nil {
		return nil, err
	}
	_, err = ia.CreatePSP(service, requests, dat.PSPConsumer)
	return requests, err
}

// finish receives the file and prints the result.
func (in *incoming) finish(ctx context.Context, errs *places.Errors) {
	defer in.close()
	if err := in.take(ctx); err != nil {
		errs.Print(fmt.Sprintf("push: %s: %v; it is not kept", in.name, err))
	} else {
		fmt.Printf("%s: %d chunks, SHA-256 %x\n", in.name, in.chunks, in.hash.Sum(nil))
	}
}

// accept accepts one file. The private data of the request has its size and name. The private data of the answer tells
// the sender the address of the window.
func accept(ia *dat.IA, pz *dat.PZ, dir string, cr *dat.CR) (_ *incoming, err error) {
	in := &incoming{hash: sha256.New()}
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
	// The file is written under a temporary name in the same directory. When it is complete, a rename replaces an older
	// file.
	if in.file, err = os.CreateTemp(dir, "."+in.name+".*"); err != nil {
		return nil, err
	}
	in.name = filepath.Join(dir, in.name)
	in.data = make([]byte, (window+1)*chunkSize)
	if in.mem, err = ia.CreateLMR(in.data, pz, dat.MemAll); err != nil {
		return nil, err
	}
	if err := in.setUp(ia, pz); err != nil {
		return nil, err
	}
	where, err := binary.Append(nil, binary.BigEndian, in.mem.Remote(0, window*chunkSize))
	if err != nil {
		return nil, err
	}
	return in, cr.Accept(in.ep, where)
}

// setUp creates the endpoint. It posts receives for everything that the sender may send before it gets a credit.
func (in *incoming) setUp(ia *dat.IA, pz *dat.PZ) (err error) {
	if in.evd, err = ia.CreateEVD(4*window, nil, dat.EVDConnection|dat.EVDDTO); err != nil {
		return err
	}
	if in.ep, err = ia.CreateEP(pz, dat.EPConfig{RecvEVD: in.evd, RequestEVD: in.evd, ConnectEVD: in.evd}); err != nil {
		return err
	}
	for range window + 1 {
		if err := in.expect(); err != nil {
			return err
		}
	}
	return nil
}

// expect posts a receive, which one of two things consumes:
//
//   - a write with immediate data, which does not use the receive's memory
//   - the last message, which has the file's SHA-256
func (in *incoming) expect() error {
	return in.ep.PostRecv([]dat.LMRTriplet{in.mem.Segment(window*chunkSize, sha256.Size)}, 0, dat.CompletionDefault)
}

// offer encodes the private data of a request: size and name of the file.
func offer(name string, size int64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(size)), name...)
}

// parseOffer decodes an offer. It refuses names of other directories, of hidden files, and with control characters.
func parseOffer(b []byte) (name string, size int64, err error) {
	if len(b) < 9 || int64(binary.BigEndian.Uint64(b)) < 0 {
		return "", 0, errors.New("a request that is no offer of a file")
	}
	name = string(b[8:])
	if strings.HasPrefix(name, ".") || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return "", 0, fmt.Errorf("the name %q is not that of a visible file in a directory", name)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", 0, fmt.Errorf("the name %+q has characters that cannot be printed", name)
	}
	return name, int64(binary.BigEndian.Uint64(b)), nil
}

// take writes the chunks to the file until both sides have exchanged their checksums.
func (in *incoming) take(ctx context.Context) error {
	for {
		var ev dat.Event
		err := in.next(ctx, &ev)
		switch {
		case err != nil:
			return err
		case ev.Number == dat.EventEstablished:
		case ev.Number != dat.EventDTOCompletion && ev.Number != dat.EventIBDTO:
			return fmt.Errorf("the sender has ended the connection: %v", ev.Number)
		case ev.Op == dat.DTOSend && ev.Status == dat.DTOSuccess:
		case ev.Status == dat.DTOFlushed: // the connection has ended, which the next event reports
		case ev.Number == dat.EventIBDTO && ev.Status == dat.DTOSuccess:
			if err := in.chunk(ev.Length); err != nil {
				return err
			}
		case ev.Number == dat.EventDTOCompletion && ev.Status == dat.DTOSuccess:
			return in.compare(ctx, in.data[window*chunkSize:][:ev.Length])
		default:
			return fmt.Errorf("the sender has ended the connection: %v %v", ev.Number, ev.Status)
		}
	}
}

// next waits for the next event of the connection, for at most the patience.
func (in *incoming) next(ctx context.Context, ev *dat.Event) error {
	limit, cancel := context.WithTimeout(ctx, in.patience)
	defer cancel()
	_, err := in.evd.WaitContext(limit, 1, ev)
	if err != nil && limit.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the sender has sent nothing for %v", in.patience)
	}
	return err
}

// chunk writes one chunk to the file and returns a credit for its memory to the sender.
func (in *incoming) chunk(n uint64) error {
	if n == 0 || n != uint64(min(chunkSize, in.left)) { // only the last chunk may be shorter
		return fmt.Errorf("a chunk of %d bytes where %d are left", n, in.left)
	}
	if err := in.store(in.data[in.chunks%window*chunkSize:][:n]); err != nil {
		return err
	}
	in.chunks++
	in.left -= int64(n)
	if err := in.expect(); err != nil {
		return err
	}
	return in.ep.PostSend(nil, 0, dat.CompletionDefault)
}

// store writes a chunk to the file and to the hash. The sender may write to the registered memory at any time, so store
// copies the chunk first: the file and the hash get the same bytes.
func (in *incoming) store(chunk []byte) error {
	in.stable = append(in.stable[:0], chunk...)
	_, err := io.MultiWriter(in.file, in.hash).Write(in.stable)
	return err
}

// compare keeps the file if the two checksums are equal, and sends ours to the sender.
func (in *incoming) compare(ctx context.Context, theirs []byte) error {
	ours := in.hash.Sum(nil)
	if in.left != 0 || string(ours) != string(theirs) {
		return fmt.Errorf("SHA-256 is %x here and %x there, %d bytes are missing", ours, theirs, in.left)
	}
	if err := errors.Join(in.file.Chmod(0o644), in.file.Close(), os.Rename(in.file.Name(), in.name)); err != nil {
		return err
	}
	in.file = nil
	copy(in.data, ours)
	if err := in.ep.PostSend([]dat.LMRTriplet{in.mem.Segment(0, len(ours))}, cookieOfSum, dat.CompletionDefault); err != nil {
		return nil // the sender has left, but the file is complete
	}
	// Wait for the completion, after which the sender has our checksum. Without it the file is kept too.
	for {
		var ev dat.Event
		if err := in.next(ctx, &ev); err != nil || ev.Cookie == cookieOfSum || ev.Number == dat.EventDisconnected || ev.Number == dat.EventBroken {
			return nil
		}
	}
}

// close frees the resources of the file. An incomplete file is deleted.
func (in *incoming) close() {
	if in.ep != nil {
		_ = in.ep.Free() // also frees a connected endpoint
	}
	if in.evd != nil {
		_ = in.evd.Free() // no object uses it any more
	}
	if in.mem != nil {
		_ = in.mem.Free() // no window is bound to it
	}
	if in.file != nil {
		_ = in.file.Close()
		_ = os.Remove(in.file.Name())
	}
}
