package dat

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// Connections returns a snapshot of every connection of the adapter, those of its other opens included. Each row is
// consistent in itself, but rows are read at different times. The call stops an engine for some microseconds for
// every 32 of its connections, and pauses so that packets move between. It returns ErrInvalidHandle if the adapter is
// closed, or closes during the call.
func (ia *IA) Connections() ([]ConnInfo, error) {
	var all []ConnInfo
	err := ia.EachConnection(func(c *ConnInfo) error {
		all = append(all, *c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// EachConnection calls f for each row of Connections, without holding them all in memory. It ends with the first error
// of f and returns it. The row is valid during f. No engine is stopped during f. Other errors: ErrInvalidHandle,
// ErrInvalidParameter (f is nil).
func (ia *IA) EachConnection(f func(c *ConnInfo) error) error {
	if err := ia.lock(); err != nil {
		return err
	}
	ia.mu.Unlock() // inspect fails if the adapter closes meanwhile
	if f == nil {
		return fail(ErrInvalidParameter, "no function to call")
	}
	for _, d := range ia.a.drivers {
		err := d.inspect(func(c *wire.ConnInfo) error {
			row := connInfo(c)
			return f(&row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// An inspection that has owned its engine for inspectTime sleeps for inspectPause, so that it does not take turns with
// the data path for as long as there are connections. Reading 19200 connections takes 11 ms of ownership.
const (
	inspectTime  = 100 * time.Microsecond
	inspectPause = 200 * time.Microsecond
)

// inspect calls f for each connection of the engine until f returns an error, which it returns. It owns the engine
// while it reads 32 connections, and not during f.
func (d *driver) inspect(f func(*wire.ConnInfo) error) error {
	rows := make([]wire.ConnInfo, 0, 32)
	var owned time.Duration // since the last pause
	for slot := 0; slot >= 0; {
		if owned >= inspectTime {
			time.Sleep(inspectPause)
			owned = 0
		}
		if !d.Own() {
			return ErrInvalidHandle
		}
		began := progress.Now()
		rows, slot = d.eng.Inspect(began, slot, rows[:0])
		owned += progress.Now().Sub(began)
		d.Disown()
		for i := range rows {
			if err := f(&rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dumpHead and dumpLine are the columns of Dump. Their widths are fixed, so that a line can be written before the rest
// is known.
const (
	dumpHead = "ENGINE  STATE        PEER                                     QUALIFIER           SIDE     AGE             SILENT          MTU   PSN               WINDOW   FLIGHT  LOST  RESENT  RTT           RTO           REQUESTS  UNSENT    CREDITS      NEXT        EARLY  RECEIVES  GRANTED"
	dumpLine = "%-6d  %-11v  %-39v  %#-18x  %-7s  %-14v  %-14v  %-4d  %-16s  %-7.2f  %-6d  %-4d  %-6d  %-12v  %-12v  %-8d  %-8d  %-11s  %-10d  %-5d  %-8d  %s\n"
)

// Dump writes the rows of Connections as a table, one line for each, as it reads them. The column PSN has the oldest
// unacknowledged PSN, a plus sign and the number of outstanding packets. Times carry their units. Errors:
// ErrInvalidHandle, ErrInvalidParameter (w is nil), and those of w.
func (ia *IA) Dump(w io.Writer) error {
	if w == nil {
		return fail(ErrInvalidParameter, "no writer to dump to")
	}
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, dumpHead) // b keeps an error for Flush
	if err := ia.EachConnection(func(c *ConnInfo) error { return dumpRow(b, c) }); err != nil {
		return err
	}
	return b.Flush()
}

func dumpRow(w io.Writer, c *ConnInfo) error {
	side, credits := "active", promised(c.Credits)
	if c.Passive {
		side = "passive"
	}
	if c.Starved {
		credits += " starved"
	}
	_, err := fmt.Fprintf(w, dumpLine,
		c.Engine, c.State, c.Peer, uint64(c.Qual), side, c.Age, c.Silence, c.MTU, fmt.Sprintf("%d+%d", c.SendOldest, c.SendNext-c.SendOldest),
		c.Window, c.InFlight, c.Lost, c.Retransmits, c.RTT, c.RTO, c.Requests, c.Unsent, credits,
		c.RecvNext, c.Early, c.Receives, promised(c.Granted))
	return err
}

// promised formats a number of credits; "-" means that none are promised.
func promised(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
