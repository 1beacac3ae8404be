package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/datxdp/datxdp/examples/services/internal/measure"
	"github.com/datxdp/datxdp/examples/services/transport"
)

// client asks a server.
type client struct {
	requests int
	size     int // of a large value
}

func (c *client) run(ctx context.Context, link *transport.Transport, server string) error {
	db := redis.NewClient(&redis.Options{
		Addr:   server,
		Dialer: link.DialContext,
		// An error is printed once, by this program.
		MaxRetries: -1, DialerRetries: 1,
		// The server has neither of these extensions.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer db.Close()
	redis.SetLogger(quiet{})
	if err := db.Ping(ctx).Err(); err != nil {
		return err
	}
	for _, f := range []func(context.Context, *redis.Client) error{c.get, c.pipeline, c.large} {
		if err := f(ctx, db); err != nil {
			return err
		}
	}
	return db.Close()
}

// quiet is a logger that drops what the library prints about errors that it also returns.
type quiet struct{}

// Printf implements the interface of go-redis's loggers.
func (quiet) Printf(context.Context, string, ...any) {}

// get sets a key, and gets it many times.
func (c *client) get(ctx context.Context, db *redis.Client) error {
	const key, value = "colour", "blue"
	if err := db.Set(ctx, key, value, 0).Err(); err != nil {
		return err
	}
	line, err := measure.Requests(ctx, c.requests, func() error {
		got, err := db.Get(ctx, key).Result()
		if err == nil && got != value {
			err = fmt.Errorf("%s is %q, not %q", key, got, value)
		}
		return err
	})
	if err == nil {
		fmt.Println("GET:", line)
	}
	return err
}

// pipeline sends many commands at once.
func (c *client) pipeline(ctx context.Context, db *redis.Client) error {
	const key = "counter"
	if err := db.Del(ctx, key).Err(); err != nil {
		return err
	}
	start := time.Now()
	var last *redis.IntCmd
	_, err := db.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range c.requests {
			last = p.Incr(ctx, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last != nil && last.Val() != int64(c.requests) {
		return fmt.Errorf("%s is %d after %d increments", key, last.Val(), c.requests)
	}
	fmt.Printf("pipeline: %d commands, %.0f/s\n", c.requests, float64(c.requests)/time.Since(start).Seconds())
	return nil
}

// large sets a large value and gets it.
func (c *client) large(ctx context.Context, db *redis.Client) error {
	const key = "large"
	value := bytes.Repeat([]byte("0123456789abcde\n"), c.size/16+1)[:c.size]
	start := time.Now()
	if err := db.Set(ctx, key, value, 0).Err(); err != nil {
		return err
	}
	got, err := db.Get(ctx, key).Bytes()
	if err != nil {
		return err
	}
	if !bytes.Equal(got, value) {
		return fmt.Errorf("%s has %d bytes that differ from the %d bytes that it was set to", key, len(got), len(value))
	}
	fmt.Println("large value there and back:", measure.Throughput(2*int64(c.size), time.Since(start)))
	return nil
}
