package identity

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/handshake"
)

// text returns a key whose bytes are n, in base64.
func text(n byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, handshake.KeySize))
}

// public returns the public key of the private key whose bytes are n.
func public(t testing.TB, n byte) handshake.PublicKey {
	t.Helper()
	key, err := handshake.NewPrivateKey(bytes.Repeat([]byte{n}, handshake.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

// TestKeys: the first key is used to connect, and all are found by their key ID.
func TestKeys(t *testing.T) {
	k, err := parseKeys("k", []byte("# old and new\n\n "+text(1)+" # from 2026\r\n#"+text(3)+"\n\t"+text(2)))
	if err != nil {
		t.Fatal(err)
	}
	one, two := public(t, 1), public(t, 2)
	if got := k.Public(); !slices.Equal(got, []handshake.PublicKey{one, two}) || k.Connect().Public() != one {
		t.Errorf("got %x, to connect %x, want %x and %x", got, k.Connect().Public(), one, two)
	}
	if k.Find(one.ID()).Public() != one || k.Find(two.ID()).Public() != two || k.Find(public(t, 3).ID()) != nil {
		t.Error("Find does not return the key with the key ID")
	}
	if got, want := Text(handshake.PublicKey(bytes.Repeat([]byte{7}, 32))), text(7); got != want {
		t.Errorf("Text: got %s, want %s", got, want)
	}
}

func TestBadKeys(t *testing.T) {
	var many strings.Builder
	for n := range byte(maxKeys + 1) {
		many.WriteString(text(n+1) + "\n")
	}
	tests := []struct{ name, text, want string }{
		{"empty", "", "k has no key: make a key file with datbench keygen"},
		{"comment", "# " + text(1), "k has no key: make a key file with datbench keygen"},
		{"UTF-8 with a mark", "\xef\xbb\xbf" + text(1), "k: it begins with a byte order mark: save it as ASCII, or as UTF-8 without the mark"},
		{"UTF-16", "\xff\xfeA\x00", "k: it begins with a byte order mark: save it as ASCII, or as UTF-8 without the mark"},
		{"short", "\n" + text(1)[:20], "k:2: not a private key: write 32 bytes in base64, which are 44 characters, not 20"},
		{"damaged", strings.Replace(text(1), "B", "!", 1), "k:1: not a private key: write 32 bytes in base64; this text is damaged"},
		{"31 bytes", strings.Repeat("A", 42) + "==", "k:1: not a private key: write 32 bytes in base64; this text is damaged"},
		{"33 bytes", strings.Repeat("A", 44), "k:1: not a private key: write 32 bytes in base64; this text is damaged"},
		{"bits too many", strings.Repeat("A", 42) + "B=", "k:1: not a private key: write 32 bytes in base64; this text is damaged"},
		{"zero", text(0), "k:1: not a private key: all bytes are 0: make one with datbench keygen"},
		{"twice", text(1) + "\n" + text(1), "k:2: the key, or another with the same key ID, is in the file already: remove this line"},
		{"the same key in other bits", text(8) + "\n" + strings.Replace(text(8), "CA", "CQ", 1), "k:2: the key, or another with the same key ID, is in the file already: remove this line"},
		{"a word", text(1) + " name=me", "k:1: more than a private key: write one key a line, and # before a comment"},
		{"many", many.String(), "k:17: more than 16 keys: remove old ones"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if k, err := parseKeys("k", []byte(tt.text)); err == nil || err.Error() != tt.want || k != nil {
				t.Errorf("got %v, %v\nwant %s", k, err, tt.want)
			}
		})
	}
}
