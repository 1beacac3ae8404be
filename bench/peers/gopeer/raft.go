package gopeer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// silence is the time after which a node without a heartbeat of the leader wants an election. A lost packet must not
// take as long.
const silence = 500 * time.Millisecond

// raftNode is a node whose log is not synced to disk.
type raftNode struct {
	*raft.Raft
	close []func() error // in the order in which they were added
}

// newRaftNode starts a node. If all has addresses, it writes them to the log as those of the cluster; a node without
// them waits for the leader.
func newRaftNode(trans raft.Transport, all ...raft.ServerAddress) (n *raftNode, err error) {
	n = &raftNode{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop())
		}
	}()
	dir, err := os.MkdirTemp("", "peers-raft-")
	if err != nil {
		return n, err
	}
	n.close = append(n.close, func() error { return os.RemoveAll(dir) })
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "log.db"), NoSync: true})
	if err != nil {
		return n, err
	}
	n.close = append(n.close, bolt.Close)
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = raft.ServerID(trans.LocalAddr()), hclog.NewNullLogger()
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = silence, silence, silence
	snapshots := raft.NewDiscardSnapshotStore()
	if len(all) > 0 {
		var c raft.Configuration
		for _, addr := range all {
			c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(addr), Address: addr})
		}
		if err := raft.BootstrapCluster(config, bolt, bolt, snapshots, trans, c); err != nil {
			return n, err
		}
	}
	if n.Raft, err = raft.NewRaft(config, noState{}, bolt, bolt, snapshots, trans); err != nil {
		return n, err
	}
	n.close = append(n.close, func() error { return n.Shutdown().Error() })
	return n, nil
}

func (n *raftNode) stop() error {
	var errs []error
	for i := range n.close {
		errs = append(errs, n.close[len(n.close)-1-i]())
	}
	return errors.Join(errs...)
}

// noState is a state machine without a state: only the log is measured.
type noState struct{}

func (noState) Apply(*raft.Log) any           { return nil }
func (noState) Restore(r io.ReadCloser) error { return r.Close() }
func (noState) Snapshot() (raft.FSMSnapshot, error) {
	return nil, errors.New("there is nothing to save")
}

// layer is the raft.StreamLayer of a node.
type layer struct {
	net.Listener
	End
}

// Addr implements net.Listener. It returns the address by which other nodes know this one.
func (l layer) Addr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", l.End.Addr) // listen has parsed it
	return addr
}

// Dial implements raft.StreamLayer.
func (l layer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return End{Addr: string(address), Adapter: l.Adapter}.dial(ctx)
}

func raftTransport(ctx context.Context, e End) (*raft.NetworkTransport, error) {
	l, err := e.listen(ctx)
	if err != nil {
		return nil, err
	}
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: layer{l, e}, MaxPool: 3, Timeout: silence, Logger: hclog.NewNullLogger(),
	}), nil
}

// serveRaft runs a node that follows.
func serveRaft(ctx context.Context, e End, ready func()) error {
	trans, err := raftTransport(ctx, e)
	if err != nil {
		return err
	}
	n, err := newRaftNode(trans)
	if err != nil {
		return errors.Join(err, trans.Close())
	}
	ready()
	<-ctx.Done()
	return errors.Join(n.stop(), trans.Close())
}

// runRaft runs the node that leads, and commits each message. The address is a list: that of this node, and those of
// the nodes that follow.
func runRaft(ctx context.Context, e End, a Ask) (t tally, err error) {
	var trans raft.Transport
	var all []raft.ServerAddress
	if e.Adapter == Memory {
		var stop func() error
		if trans, all, stop, err = raftInMemory(2); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	} else {
		for addr := range strings.SplitSeq(e.Addr, ",") {
			all = append(all, raft.ServerAddress(addr))
		}
		net, err := raftTransport(ctx, End{Addr: string(all[0]), Adapter: e.Adapter})
		if err != nil {
			return t, err
		}
		defer net.Close()
		trans = net
	}
	n, err := newRaftNode(trans, all...)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	select {
	case <-n.LeaderCh():
	case <-ctx.Done():
		return t, context.Cause(ctx)
	}
	return a.over(&requestPipe{request: func(message []byte) ([]byte, error) {
		return message, cmp.Or(ctx.Err(), n.Apply(message, longest).Error())
	}})
}

// raftInMemory runs nodes that follow in this process. It returns the transport of the node that leads, and the
// addresses of all nodes.
func raftInMemory(followers int) (first *raft.InmemTransport, all []raft.ServerAddress, stop func() error, err error) {
	var nodes []*raftNode
	stop = func() error {
		var errs []error
		for _, n := range nodes {
			errs = append(errs, n.stop())
		}
		return errors.Join(errs...)
	}
	var transports []*raft.InmemTransport
	for range 1 + followers {
		addr, t := raft.NewInmemTransport("")
		for i, other := range transports {
			t.Connect(all[i], other)
			other.Connect(addr, t)
		}
		all, transports = append(all, addr), append(transports, t)
	}
	for _, t := range transports[1:] {
		n, err := newRaftNode(t)
		if err != nil {
			return nil, nil, nil, errors.Join(err, stop())
		}
		nodes = append(nodes, n)
	}
	return transports[0], all, stop, nil
}
