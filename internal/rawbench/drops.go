package rawbench

import (
	"os"
	"strconv"
	"strings"
)

// drops are packets that counters know to be lost, by direction.
type drops struct{ rx, tx uint64 }

func (d drops) since(base drops) drops { return drops{d.rx - base.rx, d.tx - base.tx} }

// drops reads the counters of the engine and of the interface. A packet may be in both, so the
// larger counts.
func (e *end) drops() drops {
	rx, tx := e.port.dropped()
	table, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return drops{rx, tx}
	}
	dev := interfaceDrops(string(table), e.cfg.Interface)
	return drops{max(rx, dev.rx), max(tx, dev.tx)}
}

// Columns of /proc/net/dev, after the name.
const (
	columnRxDrop = 3
	columnTxDrop = 11
)

func interfaceDrops(table, ifname string) drops {
	for line := range strings.Lines(table) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if ok && name == ifname && len(fields) > columnTxDrop {
			return drops{number(fields[columnRxDrop]), number(fields[columnTxDrop])}
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
