package wire

import (
	"bytes"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// noiseOption returns the value of a Noise option for a Connect.
func noiseOption(form proto.Form) []byte {
	n := proto.Noise{Form: form, KeyID: [4]byte{1, 2, 3, 4}, Head: bytes.Repeat([]byte{5}, form.HeadSize(proto.Connect))}
	return n.Append(nil)
}

// helloOf returns the encoding of a Hello.
func helloOf(hi *proto.Hello) []byte {
	b := make([]byte, hi.Size())
	hi.Put(b)
	return b
}

// An adapter in plaintext mode must refuse every Connect with the Noise option with a reason, and must take no notice of
// a request for the server's key.
func TestPlaintextAdapterAndSecureConnect(t *testing.T) {
	refused, asked, dropped := proto.Reject, proto.Challenge, proto.Type(0)
	for _, tc := range []struct {
		name  string
		hello proto.Hello
		want  proto.Type
	}{
		{"plain", proto.Hello{}, asked},
		{"plain, most private data", proto.Hello{Private: make([]byte, proto.MaxPrivateData)}, asked},
		{"plain, more private data", proto.Hello{Private: make([]byte, proto.MaxPrivateData+1)}, dropped},
		{"IK", proto.Hello{Noise: noiseOption(proto.FormIK), Private: make([]byte, proto.SealSize)}, refused},
		{"NNpsk0", proto.Hello{Noise: noiseOption(proto.FormNNpsk0), Private: make([]byte, proto.MaxNoiseData)}, refused},
		{"with a cookie", proto.Hello{Noise: noiseOption(proto.FormIK), Cookie: 1}, refused},
		{"too much private data", proto.Hello{Noise: noiseOption(proto.FormIK), Private: make([]byte, proto.MaxNoiseData+1)}, dropped},
		{"unknown form", proto.Hello{Noise: []byte{3, 1, 2, 3, 4}}, refused},
		{"unknown cipher", proto.Hello{Noise: append([]byte{0x12}, noiseOption(proto.FormNNpsk0)[1:]...)}, refused},
		{"no value", proto.Hello{Noise: []byte{}}, refused},
		{"request for the server's key", proto.Hello{ServerKey: make([]byte, proto.PublicKeySize)}, asked},
		{"half a server key", proto.Hello{ServerKey: make([]byte, proto.PublicKeySize/2)}, dropped},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			hi := tc.hello
			hi.CID, hi.Tag, hi.MTU, hi.Window, hi.Qual, hi.UDPPort = 5, 6, 1472, minPeerWindow, service, s.foe.addr.Port()
			bad := s.victim.eng.stats.BadPackets
			s.strike(&proto.Header{Type: proto.Connect, PSN: 1}, helloOf(&hi))
			if tc.want == dropped {
				if s.out.packets != 0 || s.victim.eng.stats.BadPackets != bad+1 {
					t.Errorf("answers by type: %v", s.out.types)
				}
				s.finish()
				return
			}
			if s.out.types[tc.want] != 1 || s.out.packets != 1 {
				t.Fatalf("answers by type: %v", s.out.types)
			}
			var got proto.Hello
			if b := s.out.last; len(b) != proto.HeaderSize+proto.HelloSize+proto.TrailerSize || !got.Parse(b[proto.HeaderSize:len(b)-proto.TrailerSize]) ||
				tc.want == refused && got.Reason != proto.ReasonOption {
				t.Errorf("the answer is % x", b)
			}
			s.noGain()
			s.finish()
		})
	}
}

// A Reject of a server that accepts secure connections only must end the attempt with that reason.
func TestSecureServerRejectsPlaintext(t *testing.T) {
	s := newSiege(t)
	c := s.victim.host.NewConn(plain)
	s.foe.down = true
	s.dial(s.victim, s.foe, c, nil)
	s.land()
	h := proto.Header{Type: proto.Reject, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
	s.strike(&h, helloOf(&proto.Hello{CID: c.cid, Qual: service, Reason: proto.ReasonSecure}))
	var got Completion
	if !s.victim.connect.Pop(&got) || got.Kind != KindRefused || BreakReason(got.Data) != BreakSecure {
		t.Errorf("completion %+v", got)
	}
	s.finish()
}
