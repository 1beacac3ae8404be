package gopeer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// pipe transfers messages of one size in both directions.
type pipe interface {
	// send may keep the message until flush, but the caller may change its buffer when send returns.
	send(message []byte) error
	flush() error
	// recv returns a message that is valid until the next call.
	recv() ([]byte, error)
}

// requestPipe makes a request of each message. The answer to it is the message that is received.
type requestPipe struct {
	request func(message []byte) (answer []byte, err error)
	answer  []byte
}

func (p *requestPipe) send(message []byte) (err error) {
	p.answer, err = p.request(message)
	return err
}

func (*requestPipe) flush() error            { return nil }
func (p *requestPipe) recv() ([]byte, error) { return p.answer, nil }

// bufferSize is the size of a buffer in bytes: TCP puts this into one super-frame.
const bufferSize = 64 << 10

// bytePipe transfers messages over a stream of bytes.
type bytePipe struct {
	w       io.Writer
	buf     *bufio.Writer // buffer of w; nil without buffering
	r       *bufio.Reader
	message []byte
}

// newBytePipe returns a pipe that reads ahead and, if buffered is set, gathers writes.
func newBytePipe(rw io.ReadWriter, size int, buffered bool) *bytePipe {
	p := &bytePipe{w: rw, r: bufio.NewReaderSize(rw, bufferSize), message: make([]byte, size)}
	if buffered {
		p.buf = bufio.NewWriterSize(rw, bufferSize)
		p.w = p.buf
	}
	return p
}

func (p *bytePipe) send(message []byte) error {
	_, err := p.w.Write(message)
	return err
}

func (p *bytePipe) flush() error {
	if p.buf == nil {
		return nil
	}
	return p.buf.Flush()
}

func (p *bytePipe) recv() ([]byte, error) {
	_, err := io.ReadFull(p.r, p.message)
	return p.message, err
}

// header begins a stream of bytes. It says whether messages are echoed, and their size.
type header struct {
	echo bool
	size int
}

const headerSize = 5

func (h header) write(w io.Writer) error {
	b := make([]byte, headerSize)
	if h.echo {
		b[0] = 1
	}
	binary.BigEndian.PutUint32(b[1:], uint32(h.size))
	_, err := w.Write(b)
	return err
}

func readHeader(r io.Reader) (h header, err error) {
	b := make([]byte, headerSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, err
	}
	h = header{echo: b[0] == 1, size: int(binary.BigEndian.Uint32(b[1:]))}
	if h.size < minSize || h.size > maxSize {
		return h, fmt.Errorf("messages of %d bytes: want %d to %d", h.size, minSize, maxSize)
	}
	return h, nil
}

// serveBytes serves one client over a stream of bytes.
func serveBytes(rw io.ReadWriter) error {
	h, err := readHeader(rw)
	if err != nil {
		return err
	}
	p := newBytePipe(rw, h.size, false)
	if h.echo {
		return echo(p)
	}
	return sink(p)
}

// runBytes measures over a stream of bytes.
func runBytes(rw io.ReadWriter, a Ask) (tally, error) {
	if err := (header{a.echoed(), a.Size}).write(rw); err != nil {
		return tally{}, err
	}
	return a.over(newBytePipe(rw, a.Size, a.Buffered))
}
