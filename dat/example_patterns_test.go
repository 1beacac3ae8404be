package dat_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// end is one end of a connection, with 4 KiB of registered memory.
type end struct {
	ia  *dat.IA
	pz  *dat.PZ
	evd *dat.EVD
	ep  *dat.EP
	mem *dat.LMR
}

func open(addr string) *end {
	ia, err := dat.Open("udp:"+addr, dat.DefaultOptions()) // or "xdp:eth0", "auto:eth0"
	check(err)
	e := &end{ia: ia}
	e.pz, err = ia.CreatePZ()
	check(err)
	e.evd, err = ia.CreateEVD(64, nil, dat.EVDDTO|dat.EVDConnection|dat.EVDCR)
	check(err)
	e.mem, err = ia.CreateLMR(make([]byte, 4096), e.pz, dat.MemAll)
	check(err)
	e.endpoint()
	return e
}

// endpoint makes an endpoint, for the first connection or for the next one.
func (e *end) endpoint() {
	ep, err := e.ia.CreateEP(e.pz, dat.EPConfig{RecvEVD: e.evd, RequestEVD: e.evd, ConnectEVD: e.evd})
	check(err)
	e.ep = ep
}

// listen makes the server's service point.
func (e *end) listen() {
	_, err := e.ia.CreatePSP(7, e.evd, dat.PSPConsumer)
	check(err)
}

// connect connects the endpoints of a client and a server that listens.
func (e *end) connect(server *end, addr string) {
	check(e.ep.Connect(netip.MustParseAddr(addr), 7, 5*time.Second, nil))
	check(await(server.evd, dat.EventConnectionRequest).CR.Accept(server.ep, nil))
	await(e.evd, dat.EventEstablished)
	await(server.evd, dat.EventEstablished)
}

// A client sends a request, and a server answers it. Each side posts a receive before the other side can send to it:
// the server posts its receive before it accepts the connection, and the client posts its receive before it sends the
// request. After the completion of an operation, the program may use the memory of the operation again.
func Example_requestResponse() {
	server, client := open("127.0.0.5"), open("127.0.0.6")
	defer server.ia.Close()
	defer client.ia.Close()
	server.listen()
	check(server.ep.PostRecv([]dat.LMRTriplet{server.mem.Segment(0, 64)}, 1, 0))
	client.connect(server, "127.0.0.5")

	check(client.ep.PostRecv([]dat.LMRTriplet{client.mem.Segment(64, 64)}, 2, 0)) // for the response
	check(client.mem.Update(func(mem []byte) { copy(mem, "what is it?") }))
	check(client.ep.PostSend([]dat.LMRTriplet{client.mem.Segment(0, 11)}, 3, 0))

	ev := await(server.evd, dat.EventDTOCompletion) // the request
	check(ev.Err())
	check(server.mem.Update(func(mem []byte) { copy(mem[64:], fmt.Sprintf("%q", mem[:ev.Length])) }))
	check(server.ep.PostSend([]dat.LMRTriplet{server.mem.Segment(64, 13)}, 4, 0))

	for range 2 { // the request has been sent, and the response has come, in any order
		ev := await(client.evd, dat.EventDTOCompletion)
		check(ev.Err())
		if ev.Op == dat.DTOReceive {
			check(client.mem.Update(func(mem []byte) { fmt.Printf("%s\n", mem[64:][:ev.Length]) }))
		}
	}
	// Output: "what is it?"
}

// A client reads a record by RDMA while the server keeps changing it. The server changes the record in Update, so no
// packet of a read carries half a change. But a read of several packets may return parts of two versions of the record.
// So the version number is at the beginning and at the end of the record. A client that finds two different numbers
// reads again.
func ExampleLMR_Update() {
	server, client := open("127.0.0.5"), open("127.0.0.6")
	defer server.ia.Close()
	defer client.ia.Close()
	server.listen()
	client.connect(server, "127.0.0.5")

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // the server writes a record of 64 bytes, without pause
		defer close(stopped)
		for version := uint64(1); ; version++ {
			check(server.mem.Update(func(mem []byte) {
				binary.NativeEndian.PutUint64(mem, version)
				binary.NativeEndian.PutUint64(mem[56:], version)
			}))
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	var versions [2]uint64
	for range 100 {
		check(client.ep.PostRDMARead([]dat.LMRTriplet{client.mem.Segment(0, 64)}, 1, server.mem.Remote(0, 64), 0))
		ev := await(client.evd, dat.EventDTOCompletion)
		check(ev.Err())
		check(client.mem.Update(func(mem []byte) {
			versions = [2]uint64{binary.NativeEndian.Uint64(mem), binary.NativeEndian.Uint64(mem[56:])}
		}))
	}
	close(stop)
	<-stopped
	fmt.Println(versions[0] > 0, versions[0] == versions[1])
	// Output: true true
}

// A connection ends, and the client connects again with the same endpoint. The posted operations complete before
// EventDisconnected. So when the program has taken EventDisconnected, all its memory belongs to it again. Reset makes
// the endpoint ready for the new connection.
func ExampleEP_Reset() {
	server, client := open("127.0.0.5"), open("127.0.0.6")
	defer server.ia.Close()
	defer client.ia.Close()
	server.listen()
	client.connect(server, "127.0.0.5")
	check(client.ep.PostRecv([]dat.LMRTriplet{client.mem.Segment(0, 64)}, 1, 0))

	check(server.ep.Disconnect(dat.CloseAbrupt)) // for any reason
	await(server.evd, dat.EventDisconnected)
	fmt.Println(await(client.evd, dat.EventDTOCompletion).Status)
	fmt.Println(await(client.evd, dat.EventDisconnected).Number)

	check(client.ep.Reset())
	check(server.ep.Reset())
	client.connect(server, "127.0.0.5")
	fmt.Println("connected again")
	// Output:
	// DAT_DTO_ERR_FLUSHED
	// DAT_CONNECTION_EVENT_DISCONNECTED
	// connected again
}

// A program ends in order. It disconnects gracefully, so the outstanding requests complete first. Both sides take
// EventDisconnected before they close their adapters. If a program exits without a disconnect, its peer may notice only
// after a timeout.
func ExampleEP_Disconnect() {
	server, client := open("127.0.0.5"), open("127.0.0.6")
	server.listen()
	check(server.ep.PostRecv([]dat.LMRTriplet{server.mem.Segment(0, 64)}, 1, 0))
	client.connect(server, "127.0.0.5")
	check(client.ep.PostSend([]dat.LMRTriplet{client.mem.Segment(0, 64)}, 2, 0))

	check(client.ep.Disconnect(dat.CloseGraceful))
	fmt.Println("sent:", await(client.evd, dat.EventDTOCompletion).Status)
	await(client.evd, dat.EventDisconnected)
	fmt.Println("received:", await(server.evd, dat.EventDTOCompletion).Status)
	await(server.evd, dat.EventDisconnected)
	check(client.ia.Close())
	check(server.ia.Close())
	// Output:
	// sent: DAT_DTO_SUCCESS
	// received: DAT_DTO_SUCCESS
}
