package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// The lines of the key log name the connection as its Connect does, both ends write the same, and the secrets open the
// first packets of both directions. A request that is rejected has no line.
func TestKeyLog(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		var log bytes.Buffer
		for _, n := range m.nodes {
			n.host.security.KeyLog = &log
		}
		refused := m.attempt(nil)
		m.until("the request", 5*time.Second, func() bool { return len(m.b.arrived) > 0 })
		path, err := m.b.link.Resolve(m.b.arrived[0].From, 1)
		if err == nil {
			err = m.b.eng.Reject(m.b.arrived[0], path, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		m.b.arrived = nil
		m.refused(refused, KindPeerRejected, 0)
		if log.Len() != 0 {
			t.Fatalf("of a refused request: %s", &log)
		}
		m.sent, m.answer = nil, nil
		ca := m.attempt([]byte("private data"))
		cb := m.welcome(ca)
		hi := helloIn(t, m.offers()[0])
		name := fmt.Sprintf("%08x %08x %08x", hi.CID, hi.Tag, cb.cid)
		lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
		if len(lines) != 4 || !slices.Equal(lines[:2], lines[2:]) {
			t.Fatalf("%s", &log)
		}
		for i, packets := range [][][]byte{m.sent, m.answer} {
			label := []string{"DATXDP2_REQUESTER ", "DATXDP2_SERVER "}[i]
			secret, ok := strings.CutPrefix(lines[i], label+name+" ")
			if !ok {
				t.Fatalf("%q does not begin with %q", lines[i], label+name)
			}
			opensWith(t, unhexed(t, secret), firstSealed(packets))
		}
	})
}

// firstSealed returns the first sealed packet of a direction of a secure connection.
func firstSealed(packets [][]byte) []byte {
	return packets[slices.IndexFunc(packets, func(b []byte) bool { return typeOf(b).Sealed() })]
}

// opensWith checks that the first secret of a direction opens its first packet.
func opensWith(t *testing.T, secret, packet []byte) {
	t.Helper()
	own := [seal.SecretSize]byte(secret)
	s, err := seal.New(&seal.Config{Send: new([seal.SecretSize]byte), Receive: &own, Limits: seal.LimitsFor(1500)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, result := s.Open(slices.Clone(packet), 0); result != seal.Opened {
		t.Errorf("a packet of type %d: result %d", typeOf(packet), result)
	}
}

func unhexed(t *testing.T, text string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(text, "%x", &b); err != nil || len(b) != seal.SecretSize {
		t.Fatalf("%q: %v", text, err)
	}
	return b
}

// A connection must be established although its key log fails.
func TestKeyLogFails(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: time.Microsecond}, Limits{}, usual, 0)
	w.keyLog = failingWriter{}
	w.addNode(ends4[0])
	w.addNode(ends4[1])
	ca, cb := w.pair(plain)
	w.rounds(ca, cb, 1)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errMessage }
