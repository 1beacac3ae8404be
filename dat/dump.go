package dat

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// Connections returns a snapshot of every connection of the adapter, those of its other opens included. Each row is
// consistent in itself, but rows are read at different times. The call stops an engine for some microseconds for
// every 32 of its connections. It returns ErrInvalidHandle if the adapter is closed, or closes during the call.
func (ia *IA) Connections() ([]ConnInfo, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	ia.mu.Unlock() // inspect fails if the adapter closes meanwhile
	var all []ConnInfo
	for _, d := range ia.a.drivers {
		if err := d.inspect(func(c *wire.ConnInfo) { all = append(all, connInfo(c)) }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// inspect calls f for each connection of the engine. It owns the engine while it reads 32 connections, and not during
// f.
func (d *driver) inspect(f func(*wire.ConnInfo)) error {
	rows := make([]wire.ConnInfo, 0, 32)
	for slot := 0; slot >= 0; {
		if !d.Own() {
			return ErrInvalidHandle
		}
		rows, slot = d.eng.Inspect(progress.Now(), slot, rows[:0])
		d.Disown()
		for i := range rows {
			f(&rows[i])
		}
	}
	return nil
}

// Dump writes Connections as a table, one line for each. The column PSN has the oldest unacknowledged PSN, a plus
// sign and the number of outstanding packets. Times carry their units. Errors: ErrInvalidHandle, ErrInvalidParameter
// (w is nil), and those of w.
func (ia *IA) Dump(w io.Writer) error {
	if w == nil {
		return fail(ErrInvalidParameter, "no writer to dump to")
	}
	all, err := ia.Connections()
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ENGINE\tSTATE\tPEER\tQUALIFIER\tSIDE\tAGE\tSILENT\tMTU\tPSN\tWINDOW\tFLIGHT\tLOST\tRESENT\tRTT\tRTO\tREQUESTS\tUNSENT\tCREDITS\tNEXT\tEARLY\tRECEIVES\tGRANTED")
	for i := range all {
		dumpRow(t, &all[i])
	}
	return t.Flush()
}

func dumpRow(w io.Writer, c *ConnInfo) {
	side, credits := "active", promised(c.Credits)
	if c.Passive {
		side = "passive"
	}
	if c.Starved {
		credits += " starved"
	}
	fmt.Fprintf(w, "%d\t%v\t%v\t%#x\t%s\t%v\t%v\t%d\t%d+%d\t%.2f\t%d\t%d\t%d\t%v\t%v\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n",
		c.Engine, c.State, c.Peer, c.Qual, side, c.Age, c.Silence, c.MTU, c.SendOldest, c.SendNext-c.SendOldest,
		c.Window, c.InFlight, c.Lost, c.Retransmits, c.RTT, c.RTO, c.Requests, c.Unsent, credits,
		c.RecvNext, c.Early, c.Receives, promised(c.Granted))
}

// promised formats a number of credits; "-" means that none are promised.
func promised(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
