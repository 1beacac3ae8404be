package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/datxdp/datxdp/examples/services/transport"
)

// options are those of a node.
type options struct {
	self     string
	nodes    []string
	dir      string
	noSync   bool
	election time.Duration
	snapshot uint64
	log      string
}

// node is a running node.
type node struct {
	raft  *raft.Raft
	store *store
	self  string
	close []func() error // in the order in which they were added
}

// serve runs a node until ctx is done.
func serve(ctx context.Context, link *transport.Transport, o options) (err error) {
	n := &node{store: newStore(), self: o.self}
	defer func() {
		for i := range n.close {
			err = errors.Join(err, n.close[len(n.close)-1-i]())
		}
	}()
	link.Host = o.self
	if err := n.start(ctx, link, o); err != nil {
		return err
	}
	l, err := link.Listen(ctx, apiPort)
	if err != nil {
		return err
	}
	fmt.Printf("serving on %s\n", o.self)
	s := &http.Server{Handler: n.handler(o.election), ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// start starts raft. It adds a function to n.close for everything that it opens, also if it returns an error.
func (n *node) start(ctx context.Context, link *transport.Transport, o options) error {
	logger := hclog.New(&hclog.LoggerOptions{Name: "raft", Level: hclog.LevelFromString(o.log), Output: os.Stderr})
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(o.dir, "log.db"), NoSync: o.noSync})
	if err != nil {
		return err
	}
	n.close = append(n.close, bolt.Close)
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(o.dir, 2, logger)
	if err != nil {
		return err
	}
	stream, err := listen(ctx, link, o.self)
	if err != nil {
		return err
	}
	trans := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream, MaxPool: 3, Timeout: o.election, Logger: logger,
		// One at a time, because raft's pipeline (v1.7.3) hangs: after an answer that is late or an error, nothing takes
		// the answers any more, and the sender of a follower waits for ever in AppendEntries.
		MaxRPCsInFlight: 1,
	})
	n.close = append(n.close, trans.Close)
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = raft.ServerID(o.self), logger
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = o.election, o.election, o.election/2
	config.SnapshotThreshold, config.TrailingLogs, config.SnapshotInterval = o.snapshot, o.snapshot, o.election
	if err := bootstrap(config, bolt, snapshots, trans, o.nodes); err != nil {
		return err
	}
	if n.raft, err = raft.NewRaft(config, n.store, bolt, bolt, snapshots, trans); err != nil {
		return err
	}
	n.close = append(n.close, func() error { return n.raft.Shutdown().Error() })
	return nil
}

// bootstrap writes the list of the nodes to the log of a node that starts for the first time. It is the same at every
// node.
func bootstrap(config *raft.Config, bolt *raftboltdb.BoltStore, snapshots raft.SnapshotStore, trans raft.Transport, nodes []string) error {
	known, err := raft.HasExistingState(bolt, bolt, snapshots)
	if err != nil || known {
		return err
	}
	var all raft.Configuration
	for _, addr := range nodes {
		all.Servers = append(all.Servers, raft.Server{ID: raft.ServerID(addr), Address: raft.ServerAddress(fmt.Sprintf("%s:%d", addr, raftPort))})
	}
	return raft.BootstrapCluster(config, bolt, bolt, snapshots, trans, all)
}
