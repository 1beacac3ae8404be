package wire

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// TestLeaseHeader: the programs of a shared interface find a lease by the fields that this protocol has. The qualifier of
// a Connect is at byte 56.
func TestLeaseHeader(t *testing.T) {
	text, err := os.ReadFile("../bpf/headers/lease.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]int{"WIRE_VERSION": proto.Version, "WIRE_CONNECT": int(proto.Connect), "WIRE_RESET": int(proto.Reset)} {
		if line := fmt.Sprintf("#define %s %d\n", name, value); !strings.Contains(string(text), line) {
			t.Errorf("lease.h does not have %s", line)
		}
	}
	if engineBits != 8 || !strings.Contains(string(text), "NTOHL(p->cid) >> 24") {
		t.Error("lease.h does not take the engine from the upper bits of the connection ID")
	}
	const qualifier = 0x0102030405060708
	b := packetOf(proto.Header{Type: proto.Connect}, helloOf(&proto.Hello{CID: 1, Tag: 1, Qual: qualifier}))
	if got := binary.BigEndian.Uint64(b[56:]); got != qualifier {
		t.Errorf("byte 56 of a Connect begins with %#x, want the qualifier", got)
	}
}
