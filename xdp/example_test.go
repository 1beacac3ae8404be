package xdp_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/xdp"
)

// Open an interface and answer every packet with its own payload.
func Example() {
	d, err := xdp.Open("eth0", xdp.DefaultOptions())
	switch {
	case errors.Is(err, fs.ErrPermission):
		log.Fatal("run as root: ", err)
	case err != nil:
		log.Fatal(err)
	}
	defer d.Close()
	fmt.Println("mode granted:", d.Mode())

	queue := d.Links()[0]
	bufs := make([]link.Buf, 64)
	for {
		n := queue.Recv(bufs)
		queue.Send(bufs[:n]) // Path of a received packet is link.PathReply
		if n == 0 {
			queue.Wait(-1)
		}
	}
}

// Send one packet to a peer.
func ExampleDevice_Links() {
	d, err := xdp.Open("eth0", xdp.DefaultOptions())
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	queue := d.Links()[0]
	path, err := queue.Resolve(netip.MustParseAddrPort("10.0.0.2:17473"), 0)
	if err != nil {
		log.Fatal(err)
	}
	var bufs [1]link.Buf
	if queue.Alloc(bufs[:]) == 0 {
		return // no frame is free: try again later
	}
	bufs[0].Path = path
	bufs[0].Data = bufs[0].Data[:copy(bufs[0].Data, "hello")]
	queue.Send(bufs[:])
}
