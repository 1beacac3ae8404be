// Command raft is a replicated key-value store with hashicorp/raft and raft-boltdb. Each node listens at two ports: the
// nodes talk to each other through a raft.StreamLayer at one, and clients ask over HTTP at the other. Every command
// goes through the log, also one that only reads, so that the store is linearizable.
//
//	raft --ia xdp:eth0 --self 10.0.0.1 --nodes 10.0.0.1,10.0.0.2,10.0.0.3 --dir DIR      runs a node
//	raft --ia xdp:eth0 --nodes 10.0.0.1,10.0.0.2,10.0.0.3 put KEY VALUE                  sets a key
//	raft --ia xdp:eth0 --nodes 10.0.0.1,10.0.0.2,10.0.0.3 get KEY
//	raft --ia xdp:eth0 --nodes 10.0.0.1,10.0.0.2,10.0.0.3 cas KEY OLD NEW                sets a key if it has a value
//	raft --ia xdp:eth0 --nodes 10.0.0.1,10.0.0.2,10.0.0.3 bench NUMBER                   measures puts
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/datxdp/datxdp/examples/services/internal/measure"
	"github.com/datxdp/datxdp/examples/services/transport"
)

// Ports of a node.
const (
	raftPort = 7000 // for other nodes
	apiPort  = 7001 // for clients
)

func main() {
	link := transport.Flags()
	o := options{}
	nodes := flag.String("nodes", "", "IP addresses of all nodes, separated by commas")
	flag.StringVar(&o.self, "self", "", "IP address of this node; without it, be a client")
	flag.StringVar(&o.dir, "dir", "", "directory of the node's data")
	flag.BoolVar(&o.noSync, "no-sync", false, "do not sync the log to disk: a crash of the host may lose it")
	flag.DurationVar(&o.election, "election", time.Second, "silence after which a leader is replaced")
	flag.Uint64Var(&o.snapshot, "snapshot", 8192, "commands after which the log becomes a snapshot")
	flag.StringVar(&o.log, "log", "off", "level of the log: off, error, warn, info or debug")
	flag.Parse()
	o.nodes = strings.Split(*nodes, ",")
	transport.Run("raft", func(ctx context.Context) error {
		switch {
		case *nodes == "":
			return errors.New("name the nodes with --nodes")
		case o.self == "":
			return ask(ctx, link, o.nodes, flag.Args())
		case o.dir == "":
			return errors.New("name the directory of the node's data with --dir")
		}
		return serve(ctx, link, o)
	})
}

// ask runs one command of a client.
func ask(ctx context.Context, link *transport.Transport, nodes, args []string) error {
	c := newClient(link, nodes)
	defer c.close()
	if len(args) == 2 && args[0] == "bench" {
		return bench(ctx, c, args[1])
	}
	cmd, err := parseCommand(args)
	if err != nil {
		return err
	}
	r, err := c.do(ctx, cmd)
	switch {
	case err != nil:
		return err
	case !r.OK && cmd.Op == opGet:
		return errors.New("no such key")
	case !r.OK:
		return fmt.Errorf("%s has another value", cmd.Key)
	case cmd.Op == opGet:
		fmt.Println(transport.Printable(r.Value))
	}
	return nil
}

// parseCommand returns the command that the arguments of the program name.
func parseCommand(args []string) (cmd command, err error) {
	words := map[string]int{opGet: 2, opPut: 3, opCAS: 4}
	if len(args) == 0 || len(args) != words[args[0]] {
		return cmd, errors.New("say what to do: get KEY, put KEY VALUE, cas KEY OLD NEW or bench NUMBER")
	}
	cmd.Op, cmd.Key, cmd.Value = args[0], args[1], args[len(args)-1]
	if cmd.Op == opCAS {
		cmd.Old = args[2]
	}
	return cmd, nil
}

func bench(ctx context.Context, c *client, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	line, err := measure.Requests(ctx, n, func() error {
		_, err := c.do(ctx, command{Op: opPut, Key: "bench", Value: "hello"})
		return err
	})
	if err == nil {
		fmt.Fprintln(os.Stdout, "put:", line)
	}
	return err
}
