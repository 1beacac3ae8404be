package wire

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/google/go-cmp/cmp"
)

// known are the known answers of one form in WIRE.md: lines of a name and bytes.
type known struct {
	t    *testing.T
	text strings.Builder
}

// add adds a line. Long values continue on lines without a name.
func (k *known) add(name string, b []byte) {
	const most = 48 // bytes of a line
	for part := range slices.Chunk(b, most) {
		fmt.Fprintf(&k.text, "%-20s%x\n", name, part)
		name = ""
	}
}

// fail ends the test after an error.
func (k *known) fail(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// counted returns n bytes with consecutive values.
func counted(first byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = first + byte(i)
	}
	return b
}

// The known answers in WIRE.md must be what the engine computes of the same keys.
func TestKnownAnswersOfDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### Known answers\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := strings.Split(section, "```\n")
	for i, form := range []proto.Form{proto.FormIK, proto.FormNNpsk0} {
		k := &known{t: t}
		k.handshake(form)
		got := ""
		if len(blocks) > 2*i+1 {
			got = blocks[2*i+1]
		}
		if got != k.text.String() {
			t.Errorf("form %d: WIRE.md (-), engine (+):\n%s\nthe block should be\n%s", form, cmp.Diff(got, k.text.String()), &k.text)
		}
	}
}

// knownServer is the address to which the requester sends.
var knownServer = netip.MustParseAddr("10.0.0.1")

// handshake adds the keys and messages of a handshake, and what follows from them.
func (k *known) handshake(form proto.Form) {
	requester, server := k.ends(form)
	connect, f := k.connect(requester)
	var h proto.Header
	var hi proto.Hello
	var n proto.Noise
	if !h.Parse(connect) || !hi.Parse(connect[proto.HeaderSize:len(connect)-proto.TrailerSize]) || !n.Parse(hi.Noise, h.Type) {
		k.t.Fatalf("% x is no Connect", connect)
	}
	payload, a, err := server.Respond(netip.Addr{}, 0, byte(n.Form), n.KeyID, proto.AppendPrologue(nil, connect, knownServer), slices.Concat(n.Head, hi.Private))
	k.fail(err)
	if string(payload) != "hello" {
		k.t.Errorf("payload of message 1: %q", payload)
	}
	accept, message, s := k.accept(a, &hi, &n)
	k.add("Accept", accept)
	var same secrets
	_, err = f.Finish(message, &same.send, &same.receive)
	k.fail(err)
	if same.send != s.receive || same.receive != s.send {
		k.t.Error("the ends have different secrets")
	}
	k.keys("requester", same.send[:])
	k.keys("server", same.receive[:])
	k.packets(&same, s)
}

// ends returns the two ends, and adds their keys.
func (k *known) ends(form proto.Form) (requester, server *noise) {
	own, peer, shared := counted(0, 32), counted(0x20, 32), counted(0x80, 32)
	first, second := counted(0x40, 32), counted(0x60, 32)
	if form == proto.FormNNpsk0 {
		k.add("shared secret", shared)
		requester, server = sharingNoise(shared, bytes.NewReader(first)), sharingNoise(shared, bytes.NewReader(second))
	} else {
		k.add("requester private", own)
		k.add("server private", peer)
		requester, server = knowingNoise(own, peer, bytes.NewReader(first)), knowingNoise(peer, peer, bytes.NewReader(second))
		k.add("server public", requester.terms.Server[:])
	}
	k.add("requester ephemeral", first)
	k.add("server ephemeral", second)
	return requester, server
}

// connect returns a Connect with message 1, as makeOffer makes it, and adds its parts.
func (k *known) connect(r *noise) (connect []byte, f Finisher) {
	form, keyID := r.Form()
	private := []byte("hello")
	hi := proto.Hello{CID: 0x00020001, Tag: 0x0badcafe, MTU: 1472, Window: 192, ReadIn: 16, ReadOut: 16, Qual: 5000,
		Cookie: 0x1122334455667788, UDPPort: 17473, Noise: noiseHead(form, keyID, proto.Connect), Private: make([]byte, len(private)+proto.SealSize)}
	h := proto.Header{Type: proto.Connect, PSN: 0x1000, Credit: 16, TS: 0x00c0ffee}
	prologue := proto.AppendPrologue(nil, pack(h, helloOf(&hi)), knownServer)
	k.add("prologue", prologue)
	k.add("payload 1", private)
	message, f, err := r.Request(prologue, private)
	k.fail(err)
	body, err := putMessage(&hi, message)
	k.fail(err)
	connect = pack(h, body)
	k.add("Connect", connect)
	return connect, f
}

