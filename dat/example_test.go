package dat_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// This example opens two adapters on one host. One writes to the memory of the other and then sends a message.
func Example() {
	const any = dat.EVDDTO | dat.EVDConnection | dat.EVDCR
	open := func(addr string) (*dat.IA, *dat.EVD, *dat.EP, *dat.LMR) {
		ia, err := dat.Open("udp:"+addr, dat.DefaultOptions()) // or "xdp:eth0", "auto:eth0"
		check(err)
		pz, _ := ia.CreatePZ()
		evd, _ := ia.CreateEVD(64, nil, any)
		ep, err := ia.CreateEP(pz, dat.EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd})
		check(err)
		lmr, err := ia.CreateLMR(make([]byte, 4096), pz, dat.MemAll)
		check(err)
		return ia, evd, ep, lmr
	}
	serverIA, serverEVD, serverEP, serverMem := open("127.0.0.1")
	clientIA, clientEVD, clientEP, clientMem := open("127.0.0.2")
	defer serverIA.Close()
	defer clientIA.Close()

	_, err := serverIA.CreatePSP(7, serverEVD, dat.PSPConsumer)
	check(err)
	check(serverEP.PostRecv([]dat.LMRTriplet{serverMem.Segment(1024, 64)}, 1, 0))
	check(clientEP.Connect(netip.MustParseAddr("127.0.0.1"), 7, time.Second, nil))
	check(await(serverEVD, dat.EventConnectionRequest).CR.Accept(serverEP, nil))
	await(clientEVD, dat.EventEstablished)
	await(serverEVD, dat.EventEstablished)

	check(clientEP.PostRDMAWrite([]dat.LMRTriplet{clientMem.Segment(0, 512)}, 2, serverMem.Remote(0, 512), 0))
	check(clientEP.PostSend([]dat.LMRTriplet{clientMem.Segment(0, 16)}, 3, 0))
	ev := await(serverEVD, dat.EventDTOCompletion)
	fmt.Println(ev.Status, ev.Length)
	// Output: DAT_DTO_SUCCESS 16
}

func await(evd *dat.EVD, want dat.EventNumber) (ev dat.Event) {
	_, err := evd.Wait(5*time.Second, 1, &ev)
	check(err)
	if ev.Number != want {
		panic(fmt.Sprintf("got %v, want %v", ev.Number, want))
	}
	return ev
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
