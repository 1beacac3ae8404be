package main

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/result"
)

// qualifier is where a datbench target listens: "datbench" in ASCII.
const qualifier dat.ConnQual = 0x64617462656e6368

// ask is what an initiator sends with its connection request: the row, and the memory that the
// target may write to.
type ask struct {
	row    Spec
	remote dat.RMRTriplet
	// session is the same in the requests of one row's connections, and in no others; index counts them
	// from 0.
	session uint64
	index   int
	// job is the same in all requests of one datbench run, and in no others. more is whether another row of it follows.
	job  uint64
	more bool
}

// The first byte of an ask says which version of it follows.
const askVersion = 5

const (
	remoteSize = 4 + 8 + 8
	askSize    = 3 + 8 + 4 + 8 + 4 + 4 + remoteSize + 8 + 2 + 2 + 1 + 8 + 8 + 2 + 8 + 1
)

// Codes of operations and metrics on the wire; 0 is none.
var (
	opCodes     = []string{"", opSend, opWrite, opRead}
	metricCodes = []string{"", metricLatency, metricRate, metricBandwidth, metricSHA256, metricRequests}
)

var errAsk = errors.New("this is no request of this version of datbench: use the same at both ends")

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
	b = append(b, bit(a.row.BothWays))
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Count))
	b = binary.BigEndian.AppendUint64(b, uint64(a.row.Churn))
	b = binary.BigEndian.AppendUint16(b, uint16(a.row.Signal))
	b = binary.BigEndian.AppendUint64(b, a.job)
	return append(b, bit(a.more))
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

// decodeAsk reads a request that may come from anybody.
func decodeAsk(b []byte) (ask, error) {
	if len(b) < askSize || b[0] != askVersion || int(b[1]) >= len(opCodes) || int(b[2]) >= len(metricCodes) {
		return ask{}, errAsk
	}
	a := ask{row: Spec{Row: result.Row{Op: opCodes[b[1]], Metric: metricCodes[b[2]]}}}
	a.row.Size = int64(binary.BigEndian.Uint64(b[3:]))
	a.row.Depth = int(binary.BigEndian.Uint32(b[11:]))
	a.row.Bytes = int64(binary.BigEndian.Uint64(b[15:]))
	a.row.Warmup = time.Duration(binary.BigEndian.Uint32(b[23:])) * time.Millisecond
	a.row.Duration = time.Duration(binary.BigEndian.Uint32(b[27:])) * time.Millisecond
	a.remote = decodeRemote(b[31:])
	b = b[31+remoteSize:]
	a.session, a.index = binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint16(b[8:]))
	a.row.Connections, a.row.BothWays = int(binary.BigEndian.Uint16(b[10:])), b[12] != 0
	a.row.Count = int64(binary.BigEndian.Uint64(b[13:]))
	a.row.Churn = int64(binary.BigEndian.Uint64(b[21:]))
	a.row.Signal = int(binary.BigEndian.Uint16(b[29:]))
	a.job, a.more = binary.BigEndian.Uint64(b[31:]), b[39] != 0
	return a, a.check()
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