// accept returns an Accept with message 2, as Engine.reply makes it, and the message. It adds the payload.
func (k *known) accept(a Answerer, to *proto.Hello, n *proto.Noise) (accept, message []byte, s *secrets) {
	h := proto.Header{Type: proto.Accept, CID: to.CID, PSN: 0x2000, Ack: 0x1000, Credit: 16, TS: 0x66778899, Tag: to.Tag}
	inner := pack(h, helloOf(&proto.Hello{CID: 0x00040002, Tag: 0x5eed5eed, MTU: 1472, Window: 192, ReadIn: 16, ReadOut: 16,
		UDPPort: 17473, Private: []byte("welcome")}))
	inner = inner[:len(inner)-proto.TrailerSize]
	k.add("payload 2", inner)
	s = new(secrets)
	message, err := a.Reply(inner, &s.send, &s.receive)
	k.fail(err)
	outer := proto.Hello{Cookie: to.Cookie, Noise: noiseHead(byte(n.Form), n.KeyID, proto.Accept), Private: make([]byte, len(inner)+proto.SealSize)}
	body, err := putMessage(&outer, message)
	k.fail(err)
	return pack(proto.Header{Type: h.Type, CID: h.CID, Ack: h.Ack, TS: h.TS, Tag: h.Tag}, body), message, s
}

// keys adds secret 0 of a direction, and what it gives.
func (k *known) keys(end string, secret []byte) {
	k.add(end+" secret 0", secret)
	for _, v := range []struct {
		name, label string
		size        int
	}{{"key 0", "datxdp key", 16}, {"salt 0", "datxdp salt", 4}, {"secret 1", "datxdp next", 32}} {
		b, err := hkdf.Expand(sha256.New, secret, v.label, v.size)
		k.fail(err)
		k.add(end+" "+v.name, b)
	}
}

// packets adds sealed packets: the first ones of both ends, and the requester's first one after a key update.
func (k *known) packets(requester, server *secrets) {
	limits := seal.Limits{Packets: 10, Update: 1, Age: 1 << 40, Failures: 1}
	up, err := seal.New(&seal.Config{Send: &requester.send, Receive: &requester.receive, Leads: true, Limits: limits}, 0)
	k.fail(err)
	down, err := seal.New(&seal.Config{Send: &server.send, Receive: &server.receive, Limits: limits}, 0)
	k.fail(err)
	ready := make([]byte, proto.ReadySize)
	proto.PutReady(ready)
	data := proto.Header{Type: proto.Data, CID: 0x00040002, PSN: 0x1000, Ack: 0x2000, Credit: 16, TS: 0x00c10000, Echo: 0x66778a00}
	ack := proto.Header{Type: proto.Ack, CID: 0x00020001, PSN: 0x2000, Ack: 0x1001, Credit: 16, TS: 0x66779000, Echo: 0x00c10010}
	k.packet("requester Data", up, down, data, ready)
	k.packet("server Ack", down, up, ack, nil)
	data.PSN = 0x1001
	k.packet("requester Data", up, down, data, ready)
	if phase, _ := up.Phases(); phase != 1 {
		k.t.Errorf("phase %d", phase)
	}
}

// packet adds a sealed packet, after the other end has opened it.
func (k *known) packet(name string, from, to *seal.Session, h proto.Header, body []byte) {
	b := make([]byte, proto.HeaderSize, proto.HeaderSize+len(body)+seal.Overhead)
	h.Put(b)
	sealed, ok := from.Seal(append(b, body...), 0)
	if !ok {
		k.t.Fatalf("%s cannot be sealed", name)
	}
	k.add(name, sealed)
	if got, result := to.Open(slices.Clone(sealed), 0); result != seal.Opened || !bytes.Equal(got, body) {
		k.t.Errorf("%s: %x, result %d", name, got, result)
	}
}
