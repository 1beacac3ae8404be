package wire

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// tagRules says which tag a packet of each type has.
func tagRules(t *testing.T) map[string]string {
	rules := make(map[string]string)
	for _, row := range documentTable(t, "### Verification tag", "| packets | tag |") {
		rule, _, _ := strings.Cut(row[1], ",")
		for _, typ := range strings.Split(row[0], ", ") {
			rules[typ] = rule
		}
	}
	return rules
}

// party holds the names of a connection at one of its ends.
type party struct {
	at  netip.AddrPort
	cid uint32
}

// Every packet of a conversation must have the tag that docs/WIRE.md says.
func TestDocumentTags(t *testing.T) {
	rules := tagRules(t)
	names := make(map[proto.Type]string)
	for _, row := range documentTable(t, "## Packet", "| type | | body |") {
		n, _ := strconv.Atoi(row[0])
		names[proto.Type(n)] = row[1]
	}
	tags, peers := make(map[party]uint32), make(map[party]party)
	checked := make(map[string]int)
	for i, p := range recordEngines(t, ends4) {
		var h proto.Header
		var hi proto.Hello
		if !h.Parse(p.payload) {
			t.Fatalf("packet %d has no header", i)
		}
		hi.Parse(p.payload[proto.HeaderSize : len(p.payload)-proto.TrailerSize])
		if h.Type == proto.Connect || h.Type == proto.Accept {
			tags[party{p.from, hi.CID}] = hi.Tag
		}
		if h.Type == proto.Accept {
			peers[party{p.to, h.CID}], peers[party{p.from, hi.CID}] = party{p.from, hi.CID}, party{p.to, h.CID}
		}
		want := uint32(0)
		switch rule := rules[names[h.Type]]; rule {
		case "0":
		case "the requester's", "the receiver's":
			want = tags[party{p.to, h.CID}]
		case "that of the packet which they answer":
			if asked := (party{p.to, h.CID}); h.Type == proto.Closed {
				want = tags[peers[asked]]
			} else {
				want = tags[party{p.from, h.CID}]
			}
		default:
			t.Fatalf("%s has the tag %q?", names[h.Type], rule)
		}
		if checked[names[h.Type]]++; h.Tag != want || (want == 0) != (h.Type == proto.Connect) {
			t.Errorf("packet %d, %s: tag %#x, want %#x", i, names[h.Type], h.Tag, want)
		}
	}
	for typ := range rules {
		if checked[typ] == 0 && typ != "Versions" { // TestOtherVersions checks Versions
			t.Errorf("no %s was sent", typ)
		}
		delete(checked, typ)
	}
	if len(checked) > 0 {
		t.Errorf("the document has no tag of %v", checked)
	}
}
