package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/examples/services/transport"
)

// client asks the leader. Any goroutine may call its methods.
type client struct {
	http   *http.Client
	nodes  []string
	leader atomic.Int32 // index of the node to ask first
}

func newClient(link *transport.Transport, nodes []string) *client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return link.DialContext(ctx, network, address)
	}
	return &client{nodes: nodes, http: &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 100}}}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// dialTimeout is the time after which the client tries another node.
const dialTimeout = time.Second

// errNoEffect: the command is in no log. All other errors of do leave open whether the command has run or will run.
var errNoEffect = errors.New("the command was not run")

// pause is the time between attempts while there is no leader.
const pause = 20 * time.Millisecond

// do runs a command at the leader, for which it looks until ctx is done. It repeats no command that may have run.
func (c *client) do(ctx context.Context, cmd command) (r result, err error) {
	for {
		i := int(c.leader.Load())
		leader, err := c.try(ctx, c.nodes[i], cmd, &r)
		if err == nil {
			return r, nil
		}
		next := slices.Index(c.nodes, leader)
		if next < 0 || next == i {
			next = (i + 1) % len(c.nodes)
		}
		c.leader.CompareAndSwap(int32(i), int32(next))
		if !errors.Is(err, errNoEffect) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

// try runs a command at one node. If the node is not the leader, it returns the address of the leader, if known.
func (c *client) try(ctx context.Context, node string, cmd command, r *result) (leader string, err error) {
	body, err := json.Marshal(cmd)
	if err != nil {
		return "", err
	}
	resp, err := c.send(ctx, http.MethodPost, node, "/command", body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return "", json.Unmarshal(text, r)
	case http.StatusMisdirectedRequest, http.StatusServiceUnavailable:
		leader, _, _ = net.SplitHostPort(resp.Header.Get(leaderHeader))
		return leader, fmt.Errorf("%w: %s: %s", errNoEffect, node, bytes.TrimSpace(text))
	default:
		return "", fmt.Errorf("%s: %s: %s", node, resp.Status, bytes.TrimSpace(text))
	}
}

// send sends a request. A connection that could not be made has carried no command.
func (c *client) send(ctx context.Context, method, node, path string, body []byte) (*http.Response, error) {
	url := fmt.Sprintf("http://%s%s", net.JoinHostPort(node, fmt.Sprint(apiPort)), path)
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(r)
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		err = fmt.Errorf("%w: %w", errNoEffect, err)
	}
	return resp, err
}

// state returns the content of a node's store.
func (c *client) state(ctx context.Context, node string) (s state, err error) {
	resp, err := c.send(ctx, http.MethodGet, node, "/state", nil)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}
