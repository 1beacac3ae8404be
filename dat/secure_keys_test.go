package dat

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConnectionsTellTheirKeys: while a server changes its key, each connection tells which of the server's keys it uses, at
// both ends. The statistics count the connections of each key, also of one that is not in the key file any more.
func TestConnectionsTellTheirKeys(t *testing.T) {
	eachSecureLink(t, func(t *testing.T, n network) {
		k := newKeyring(t)
		text := func(host string) string { return string(must(os.ReadFile(k.key(host)))(t)) }
		k.file("both", text("old")+text("new"))
		secret := "psk:" + strings.TrimSpace(text("shared")) + " name=shared\n"
		b := newHost(t, n, 1, Options{Security: Security{KeyFile: k.dir + "/both", PeersFile: k.file("peers", k.line("alice", "")+secret)}})
		a := newHost(t, n, 0, k.options("alice", k.line("old", "")+k.line("new", "")+secret))
		b.listen(testQual, 64)
		for _, name := range []string{"old", "new", "new", "shared"} {
			x, y := a.point(nil), b.point(nil)
			own, client := k.publicOf(name), k.publicOf("alice")
			if name == "shared" {
				own, client = PublicKey{}, PublicKey{}
			}
			if request := joinAs(x, y, PublicKey{}, name); request.OwnKey != own || request.PeerKey != client {
				t.Errorf("%s: the request is for key %v", name, request.OwnKey)
			}
			px, py := must(x.Query())(t), must(y.Query())(t)
			if px.OwnKey != client || px.PeerKey != own || py.OwnKey != own || py.PeerKey != client {
				t.Errorf("%s: the ends have the keys %v and %v, %v and %v", name, px.OwnKey, px.PeerKey, py.PeerKey, py.OwnKey)
			}
		}
		count := map[PublicKey]int{}
		for _, c := range must(b.ia.Connections())(t) {
			if count[c.OwnKey]++; c.OwnKey != (PublicKey{}) && c.PeerKey != k.publicOf("alice") {
				t.Errorf("a connection with the key %v of the peer", c.PeerKey)
			}
		}
		want := map[PublicKey]int{k.publicOf("old"): 1, k.publicOf("new"): 2, {}: 1}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Errorf("connections by key (-want +got):\n%s", diff)
		}
		k.rewrite("both", text("new")+text("next"))
		ok(t, b.ia.ReloadSecurity())
		got := must(b.ia.Stats())(t).Keys
		if diff := cmp.Diff([]KeyStats{{k.publicOf("new"), 2}, {k.publicOf("next"), 0}}, got[:2]); diff != "" || len(got) != 4 {
			t.Errorf("%v: (-want +got):\n%s", got, diff)
		}
		var dump bytes.Buffer
		ok(t, b.ia.Dump(&dump))
		if short := k.publicOf("old").String()[:8]; strings.Count(dump.String(), short) != 1 {
			t.Errorf("the old key %s is not once in\n%s", short, &dump)
		}
	})
}

// TestKeysAsJSON: a key is the text that keygen prints.
func TestKeysAsJSON(t *testing.T) {
	key := newKeyring(t).publicOf("alice")
	text := must(json.Marshal(ConnInfo{OwnKey: key}))(t)
	if want := `"OwnKey":"` + key.String() + `","PeerKey":""`; !strings.Contains(string(text), want) {
		t.Errorf("got %s, want %s", text, want)
	}
}
