package doctor

import (
	"encoding/binary"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

func nfMessage(family byte, attrs ...*nl.RtAttr) []byte {
	b := []byte{family, 0, 0, 0}
	for _, a := range attrs {
		b = append(b, a.Serialize()...)
	}
	return b
}

func chainMessage(family byte, hook, policy uint32) []byte {
	at := nl.NewRtAttr(unix.NFTA_CHAIN_HOOK|unix.NLA_F_NESTED, nil)
	at.AddRtAttr(unix.NFTA_HOOK_HOOKNUM, binary.BigEndian.AppendUint32(nil, hook))
	return nfMessage(family, nl.NewRtAttr(unix.NFTA_CHAIN_TABLE, nl.ZeroTerminated("t")), nl.NewRtAttr(unix.NFTA_CHAIN_NAME, nl.ZeroTerminated("c")),
		at, nl.NewRtAttr(unix.NFTA_CHAIN_POLICY, binary.BigEndian.AppendUint32(nil, policy)))
}

// inputChain finds an input chain whose policy drops, if its family sees UDP. It finds nothing in a message that is cut off.
func TestInputChain(t *testing.T) {
	const accept = 1 // NF_ACCEPT
	whole := chainMessage(unix.NFPROTO_INET, unix.NF_INET_LOCAL_IN, verdictDrop)
	for name, tt := range map[string]struct {
		m    []byte
		want bool
	}{
		"drops":   {whole, true},
		"accepts": {chainMessage(unix.NFPROTO_INET, unix.NF_INET_LOCAL_IN, accept), false},
		"output":  {chainMessage(unix.NFPROTO_INET, unix.NF_INET_LOCAL_OUT, verdictDrop), false},
		"bridge":  {chainMessage(unix.NFPROTO_BRIDGE, unix.NF_INET_LOCAL_IN, verdictDrop), false},
		"short":   {whole[:3], false},
		"cut":     {whole[:len(whole)-8], false},
	} {
		c, got := inputChain(tt.m)
		if got != tt.want || got && c.String() != "inet t c" {
			t.Errorf("%s: got %v, %t, want %t", name, c, got, tt.want)
		}
	}
}

// A rule names a port by a comparison of nftables, or by the range of iptables; a rule of another table does not count.
func TestMentions(t *testing.T) {
	rule := func(table string, expressions []byte) []byte {
		return nfMessage(unix.NFPROTO_INET, nl.NewRtAttr(unix.NFTA_RULE_TABLE, nl.ZeroTerminated(table)), nl.NewRtAttr(unix.NFTA_RULE_EXPRESSIONS, expressions))
	}
	compare := nl.NewRtAttr(unix.NFTA_DATA_VALUE, []byte{0x44, 0x41}).Serialize()
	span := binary.NativeEndian.AppendUint32(nil, 17473|17473<<16)
	c := chain{"inet", "t", "c"}
	for name, tt := range map[string]struct {
		rule []byte
		port uint16
		want bool
	}{
		"nftables":    {rule("t", compare), 17473, true},
		"iptables":    {rule("t", span), 17473, true},
		"other port":  {rule("t", compare), 17474, false},
		"other table": {rule("u", compare), 17473, false},
		"short":       {[]byte{1}, 17473, false},
	} {
		if got := mentions([][]byte{tt.rule}, c, tt.port); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}
