package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/datxdp/datxdp/internal/lease"
)

// Config configures Run.
type Config struct {
	Kernel     lease.Kernel
	Interfaces []string
	PolicyFile string   // or ""
	Allow      []string // rules behind those of the file
	Socket     string   // path; systemd's socket has precedence
	Metrics    net.Listener
	Log        *slog.Logger
	Reload     <-chan os.Signal // a value makes Run read the policy again
}

// Policy reads the policy.
func (c *Config) Policy() (*lease.Policy, error) {
	var text []byte
	if c.PolicyFile != "" {
		var err error
		if text, err = os.ReadFile(c.PolicyFile); err != nil {
			return nil, err
		}
	}
	p, err := lease.ParsePolicy(c.PolicyFile, text)
	if err != nil {
		return nil, err
	}
	for _, rule := range c.Allow {
		if err := p.Allow(rule); err != nil {
			return nil, fmt.Errorf("--allow %q: %w", rule, err)
		}
	}
	if p.Empty() {
		return nil, errors.New("the policy allows nothing: use --allow user:NAME or --policy FILE")
	}
	return p, nil
}

// Run serves leases until ctx is done. It closes Metrics. The leases go on after it returns.
func Run(ctx context.Context, c Config) error {
	if c.Metrics != nil {
		defer c.Metrics.Close()
	}
	policy, err := c.Policy()
	if err != nil {
		return err
	}
	s, err := lease.NewServer(c.Kernel, c.Interfaces, policy, c.Log)
	if err != nil {
		return err
	}
	l, err := activated()
	if err == nil && l == nil {
		l, err = lease.Listen(c.Socket)
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	helpers.Go(func() { c.reload(ctx, s) })
	if c.Metrics != nil {
		helpers.Go(func() { c.serveMetrics(ctx, s) })
	}
	if err := notify("READY=1"); err != nil {
		c.Log.Warn("systemd does not know that the daemon is ready", "error", err)
	}
	c.Log.Info("serving", "socket", l.Addr().String(), "interfaces", c.Interfaces, "leases", len(s.Leases()))
	defer notify("STOPPING=1") //nolint:errcheck // systemd sees the end of the process too
	return s.Serve(ctx, l)
}

// reload reads the policy again whenever it is asked. A policy with a fault does not replace the one before.
func (c *Config) reload(ctx context.Context, s *lease.Server) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Reload:
		}
		p, err := c.Policy()
		if err != nil {
			c.Log.Error("the policy is kept as it was", "error", err)
			continue
		}
		s.SetPolicy(p)
		c.Log.Info("the policy was read again")
	}
}
