// Command push copies a file to many hosts at once. It reads the file once, writes every chunk into the memory of all
// receivers by RDMA, and compares SHA-256 at the end. It drops a receiver that stalls, so that the others get the file.
//
//	push --ia udp:127.0.0.2 --dir in                               receives, until ^C
//	push --ia udp:127.0.0.1 --file big.iso 127.0.0.2 127.0.0.3     sends
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/datxdp/datxdp/dat"
)

const (
	service = 10
	// A receiver has memory for window chunks, which the sender fills round robin. For each chunk that the receiver has
	// written to its file, it returns a credit to the sender: an empty message.
	chunkSize = 256 << 10 // bytes
	window    = 8
	// pause is the time between two updates of the progress bar.
	pause = 200 * time.Millisecond
)

func main() {
	name := flag.String("ia", "udp:127.0.0.1", "adapter: udp:ADDRESS, xdp:INTERFACE or auto:INTERFACE")
	file := flag.String("file", "", "file to send to the hosts named; without it, receive")
	dir := flag.String("dir", ".", "directory to receive into")
	patience := flag.Duration("patience", 30*time.Second, "how long a receiver may take for a chunk; a receiver gives a silent sender up after twice that")
	flag.Parse()
	// ^C ends a wait, and with it run. run closes the adapter, which notifies the peers.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *name, *file, *dir, flag.Args(), *patience); err != nil && (ctx.Err() == nil || *file != "") {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, file, dir string, hosts []string, patience time.Duration) error {
	if file != "" && len(hosts) == 0 {
		return errors.New("say to whom, by their IP addresses behind the flags")
	}
	if patience <= 0 {
		return errors.New("--patience is a time, such as 30s")
	}
	ia, err := dat.Open(name, dat.DefaultOptions())
	if err != nil {
		return err
	}
	defer ia.Close() // abruptly: it frees every object of the adapter
	if file != "" {
		return send(ctx, ia, file, hosts, patience)
	}
	// A sender may have to wait for another receiver until it drops that one. It is silent for up to patience then.
	return receive(ctx, ia, dir, 2*patience)
}
