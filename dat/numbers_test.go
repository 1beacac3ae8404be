package dat

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"github.com/datxdp/datxdp/wire"
)

// TestNumbersOfWire: the numbers that this package and package wire convert into each other have the same meaning.
func TestNumbersOfWire(t *testing.T) {
	type pair struct{ dat, wire any }
	for _, p := range []pair{
		{DTOSuccess, wire.StatusSuccess}, {DTOFlushed, wire.StatusFlushed}, {DTOLocalLength, wire.StatusLocalLength},
		{DTOLocalProtection, wire.StatusLocalProtection}, {DTOBadResponse, wire.StatusBadResponse},
		{DTORemoteAccess, wire.StatusRemoteAccess}, {DTORemoteResponder, wire.StatusRemoteResponder},
		{DTOTransport, wire.StatusTransport}, {DTOReceiverNotReady, wire.StatusNotReady}, {DTORMRFailed, wire.StatusBindFailed},

		{DTOSend, wire.OpSend}, {DTORDMAWrite, wire.OpWrite}, {DTORDMARead, wire.OpRead}, {DTOReceive, wire.OpRecv},
		{DTOReceiveWithInvalidate, wire.OpRecvInvalidate}, {DTOBind, wire.OpBind}, {DTORDMAWriteImm, wire.OpWriteImm},
		{DTOReceiveImm, wire.OpRecvImm}, {DTOFetchAdd, wire.OpFetchAdd}, {DTOCmpSwap, wire.OpCmpSwap},

		{CompletionSuppress, wire.Suppress}, {CompletionSolicitedWait, wire.Solicited},
		{CompletionUnsignalled, wire.Unsignalled}, {CompletionBarrierFence, wire.Fence},

		{MemLocalRead, wire.LocalRead}, {MemRemoteRead, wire.RemoteRead}, {MemLocalWrite, wire.LocalWrite},
		{MemRemoteWrite, wire.RemoteWrite}, {MemRemoteAtomic, wire.RemoteAtomic},

		{BreakNoListener, wire.BreakNoListener}, {BreakBacklog, wire.BreakBacklog}, {BreakResources, wire.BreakResources},
		{BreakVersion, wire.BreakVersion}, {BreakOption, wire.BreakOption}, {BreakPort, wire.BreakPort},
		{BreakAccess, wire.BreakAccess}, {BreakLength, wire.BreakLength}, {BreakNotReady, wire.BreakNotReady},
		{BreakProtocol, wire.BreakProtocol}, {BreakTimeout, wire.BreakTimeout}, {BreakLocal, wire.BreakLocal},
		{BreakMemory, wire.BreakMemory}, {BreakUnfinished, wire.BreakUnfinished}, {BreakUnknown, wire.BreakUnknown},
		{BreakSecure, wire.BreakSecure}, {BreakKeyLimit, wire.BreakKeyLimit}, {BreakHandshake, wire.BreakHandshake}, {BreakDenied, wire.BreakDenied},
		{BreakEnded, wire.BreakEnded}, {BreakNoHost, wire.BreakNoHost}, {BreakNoNet, wire.BreakNoNet}, {BreakProhibited, wire.BreakProhibited},
		{BreakByPeer, wire.BreakByPeer},

		{CauseLoss, wire.CauseLoss}, {CauseTailProbe, wire.CauseTailProbe}, {CauseTimeout, wire.CauseTimeout},
		{CauseNotReady, wire.CauseNotReady}, {CauseEvicted, wire.CauseEvicted}, {CauseBlackHole, wire.CauseBlackHole},

		{ConnIdle, wire.Idle}, {ConnConnecting, wire.Connecting}, {ConnAccepting, wire.Accepting},
		{ConnEstablished, wire.Established}, {ConnDraining, wire.Draining}, {ConnClosed, wire.Closed},
	} {
		x, y := reflect.ValueOf(p.dat), reflect.ValueOf(p.wire)
		if x.Uint() != y.Uint() {
			t.Errorf("%T %#x is %T %#x in package wire", p.dat, x.Uint(), p.wire, y.Uint())
		}
		if named, is := p.wire.(fmt.Stringer); is && p.dat.(fmt.Stringer).String() != named.String() {
			t.Errorf("%T %#x is %v, %v in package wire", p.dat, x.Uint(), p.dat, p.wire)
		}
	}
	for d := range Denial(NumDenials) {
		if d.String() != wire.Denial(d).String() {
			t.Errorf("denial %d is %v, %v in package wire", d, d, wire.Denial(d))
		}
	}
	if uint64(NumCauses) != uint64(wire.NumCauses) {
		t.Errorf("%d causes, %d in package wire", NumCauses, wire.NumCauses)
	}
}

// TestConnInfoIsComplete: connInfo copies every field.
func TestConnInfoIsComplete(t *testing.T) {
	var from wire.ConnInfo
	v := reflect.ValueOf(&from).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.CanInt():
			f.SetInt(int64(i) + 1)
		case f.CanUint():
			f.SetUint(uint64(i)%5 + 1) // small enough to be a valid state
		case f.CanFloat():
			f.SetFloat(float64(i) + 1)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.Array:
			f.Index(0).SetUint(uint64(i) + 1)
		}
	}
	from.Peer = netip.AddrFrom4([4]byte{10, 0, 0, 1})
	to := reflect.ValueOf(connInfo(&from))
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if got := to.FieldByName(name); !got.IsValid() || fmt.Sprint(got.Convert(v.Field(i).Type())) != fmt.Sprint(v.Field(i)) {
			t.Errorf("%s is %v, want %v", name, got, v.Field(i))
		}
	}
	if to.NumField() != v.NumField() {
		t.Errorf("%d fields, %d in package wire", to.NumField(), v.NumField())
	}
}
