package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/datxdp/datxdp/internal/result"
)

// overUDP runs the job between two addresses of the loopback interface.
func (j *job) overUDP(ctx context.Context, files handed, fallback string) (*result.Report, error) {
	report, err := j.execute(ctx, loopback(), func() (*pair, error) { return startPair(startHere, files) })
	if report != nil {
		report.Env.Fallback = fallback
	}
	return report, err
}

func loopback() link {
	l := link{
		name: "kernel UDP between 127.0.0.1 and 127.0.0.2", transport: transportUDP,
		target:    end{ia: "udp:127.0.0.1", addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})},
		initiator: end{ia: "udp:127.0.0.2", addr: netip.AddrFrom4([4]byte{127, 0, 0, 2})},
	}
	ifis, err := net.Interfaces()
	if err != nil {
		return l
	}
	for _, ifi := range ifis {
		if ifi.Flags&net.FlagLoopback != 0 {
			l.mtu = ifi.MTU
		}
	}
	return l
}

// handed are files that the initiator gets: a socket to serve metrics on, a file for a capture. Either
// may be nil.
type handed struct{ metrics, pcap *os.File }

// args name the files by the descriptors that a child sees them at.
func (h handed) args() (args []string, extra []*os.File) {
	const firstExtra = 3
	for _, f := range []struct {
		flag string
		file *os.File
	}{{"--metrics-fd", h.metrics}, {"--pcap-fd", h.pcap}} {
		if f.file != nil {
			args = append(args, f.flag, strconv.Itoa(firstExtra+len(extra)))
			extra = append(extra, f.file)
		}
	}
	return args, extra
}

func (h handed) close() error {
	var errs []error
	for _, f := range []*os.File{h.metrics, h.pcap} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// startPair starts both agents.
func startPair(start startFunc, files handed) (_ *pair, err error) {
	p := &pair{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.kill())
		}
	}()
	if p.target, err = startRemote("the target", start, nil); err != nil {
		return nil, err
	}
	args, extra := files.args()
	if p.initiator, err = startRemote("the initiator", start, args, extra...); err != nil {
		return nil, err
	}
	p.target.peer, p.initiator.peer = p.initiator, p.target
	p.close = p.kill
	return p, nil
}

// kill ends both agents. The kernel takes their sockets, programs and namespaces with them.
func (p *pair) kill() error {
	var errs []error
	for _, r := range []*remote{p.initiator, p.target} {
		if r != nil {
			errs = append(errs, r.kill())
		}
	}
	return errors.Join(errs...)
}
