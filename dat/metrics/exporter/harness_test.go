package exporter_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/dat/metrics/exporter"
)

// patience is the time limit of every wait in a test. A wait that takes longer hangs.
const patience = 30 * time.Second

// qual is the qualifier on which side b listens.
const qual dat.ConnQual = 7

var hosts = [2]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}

// freePort returns a UDP port that is not in use.
func freePort(t testing.TB) uint16 {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // nothing was sent
	return uint16(c.LocalAddr().(*net.UDPAddr).Port)
}

// open opens an adapter over kernel UDP.
func open(t testing.TB, host int, port uint16) *dat.IA {
	t.Helper()
	o := dat.DefaultOptions()
	o.Port = port
	ia, err := dat.Open("udp:"+hosts[host].String(), o)
	if err != nil {
		t.Fatal(err)
	}
	return ia
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// end is one side of a connection.
type end struct {
	ia   *dat.IA
	pz   *dat.PZ
	evd  *dat.EVD
	ep   *dat.EP
	lmr  *dat.LMR
	mem  []byte
	seg  []dat.LMRTriplet
	name string
}

func newEnd(t testing.TB, host int, port uint16) *end {
	t.Helper()
	e := &end{ia: open(t, host, port), mem: make([]byte, 4096), name: "udp:" + hosts[host].String()}
	var err error
	e.pz, err = e.ia.CreatePZ()
	ok(t, err)
	e.evd, err = e.ia.CreateEVD(256, nil, dat.EVDDTO|dat.EVDConnection|dat.EVDCR)
	ok(t, err)
	e.ep, err = e.ia.CreateEP(e.pz, dat.EPConfig{RecvEVD: e.evd, RequestEVD: e.evd, ConnectEVD: e.evd})
	ok(t, err)
	e.lmr, err = e.ia.CreateLMR(e.mem, e.pz, dat.MemAll)
	ok(t, err)
	e.seg = []dat.LMRTriplet{e.lmr.Segment(0, 64)}
	return e
}

// await takes the next event. It fails the test if the event has another number.
func (e *end) await(t testing.TB, want dat.EventNumber) (ev dat.Event) {
	t.Helper()
	if _, err := e.evd.Wait(patience, 1, &ev); err != nil {
		t.Fatalf("waiting for %v: %v", want, err)
	}
	if ev.Number != want {
		t.Fatalf("got %v, want %v", ev.Number, want)
	}
	return ev
}

// connect makes two adapters over UDP and a connection between them.
func connect(t testing.TB) (a, b *end) {
	t.Helper()
	port := freePort(t)
	a, b = newEnd(t, 0, port), newEnd(t, 1, port)
	_, err := b.ia.CreatePSP(qual, b.evd, dat.PSPConsumer)
	ok(t, err)
	ok(t, a.ep.Connect(hosts[1], qual, patience, nil))
	ok(t, b.await(t, dat.EventConnectionRequest).CR.Accept(b.ep, nil))
	a.await(t, dat.EventEstablished)
	b.await(t, dat.EventEstablished)
	return a, b
}

// connectAgain makes another connection between two adapters, with dispatchers of its own.
func connectAgain(t testing.TB, a, b *end) (c, d *end) {
	t.Helper()
	var err error
	ends := [2]*end{{ia: a.ia}, {ia: b.ia}}
	for i, like := range []*end{a, b} {
		e := ends[i]
		e.evd, err = e.ia.CreateEVD(16, nil, dat.EVDDTO|dat.EVDConnection)
		ok(t, err)
		e.ep, err = e.ia.CreateEP(like.pz, dat.EPConfig{RecvEVD: e.evd, RequestEVD: e.evd, ConnectEVD: e.evd})
		ok(t, err)
	}
	ok(t, ends[0].ep.Connect(hosts[1], qual, patience, nil))
	ok(t, b.await(t, dat.EventConnectionRequest).CR.Accept(ends[1].ep, nil))
	ends[0].await(t, dat.EventEstablished)
	ends[1].await(t, dat.EventEstablished)
	return ends[0], ends[1]
}

// exchange sends a message from a to b, and writes to b's memory.
func exchange(t testing.TB, a, b *end) {
	t.Helper()
	ok(t, b.ep.PostRecv(b.seg, 1, 0))
	ok(t, a.ep.PostSend(a.seg, 2, 0))
	b.await(t, dat.EventDTOCompletion)
	a.await(t, dat.EventDTOCompletion)
	ok(t, a.ep.PostRDMAWrite(a.seg, 3, b.lmr.Remote(0, 64), 0))
	a.await(t, dat.EventDTOCompletion)
}

// show adds an adapter.
func show(t testing.TB, e *exporter.Exporter, name string, ia *dat.IA) (remove func()) {
	t.Helper()
	remove, err := e.Add(name, ia)
	ok(t, err)
	return remove
}

// client is an HTTP client with a timeout.
var client = &http.Client{Timeout: patience}

// get fetches a page.
func get(t testing.TB, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // it has been read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s\n%s", url, resp.Status, body)
	}
	return string(body)
}

// tool returns the path of a program of the Debian package prometheus, installed or unpacked by tools/deps.sh.
func tool(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs("../../../bin/" + name)
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err != nil {
		t.Skipf("no %s: tools/deps.sh fetches it as root on Debian", name)
	}
	return path
}

// testContext returns a context that is done at the end of the test.
func testContext(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
