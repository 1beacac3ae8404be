package main

import (
	"encoding/binary"
	"fmt"

	"github.com/datxdp/datxdp/dat"
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
	// job is the same in all requests of one datbench run, and in no others.
	job uint64
}

// askVersion is the first byte of an ask: which version of what follows the row.
const askVersion = 6

// Sizes in bytes: of the memory that is named, and of what follows the row.
const (
	remoteSize = 4 + 8 + 8
	askTail    = remoteSize + 8 + 2 + 8
)

func (a ask) encode() []byte {
	b := a.row.appendTo([]byte{askVersion})
	b = appendRemote(b, a.remote)
	b = binary.BigEndian.AppendUint64(b, a.session)
	b = binary.BigEndian.AppendUint16(b, uint16(a.index))
	return binary.BigEndian.AppendUint64(b, a.job)
}

// decodeAsk reads a request that may come from anybody.
func decodeAsk(b []byte) (a ask, err error) {
	if len(b) == 0 || b[0] != askVersion {
		return ask{}, errSpec
	}
	if a.row, b, err = parseSpec(b[1:]); err != nil {
		return ask{}, err
	}
	if len(b) < askTail {
		return ask{}, errSpec
	}
	a.remote = decodeRemote(b)
	b = b[remoteSize:]
	a.session, a.index, a.job = binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint16(b[8:])), binary.BigEndian.Uint64(b[10:])
	if a.index >= a.row.connections() {
		return ask{}, fmt.Errorf("connection %d of %d: %w", a.index+1, a.row.connections(), errSpec)
	}
	return a, withinBounds(a.row)
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
