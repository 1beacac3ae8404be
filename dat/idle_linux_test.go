//go:build !race

package dat

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab"
)

func init() { roles["idle"] = stayIdle }

const idleFor = 2 * time.Second

// stayIdle opens an adapter, connects it to itself, and does nothing for some time. It prints the processor time of
// this idle phase in microseconds.
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
	ask, err := ia.CreateEP(pz, EPConfig{ConnectEVD: evd})
	if err != nil {
		return err
	}
	if err := ask.Connect(attr.Address, 1, time.Second, nil); err != nil {
		return err
	}
	answer, err := ia.CreateEP(pz, EPConfig{ConnectEVD: evd})
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
	time.Sleep(100 * time.Millisecond) // let the work of connecting end
	before := cpuTime()
	time.Sleep(idleFor)
	fmt.Println((cpuTime() - before).Microseconds())
	return ia.Close()
}

func TestIdle(t *testing.T) {
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
