package lease

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// call sends a request and returns the body and the files of its answer. An error that is not an *Error of the daemon
// closes the connection.
func (c *Client) call(k kind, body any, want kind) (any, []*os.File, error) {
	if c.conn == nil {
		return nil, nil, fmt.Errorf("lease: %w", net.ErrClosed)
	}
	c.sequence++
	b, files, err := c.exchange(k, body, want)
	if err != nil {
		closeAll(files)
		if refusal := (*Error)(nil); !errors.As(err, &refusal) || errors.Is(err, ErrVersion) {
			c.hangUp()
		}
		return nil, nil, err
	}
	return b, files, nil
}

// exchange may return files beside an error.
func (c *Client) exchange(k kind, body any, want kind) (any, []*os.File, error) {
	if err := c.conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		return nil, nil, err
	}
	if _, err := c.conn.Write(encode(k, c.sequence, body)); err != nil && !errors.Is(err, syscall.EPIPE) {
		return nil, nil, fmt.Errorf("lease: %w", err)
	} // with EPIPE the answer may say why the daemon closed the connection
	b := make([]byte, maxMessage)
	rights := make([]byte, syscall.CmsgSpace(4*2*maxSockets))
	n, m, flags, _, err := c.conn.ReadMsgUnix(b, rights)
	if errors.Is(err, syscall.ECONNRESET) {
		// The daemon closed the connection before it read the request. The kernel reports that first, then the refusal that
		// the daemon sent.
		n, m, flags, _, err = c.conn.ReadMsgUnix(b, rights)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("lease: the daemon gives no answer: %w", err)
	}
	files := parseRights(rights[:m])
	if flags&syscall.MSG_CTRUNC != 0 {
		return nil, files, errors.New("lease: descriptors are lost: raise the limit of open files (ulimit -n)")
	}
	h, answer, err := decode(b[:n])
	switch {
	case err != nil:
		return nil, files, fmt.Errorf("lease: an answer of the daemon: %w", err)
	case h.Kind == kindFailed:
		return nil, files, answer.(*failedBody).parse()
	case h.Kind != want || h.Sequence != c.sequence:
		return nil, files, fmt.Errorf("lease: %w: message %d of kind %d in place of %d of kind %d", errMalformed, h.Sequence, h.Kind, c.sequence, want)
	}
	return answer, files, nil
}

// parseRights returns the files of control messages.
func parseRights(b []byte) (files []*os.File) {
	messages, _ := syscall.ParseSocketControlMessage(b)
	for _, m := range messages {
		fds, _ := syscall.ParseUnixRights(&m)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "lease"))
		}
	}
	return files
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
