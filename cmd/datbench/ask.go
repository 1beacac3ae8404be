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
}

// The first byte of an ask says which version of it follows.
const askVersion = 1

const (
	remoteSize = 4 + 8 + 8
	askSize    = 3 + 8 + 4 + 8 + 4 + 4 + remoteSize
)

// Codes of operations and metrics on the wire; 0 is none.
var (
	opCodes     = []string{"", opSend, opWrite, opRead}
	metricCodes = []string{"", metricLatency, metricRate, metricBandwidth, metricSHA256}
)

var errAsk = errors.New("connection request is not one of datbench's, or of another version")

func (a ask) encode() []byte {
	b := []byte{askVersion, code(opCodes, a.row.Op), code(metricCodes, a.row.Metric)}
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Size))
	b = binary.BigEndian.AppendUint32(b, uint32(a.row.Depth))
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Bytes))
	b = binary.BigEndian.AppendUint32(b, uint32(a.row.Warmup.Milliseconds()))
	b = binary.BigEndian.AppendUint32(b, uint32(a.row.Duration.Milliseconds()))
	return appendRemote(b, a.remote)
}

func code(codes []string, word string) byte {
	for i, w := range codes {
		if w == word {
			return byte(i)
		}
	}
	return 0
}

// Limits on what a stranger may ask of a target.
const (
	maxAskSize  = 64 << 20
	maxAskDepth = 1 << 14
	maxAskBytes = 1 << 30
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
	return a, a.check()
}

func (a ask) check() error {
	r := a.row
	switch {
	case r.Op == "" || r.Metric == "":
		return errAsk
	case r.Size < 1 || r.Size > maxAskSize || r.Depth < 1 || r.Depth > maxAskDepth:
		return fmt.Errorf("size %d with depth %d: %w", r.Size, r.Depth, errAsk)
	case int64(r.Depth)*r.Size > maxAskBytes:
		return fmt.Errorf("size %d with depth %d needs more than %s: %w", r.Size, r.Depth, formatSize(maxAskBytes), errAsk)
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
