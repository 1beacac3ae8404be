package doctor

import (
	"context"
	"fmt"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/ianame"
)

// checkTry opens the adapter as a program would and closes it again.
func checkTry(_ context.Context, x *exam) []Finding {
	if !x.Try || x.stopped != "" {
		return nil
	}
	before := offloads(x.name())
	mode, queues, err := granted(x.IA, x.Port, func() { x.lost = missing(before, offloads(x.name())) })
	if err != nil {
		return x.refusal(err)
	}
	x.granted = mode
	if mode == string(ianame.UDP) && x.kind == ianame.Auto {
		x.fallback = first(x.fallback, "AF_XDP was tried and refused")
	}
	return append(ok("it was opened and closed: mode %s%s", mode, transmitting(queues)), queueFindings(queues)...)
}

// refusal returns the finding for an adapter that cannot be opened although no check found a reason.
func (x *exam) refusal(err error) []Finding {
	found, fix := "opening it fails: "+err.Error(), "mend what the message says, and try again"
	if x.kind == ianame.UDP {
		return failure(found, "", fix, "")
	}
	return failure(found, "", fix+"; kernel UDP may work meanwhile", fmt.Sprintf("datbench doctor --ia udp:%v%s --try", x.address, portFlag(x.Port)))
}

// transmitting returns a text that says which queues transmitted their proof frame.
func transmitting(queues []dat.QueueStats) string {
	proven := 0
	for _, q := range queues {
		if q.TxProven {
			proven++
		}
	}
	if proven == 0 {
		return ""
	}
	return fmt.Sprintf("; a frame was transmitted on %s of %d and came back", queueCount(proven), len(queues))
}

// granted opens an adapter, and returns its mode and the state of its queues. It calls opened while the adapter is open.
func granted(name string, port uint16, opened func()) (mode string, queues []dat.QueueStats, err error) {
	ia, err := dat.Open(name, dat.Options{Port: port})
	if err != nil {
		return "", nil, err
	}
	opened()
	attr, err := ia.Query()
	stats, statsErr := ia.Stats()
	if err == nil {
		err = statsErr
	}
	if closeErr := ia.CloseWith(dat.CloseGraceful); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", nil, fmt.Errorf("asking for the mode of %s: %w", name, err)
	}
	return attr.Mode, stats.Queues, nil
}
