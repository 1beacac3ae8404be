package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/datxdp/datxdp/examples/services/transport"
)

const (
	clients   = 5
	keys      = 4
	opTimeout = 2 * time.Second
	converged = "converged"
)

// event is a command of a client that has ended. Times are nanoseconds since the start of the load.
type event struct {
	Client       int
	Command      command
	Result       result
	Unknown      bool // whether it has run, or will run
	Call, Return int64
}

// loadMain is a program that runs commands of several clients at once until ^C, and prints their events. Then it waits
// until the stores of all nodes have the same content.
func loadMain() {
	link := transport.Flags()
	nodes := flag.String("nodes", "", "")
	seed := flag.Uint64("seed", 0, "")
	flag.Parse()
	transport.Run("load", func(ctx context.Context) error {
		l := loader{out: json.NewEncoder(os.Stdout), start: time.Now()}
		all := strings.Split(*nodes, ",")
		var running sync.WaitGroup
		for i := range clients {
			running.Go(func() {
				c := newClient(link, all)
				defer c.close()
				l.run(ctx, c, i, rand.New(rand.NewPCG(*seed, uint64(i))))
			})
		}
		running.Wait()
		c := newClient(link, all)
		defer c.close()
		awaitEqual(c)
		fmt.Println(converged)
		return nil
	})
}

type loader struct {
	start time.Time
	mu    sync.Mutex // guards out
	out   *json.Encoder
}

// run runs commands of one client. Each value is written once.
func (l *loader) run(ctx context.Context, c *client, id int, r *rand.Rand) {
	seen := make([]string, keys)
	for n := 0; ctx.Err() == nil; n++ {
		k := r.IntN(keys)
		e := event{Client: id, Command: command{Key: fmt.Sprint("key", k)}}
		switch p := r.IntN(10); {
		case p < 4:
			e.Command.Op = opGet
		case p < 8:
			e.Command.Op, e.Command.Value = opPut, fmt.Sprintf("%d.%d", id, n)
		default:
			e.Command.Op, e.Command.Value, e.Command.Old = opCAS, fmt.Sprintf("%d.%d", id, n), seen[k]
		}
		limit, cancel := context.WithTimeout(context.Background(), opTimeout)
		e.Call = time.Since(l.start).Nanoseconds()
		var err error
		e.Result, err = c.do(limit, e.Command)
		e.Return = time.Since(l.start).Nanoseconds()
		cancel()
		if errors.Is(err, errNoEffect) {
			continue
		}
		e.Unknown = err != nil
		if e.Command.Op == opGet {
			seen[k] = e.Result.Value
		}
		l.mu.Lock()
		_ = l.out.Encode(e) // the test has ended
		l.mu.Unlock()
	}
}

// awaitEqual waits until all nodes have the same state. Nothing tells when they have, so it asks them again and again.
// The test limits the time.
func awaitEqual(c *client) {
	for ; ; time.Sleep(pause) {
		equal := 0
		var first state
		for i, node := range c.nodes {
			limit, cancel := context.WithTimeout(context.Background(), opTimeout)
			s, err := c.state(limit, node)
			cancel()
			if i == 0 {
				first = s
			}
			if err == nil && reflect.DeepEqual(s, first) {
				equal++
			}
		}
		if equal == len(c.nodes) {
			return
		}
	}
}
