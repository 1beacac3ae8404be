package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/datxdp/datxdp/dat"
)

// qualifier is where a datbench target listens: "datbench" in ASCII.
const qualifier dat.ConnQual = 0x64617462656e6368

// ask is what an initiator sends with its connection request: the row, and the memory that the
// target may write to.
type ask struct {
	row    Row
	remote dat.RMRTriplet
	// session is the same in the requests of one row's connections, and in no others; index counts them
	// from 0.
	session uint64
	index   int
}

// The first byte of an ask says which version of it follows.
const askVersion = 4

const (
	remoteSize = 4 + 8 + 8
	askSize    = 3 + 8 + 4 + 8 + 4 + 4 + remoteSize + 8 + 2 + 2 + 1 + 8 + 8 + 2
)

// Codes of operations and metrics on the wire; 0 is none.
var (
	opCodes     = []string{"", opSend, opWrite, opRead}
	metricCodes = []string{"", metricLatency, metricRate, metricBandwidth, metricSHA256, metricRequests}
)

var errAsk = errors.New("connection request is not one of datbench's, or of another version")

func (a ask) encode() []byte {
	b := []byte{askVersion, code(opCodes, a.row.Op), code(metricCodes, a.row.Metric)}
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Size))
	b = binary.BigEndian.AppendUint32(b, uint32(a.row.Depth))
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Bytes))
	b = binary.BigEndian.AppendUint32(b, uint32(a.row.Warmup.Milliseconds()))
	b = binary.BigEndian.AppendUint32(b, uint32(a.row.Duration.Milliseconds()))
	b = appendRemote(b, a.remote)
	b = binary.BigEndian.AppendUint64(b, a.session)
	b = binary.BigEndian.AppendUint16(b, uint16(a.index))
	b = binary.BigEndian.AppendUint16(b, uint16(a.row.connections()))
	b = append(b, bit(a.row.Bidir))
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Churn))
	return binary.BigEndian.AppendUint16(b, uint16(a.row.Signal))
}

func code(codes []string, word string) byte {
	for i, w := range codes {
		if w == word {
			return byte(i)
		}
	}
	return 0
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Limits on what a stranger may ask of a target.
const (
	maxAskSize  = 64 << 20
	maxAskDepth = 1 << 14
	maxAskBytes = 1 << 30
	// maxSignal is requests of which one completes with an event.
	maxSignal = 1 << 10
	// maxConnections of one row.
	maxConnections = 128
)

// decodeAsk reads a request that may come from anybody.
func decodeAsk(b []byte) (ask, error) {
	if len(b) < askSize || b[0] != askVersion || int(b[1]) >= len(opCodes) || int(b[2]) >= len(metricCodes) {
		return ask{}, errAsk
	}
	a := ask{row: Row{Op: opCodes[b[1]], Metric: metricCodes[b[2]]}}
	a.row.Size = int64(binary.BigEndian.Uint64(b[3:]))
	a.row.Depth = int(binary.BigEndian.Uint32(b[11:]))
	a.row.Bytes = int64(binary.BigEndian.Uint64(b[15:]))
	a.row.Warmup = time.Duration(binary.BigEndian.Uint32(b[23:])) * time.Millisecond
	a.row.Duration = time.Duration(binary.BigEndian.Uint32(b[27:])) * time.Millisecond
	a.remote = decodeRemote(b[31:])
	b = b[31+remoteSize:]
	a.session, a.index = binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint16(b[8:]))
	a.row.Connections, a.row.Bidir = int(binary.BigEndian.Uint16(b[10:])), b[12] != 0
	a.row.Count = int64(binary.BigEndian.Uint64(b[13:]))
	a.row.Churn = int64(binary.BigEndian.Uint64(b[21:]))
	a.row.Signal = int(binary.BigEndian.Uint16(b[29:]))
	return a, a.check()
}

func (a ask) check() error {
	r := a.row
	switch {
	case r.Op == "" || r.Metric == "":
		return errAsk
	case r.Size < 1 || r.Size > maxAskSize || r.Depth < 1 || r.Depth > maxAskDepth:
		return fmt.Errorf("size %d with depth %d: %w", r.Size, r.Depth, errAsk)
	case r.Connections < 1 || r.Connections > maxConnections || a.index >= r.Connections || r.Count < 0:
		return fmt.Errorf("connection %d of %d: %w", a.index, r.Connections, errAsk)
	case (r.Connections > 1 || r.Bidir) && !streams(r.Metric):
		return fmt.Errorf("%s over %d connections: %w", r.Metric, r.Connections, errAsk)
	case r.Signal < 0 || r.Signal > maxSignal || r.Signal > 0 && r.Metric != metricRate:
		return fmt.Errorf("%s with an event for one of %d: %w", r.Metric, r.Signal, errAsk)
	case r.Churn < 0 || r.Churn > churnSize:
		return fmt.Errorf("%d bytes of heap: %w", r.Churn, errAsk)
	}
	return r.fits()
}

// fits is whether a row's buffers stay in what a side gives to one.
func (r Row) fits() error {
	if r.Signal > r.depth() {
		return fmt.Errorf("--signal %d is more than the depth of %d: no request that is outstanding would tell of its completion", r.Signal, r.depth())
	}
	if n := int64(r.window()) * r.Size; n > maxAskBytes {
		return fmt.Errorf("%s × depth %d × connections %d is %s outstanding, more than %s: ask for less of one of them",
			formatSize(r.Size), r.depth(), r.connections(), formatSize(n), formatSize(maxAskBytes))
	}
	return nil
}

func appendRemote(b []byte, r dat.RMRTriplet) []byte {
	b = binary.BigEndian.AppendUint32(b, r.Context)
	b = binary.BigEndian.AppendUint64(b, r.Address)
	return binary.BigEndian.AppendUint64(b, r.Length)
}

// decodeRemote reads remoteSize bytes.
func decodeRemote(b []byte) (r dat.RMRTriplet) {
	r.Context = binary.BigEndian.Uint32(b)
	r.Address = binary.BigEndian.Uint64(b[4:])
	r.Length = binary.BigEndian.Uint64(b[12:])
	return r
}
