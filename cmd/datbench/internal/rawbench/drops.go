package rawbench

import (
	"os"
	"strconv"
	"strings"
)

// drops are the packets that counters report as lost, by direction.
type drops struct{ rx, tx uint64 }

func (d drops) since(base drops) drops { return drops{d.rx - base.rx, d.tx - base.tx} }

// dropCounters are the counters of the engine and of the interface. Each counts from its own start.
type dropCounters struct{ engine, device drops }

// since returns the losses since base. A packet may be in both counters, so the larger difference counts.
func (c dropCounters) since(base dropCounters) drops {
	engine, device := c.engine.since(base.engine), c.device.since(base.device)
	return drops{max(engine.rx, device.rx), max(engine.tx, device.tx)}
}

// drops reads the counters. The interface's counters stay zero if they cannot be read.
func (e *end) drops() (c dropCounters) {
	c.engine.rx, c.engine.tx = e.port.dropped()
	if table, err := os.ReadFile("/proc/thread-self/net/dev"); err == nil {
		c.device = interfaceDrops(string(table), e.cfg.Interface)
	}
	return c
}

// Columns of /proc/net/dev after the name. Drivers count packets without room in a NIC ring as fifo errors.
const (
	columnRxDrop = 3
	columnRxFifo = 4
	columnTxDrop = 11
	columnTxFifo = 12
)

func interfaceDrops(table, ifname string) drops {
	for line := range strings.Lines(table) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if ok && name == ifname && len(fields) > columnTxFifo {
			return drops{number(fields[columnRxDrop]) + number(fields[columnRxFifo]), number(fields[columnTxDrop]) + number(fields[columnTxFifo])}
		}
	}
	return drops{}
}

func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
