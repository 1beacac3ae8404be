package dat

import (
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
)

func init() { roles["idle"] = stayIdle }

const idleFor = 2 * time.Second

// stayIdle opens an adapter, connects it to itself, leaves it alone and says what that cost in
// microseconds of a core.
func stayIdle() error {
	name, o := childOptions()
	ia, err := Open(name, o)
	if err != nil {
		return err
	}
	pz, err := ia.CreatePZ()
	if err != nil {
		return err
	}
	evd, err := ia.CreateEVD(8, nil, EVDConnection|EVDCR)
	if err != nil {
		return err
	}
	if _, err = ia.CreatePSP(1, evd, PSPConsumer); err != nil {
		return err
	}
	attr, err := ia.Query()
	if err != nil {
		return err
	}
	ask, err := ia.CreateEP(pz, nil, nil, evd, nil)
	if err != nil {
		return err
	}
	if err := ask.Connect(attr.Address, 1, time.Second, nil); err != nil {
		return err
	}
	answer, err := ia.CreateEP(pz, nil, nil, evd, nil)
	if err != nil {
		return err
	}
	for established := 0; established < 2; {
		var ev Event
		if _, err := evd.Wait(patience, 1, &ev); err != nil {
			return err
		}
		switch ev.Number {
		case EventConnectionRequest:
			if err := ev.CR.Accept(answer, nil); err != nil {
				return err
			}
		case EventEstablished:
			established++
		default:
			return fmt.Errorf("connecting: %v", ev.Number)
		}
	}
	time.Sleep(100 * time.Millisecond) // what is left of connecting
	before := cpuTime()
	time.Sleep(idleFor)
	fmt.Println((cpuTime() - before).Microseconds())
	return ia.Close(CloseAbrupt)
}

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestIdle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's runtime uses more than the limit by itself")
	}
	children := map[string]child{}
	u := newUDP(t).(udp)
	children["udp"] = startChild(t, "idle", "udp:127.0.0.1", int(u.port), 0, func(f func() error) error { return f() })
	t.Run("xdp", func(t *testing.T) {
		c := newXDP(t).(xdpNet).start(t, lab.A, "idle", "xdp:veth0", 0)
		idles(t, c)
	})
	t.Run("udp", func(t *testing.T) { idles(t, children["udp"]) })
}

func idles(t *testing.T, c child) {
	var used int64
	if _, err := fmt.Fscan(c.out, &used); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c.out)
	ok(t, c.Wait())
	share := float64(used) / float64(idleFor.Microseconds())
	t.Logf("%d µs in %v: %.3f %% of a core", used, idleFor, 100*share)
	if share >= 0.01 {
		t.Errorf("an idle adapter uses %.2f %% of a core, want less than 1 %%", 100*share)
	}
}

// The first frame after idle: an RDMA write to a side that sleeps, from posting to the confirmation.
func TestFirstFrameAfterIdle(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		var took []time.Duration
		for i := range uint64(50) {
			asleep(t, a)
			asleep(t, b)
			time.Sleep(2 * time.Millisecond) // in the link by now
			start := time.Now()
			ok(t, x.PostRDMAWrite(x.seg(0, 64), i, y.lmr.Remote(0, 64), 0))
			x.done(x.request, i, DTORDMAWrite, DTOSuccess, 64)
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		median := took[len(took)/2]
		t.Logf("served and confirmed after: median %v, 90 %% %v, most %v", median, took[45], took[49])
		if median > 50*time.Millisecond {
			t.Errorf("median %v, want less than 50 ms", median)
		}
	})
}
