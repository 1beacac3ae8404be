package dat

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// faultVar is an environment variable that marks the child process of inChild.
const faultVar = "DATXDP_TEST_FAULTS"

// inChild runs the current test in a child process, so that a crash fails the test instead of ending the test program.
// It returns true in the child, where the caller continues, and false in the parent, where the caller returns.
func inChild(t *testing.T) bool {
	if os.Getenv(faultVar) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), faultVar+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

// TestMemoryFaults: an operation reads or writes registered memory that is no longer accessible, at one of the two
// sides. Then the connection breaks with BreakMemory. Another connection of the same adapters continues, no frame is
// lost, and the process does not crash.
func TestMemoryFaults(t *testing.T) {
	if !inChild(t) {
		return
	}
	const size = 8 * testPage
	type ends struct {
		x, y *point
		bad  *LMR
	}
	for _, link := range transports[:2] {
		for _, loss := range memoryLosses {
			for _, tc := range []struct {
				name   string
				at     int // the side with the memory
				post   func(e ends) error
				status DTOStatus // status of x's operation
				recv   DTOStatus // status of y's receive, if not DTOSuccess
			}{
				{"write into", 1, func(e ends) error { return e.x.PostRDMAWrite(e.x.seg(0, 64), 1, e.bad.Remote(0, 64), 0) }, DTORemoteResponder, 0},
				{"long write into", 1, func(e ends) error { return e.x.PostRDMAWrite(e.x.seg(0, size), 1, e.bad.Remote(0, size), 0) }, DTORemoteResponder, 0},
				{"write with immediate data into", 1, func(e ends) error {
					ok(t, e.y.PostRecv(e.y.seg(0, 64), 2, 0))
					return e.x.PostRDMAWriteImm(e.x.seg(0, 64), 1, e.bad.Remote(0, 64), 5, 0)
				}, DTORemoteResponder, DTOFlushed},
				{"atomic on", 1, func(e ends) error { return e.x.PostFetchAdd(1, e.x.lmr.Segment(0, 8), 1, e.bad.Remote(8, 8), 0) }, DTORemoteResponder, 0},
				{"swap of", 1, func(e ends) error { return e.x.PostCmpSwap(1, 2, e.x.lmr.Segment(0, 8), 1, e.bad.Remote(8, 8), 0) }, DTORemoteResponder, 0},
				{"receive into", 1, func(e ends) error {
					ok(t, e.y.PostRecv([]LMRTriplet{e.bad.Segment(0, size)}, 2, 0))
					return e.x.PostSend(e.x.seg(0, 64), 1, 0)
				}, DTORemoteResponder, DTOLocalProtection},
				{"read from", 1, func(e ends) error { return e.x.PostRDMARead(e.x.seg(0, size), 1, e.bad.Remote(0, size), 0) }, DTORemoteResponder, 0},
				{"read into", 0, func(e ends) error {
					return e.x.PostRDMARead([]LMRTriplet{e.bad.Segment(0, size)}, 1, e.y.lmr.Remote(0, size), 0)
				}, DTOLocalProtection, 0},
				{"answer of an atomic into", 0, func(e ends) error {
					return e.x.PostFetchAdd(1, e.bad.Segment(0, 8), 1, e.y.lmr.Remote(8, 8), 0)
				}, DTOLocalProtection, 0},
				{"send from", 0, func(e ends) error {
					ok(t, e.y.PostRecv(e.y.seg(0, size), 2, 0))
					return e.x.PostSend([]LMRTriplet{e.bad.Segment(0, size)}, 1, 0)
				}, DTOLocalProtection, DTOFlushed},
				{"write from", 0, func(e ends) error {
					return e.x.PostRDMAWrite([]LMRTriplet{e.bad.Segment(0, size)}, 1, e.y.lmr.Remote(0, size), 0)
				}, DTOLocalProtection, 0},
			} {
				t.Run(link.name+"/"+loss.name+"/"+tc.name, func(t *testing.T) {
					a, b := newHosts(t, link.make(t), Options{})
					e := ends{}
					e.x, e.y = pair(a, b, nil)
					u, v := pair(a, b, nil)
					atomics := must(b.ia.CreateLMR(e.y.mem, b.pz, MemAll|MemRemoteAtomic))(t)
					e.y.lmr = atomics
					at := []*host{a, b}[tc.at]
					mem, lose := loss.newMemory(t, size)
					mem[0] = 1
					e.bad = must(at.ia.CreateLMR(mem, at.pz, MemAll|MemRemoteAtomic))(t)
					lose()
					ok(t, tc.post(e))
					ends := []Event{e.x.expect(EventBroken), e.y.expect(EventBroken)}
					for side, ev := range ends {
						want := BreakMemory
						if side != tc.at {
							want |= BreakByPeer
						}
						if ev.BreakReason != want {
							t.Errorf("side %d: it broke because %v, want %v", side, ev.BreakReason, want)
						}
					}
					finished(t, e.x.request, 1, tc.status)
					if tc.recv != DTOSuccess {
						finished(t, e.y.recv, 2, tc.recv)
					}
					e.x.still()
					e.y.still()
					proves(u, v)
					proves(v, u)
					ok(t, e.bad.Free())
				})
			}
		}
	}
}

// TestMemoryFaultOfWaitingMessage: a message waits for a receive of a shared receive queue. The call that posts the
// receive copies the message into the memory of the receive. If that memory is not mapped, the connection ends as in
// TestMemoryFaults.
func TestMemoryFaultOfWaitingMessage(t *testing.T) {
	if !inChild(t) {
		return
	}
	a, b := newHosts(t, newSim(t), Options{})
	c := b.common(8, 64)
	x, y := a.point(nil), c.point(nil)
	join(x, y)
	u, v := pair(a, b, nil)
	mem, lose := memoryLosses[0].newMemory(t, 64)
	bad := must(b.ia.CreateLMR(mem, b.pz, MemAll))(t)
	lose()
	ok(t, x.PostSend(x.seg(0, 64), 1, 0))
	eventually(t, "a message without a receive", func() bool { return must(b.ia.Stats())(t).NotReadySent > 0 })
	ok(t, c.PostRecv([]LMRTriplet{bad.Segment(0, 64)}, 2))
	finished(t, c.recv, 2, DTOLocalProtection)
	finished(t, x.request, 1, DTORemoteResponder)
	if ev := y.expect(EventBroken); ev.BreakReason != BreakMemory {
		t.Errorf("it broke because %v", ev.BreakReason)
	}
	proves(u, v)
}

// finished takes a completion of a request or a receive.
func finished(t testing.TB, e *EVD, cookie uint64, want DTOStatus) {
	t.Helper()
	var ev Event
	if _, err := e.Wait(patience, 1, &ev); err != nil || ev.Cookie != cookie || ev.Status != want {
		t.Errorf("got %v of cookie %d, %v; want %v of %d", ev.Status, ev.Cookie, err, want, cookie)
	}
}
