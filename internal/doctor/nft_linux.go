package doctor

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// chain is a base chain of nftables for packets that come to this host.
type chain struct{ family, table, name string }

// String returns the chain as nft(8) has it.
func (c chain) String() string {
	return fmt.Sprintf("%s %s %s", c.family, printable(c.table), printable(c.name))
}

// families are the families of nftables whose chains see UDP, with their names in nft(8).
var families = map[byte]string{unix.NFPROTO_IPV4: "ip", unix.NFPROTO_IPV6: "ip6", unix.NFPROTO_INET: "inet"}

// verdictDrop is NF_DROP of linux/netfilter.h.
const verdictDrop = 0

// sizeofNfgenmsg is the size of struct nfgenmsg, which begins each message of netfilter.
const sizeofNfgenmsg = 4

// closedChains returns the input chains that drop what no rule accepts (policy drop), and have no rule that names a UDP
// port. Reading them takes CAP_NET_ADMIN; without, there are none.
//
// System calls: netlink NFT_MSG_GETCHAIN and NFT_MSG_GETRULE.
func closedChains(port uint16) (closed []chain) {
	rules := nftables(unix.NFT_MSG_GETRULE)
	for _, m := range nftables(unix.NFT_MSG_GETCHAIN) {
		c, drops := inputChain(m)
		if drops && !mentions(rules, c, port) {
			closed = append(closed, c)
		}
	}
	return closed
}

// nftables returns what nftables has of a kind, one message each; nothing on an error.
func nftables(get int) [][]byte {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|get, unix.NLM_F_DUMP)
	req.AddRawData(make([]byte, sizeofNfgenmsg)) // of all families
	all, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	if err != nil {
		return nil
	}
	return all
}

// attributes returns the attributes of a message by their type.
func attributes(b []byte) map[uint16][]byte {
	list, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil
	}
	all := make(map[uint16][]byte, len(list))
	for _, a := range list {
		all[a.Attr.Type&nl.NLA_TYPE_MASK] = a.Value
	}
	return all
}

// inputChain parses a chain. drops is true if its hook is input and its policy drop.
func inputChain(m []byte) (c chain, drops bool) {
	if len(m) < sizeofNfgenmsg {
		return c, false
	}
	family, known := families[m[0]]
	a := attributes(m[sizeofNfgenmsg:])
	hook := attributes(a[unix.NFTA_CHAIN_HOOK])[unix.NFTA_HOOK_HOOKNUM]
	policy := a[unix.NFTA_CHAIN_POLICY]
	if !known || len(hook) < 4 || len(policy) < 4 {
		return c, false
	}
	c = chain{family, cString(a[unix.NFTA_CHAIN_TABLE]), cString(a[unix.NFTA_CHAIN_NAME])}
	return c, binary.BigEndian.Uint32(hook) == unix.NF_INET_LOCAL_IN && binary.BigEndian.Uint32(policy) == verdictDrop
}

func cString(b []byte) string { return string(bytes.TrimRight(b, "\x00")) }

// mentions reports whether a rule of the chain's table compares with a port: by an expression of nftables, or by a match
// of iptables. A set of ports is not looked into.
func mentions(rules [][]byte, c chain, port uint16) bool {
	value := binary.BigEndian.AppendUint16(binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, 6), unix.NFTA_DATA_VALUE), port)
	span := binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, port), port)
	for _, m := range rules {
		if len(m) < sizeofNfgenmsg || families[m[0]] != c.family {
			continue
		}
		a := attributes(m[sizeofNfgenmsg:])
		does := a[unix.NFTA_RULE_EXPRESSIONS]
		if cString(a[unix.NFTA_RULE_TABLE]) == c.table && (bytes.Contains(does, value) || bytes.Contains(does, span)) {
			return true
		}
	}
	return false
}
