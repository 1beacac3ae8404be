package dat

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/datxdp/datxdp/dat/internal/progress"
	"github.com/datxdp/datxdp/wire"
)

// Connections returns one row for every connection of the adapter, also for connections of other opens. Each row is a
// consistent snapshot, but the rows are read at different times. Connections reads up to 32 connections of an engine in
// one step, and the engine stands still for some microseconds during this step. Between the steps, the engine runs.
// Connections returns ErrInvalidHandle if the adapter is closed before or during the call.
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

// EachConnection calls f for each row that Connections would return, without holding all rows in memory. The row, the
// argument c of f, is valid only until f returns. If f returns an error, EachConnection stops and returns that error.
// The engines run while f runs. Other errors: ErrInvalidHandle, ErrInvalidParameter (f is nil).
func (ia *IA) EachConnection(f func(c *ConnInfo) error) error {
	if err := ia.lock(); err != nil {
		return err
	}
	ia.mu.Unlock() // eachConn fails if the adapter closes meanwhile
	if f == nil {
		return fail(ErrInvalidParameter, "the function is nil")
	}
	for _, d := range ia.a.drivers {
		err := d.eachConn(func(c *wire.ConnInfo) error {
			row := connInfo(c)
			return f(&row)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachConn reads the connections of an engine in steps of 32. It owns the engine during each step. When these steps
// have taken inspectTime in total, eachConn sleeps for inspectPause. Without the pause, reading thousands of
// connections would delay the data path: for 19200 connections, eachConn owns the engine for 11 ms in total.
const (
	inspectTime  = 100 * time.Microsecond
	inspectPause = 200 * time.Microsecond
)

// eachConn calls f for each connection of the engine. If f returns an error, eachConn stops and returns that error. It
// reads the connections in steps of 32. It owns the engine during each step, but not while f runs.
func (d *driver) eachConn(f func(*wire.ConnInfo) error) error {
	rows := make([]wire.ConnInfo, 0, 32)
	var ownedTime time.Duration // time of ownership since the last pause
	for slot := 0; slot >= 0; {
		if ownedTime >= inspectTime {
			time.Sleep(inspectPause)
			ownedTime = 0
		}
		if !d.Own() {
			return ErrInvalidHandle
		}
		began := progress.Now()
		rows, slot = d.eng.Inspect(began, slot, rows[:0])
		ownedTime += progress.Now().Sub(began)
		d.Disown()
		for i := range rows {
			if err := f(&rows[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// dumpHead is the header of the table that Dump writes; dumpLine is the format of its lines. The columns have fixed
// widths, because Dump writes a line before it has read the next connection.
const (
	dumpHead = "ENGINE  STATE        PEER                                     QUALIFIER           SIDE     OWN-KEY   PEER-KEY  AGE             SILENT          MTU   PSN               WINDOW   FLIGHT  LOST  RESENT  RTT           RTO           REQUESTS  UNSENT    CREDITS      NEXT        EARLY  RECEIVES  GRANTED"
	dumpLine = "%-6d  %-11v  %-39v  %#-18x  %-7s  %-8s  %-8s  %-14v  %-14v  %-4d  %-16s  %-7.2f  %-6d  %-4d  %-6d  %-12v  %-12v  %-8d  %-8d  %-11s  %-10d  %-5d  %-8d  %s\n"
)

// Dump writes the rows of Connections to w as a table, with one line for each connection. Dump writes each line before
// it reads the next connection. The column PSN has the oldest unacknowledged PSN, a plus sign, and the number of
// unacknowledged packets. Durations have units. The columns OWN-KEY and PEER-KEY
// have the first 8 characters of the public keys. Errors: ErrInvalidHandle, ErrInvalidParameter (w is nil), and errors of
// w.
func (ia *IA) Dump(w io.Writer) error {
	if w == nil {
		return fail(ErrInvalidParameter, "the writer is nil")
	}
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, dumpHead) // Flush returns the error, if there is one
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
		c.Engine, c.State, c.Peer, uint64(c.Qual), side, c.OwnKey.short(), c.PeerKey.short(), c.Age, c.Silence, c.MTU, fmt.Sprintf("%d+%d", c.SendOldest, c.SendNext-c.SendOldest),
		c.Window, c.InFlight, c.Lost, c.Retransmits, c.RTT, c.RTO, c.Requests, c.Unsent, credits,
		c.RecvNext, c.Early, c.Receives, promised(c.Granted))
	return err
}

// promised formats a number of credits. A negative number means that the side gives no credits; the result is "-".
func promised(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
