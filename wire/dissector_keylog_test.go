//go:build !race

package wire

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/google/go-cmp/cmp"
)

// recording is a capture of secure connections, the key log, and the plaintext of each sealed packet in the order of the
// capture.
type recording struct {
	packets []datagram
	clear   map[int][]byte // header and body, by the place in packets
	log     bytes.Buffer
	phases  uint32 // key phases of the first connection
}

// recordSecure makes two engines use every operation on a bad network, on two connections one after the other.
func recordSecure(t *testing.T, seed uint64) *recording {
	t.Helper()
	r := &recording{clear: map[int][]byte{}}
	w := newSecureWorld(t, simlink.Config{Seed: seed, Delay: 5 * time.Microsecond, Loss: 0.05, Reorder: 0.1}, Limits{}, frequent, 0)
	w.keyLog = &r.log
	var sealed [][]byte // by counter of all packets; a packet leaves after it was sealed
	w.model.show = func(header, plaintext []byte) { sealed = append(sealed, slices.Concat(header, plaintext)) }
	for _, addr := range ends4 {
		w.addNode(addr)
	}
	for i, n := range w.nodes {
		w.tap(n, &tap{show: func(b []byte) {
			at := slices.IndexFunc(sealed, func(s []byte) bool { return bytes.Equal(s[:proto.HeaderSize], b[:proto.HeaderSize]) })
			if at >= 0 {
				r.clear[len(r.packets)] = sealed[at]
				sealed = slices.Delete(sealed, at, at+1)
			}
			r.packets = append(r.packets, datagram{from: ends4[i], to: ends4[1-i], payload: b})
		}})
	}
	for range 2 {
		ca, cb := w.pair(plain)
		w.rounds(ca, cb, 8)
		r.phases, _ = ca.keys.Phases()
		if err := w.nodes[0].eng.Disconnect(ca, true); err != nil {
			t.Fatal(err)
		}
		w.until("the end", 10*time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
		w.run(2 * time.Second)
		w.want(w.nodes[0].connect, KindDisconnected)
		w.want(w.nodes[1].connect, KindDisconnected)
	}
	if len(sealed) != 0 || r.phases < 3 || len(r.clear) < 400 {
		t.Fatalf("%d sealed packets did not leave, %d key updates, %d sealed packets", len(sealed), r.phases, len(r.clear))
	}
	r.reorder()
	return r
}

// reorder exchanges neighbours, as if the network before the capture did.
func (r *recording) reorder() {
	for i := 1; i < len(r.packets); i++ {
		if r.clear[i-1] != nil && r.clear[i] != nil && r.packets[i-1].from == r.packets[i].from {
			r.packets[i-1], r.packets[i] = r.packets[i], r.packets[i-1]
			r.clear[i-1], r.clear[i] = r.clear[i], r.clear[i-1]
			i++
		}
	}
}

// keyLog writes a key log, and returns the arguments that make tshark use it.
func keyLog(t *testing.T, text string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-o", "datxdp.keylog:" + name}
}

// bare returns items without their places, and without those that only a packet in plaintext mode has, or a sealed one.
func bare(all []item, without ...string) (some []item) {
	for _, i := range all {
		if !slices.Contains(without, i.Name) {
			some = append(some, item{Name: i.Name, Size: i.Size, Value: i.Value})
		}
	}
	return some
}

// With a key log, Wireshark must show in every sealed packet what the engine has sealed, while keys change.
func TestDissectorOpens(t *testing.T) {
	for _, tc := range []struct {
		name string
		seed uint64
		args []string
	}{{"IK", 4, nil}, {"NNpsk0, two passes", 6, []string{"-2"}}} {
		t.Run(tc.name, func(t *testing.T) {
			r := recordSecure(t, tc.seed)
			r.compare(t, dissect(t, r.packets, append(keyLog(t, "# a comment\n"+r.log.String()), tc.args...)...))
		})
	}
}

func (r *recording) compare(t *testing.T, packets []pdmlPacket) {
	t.Helper()
	bad := 0
	for i, p := range packets {
		clear := r.clear[i]
		if clear == nil {
			continue
		}
		want := bare(read(withCRC(clear)), "tag", "crc", "crc.good")
		got := bare(p.items(), "counter", "sealed", "sealed.phase", "sealed.counter", "seal")
		if !slices.Equal(want, got) {
			if t.Errorf("packet %d: engine (-), tshark (+):\n%s", i+1, cmp.Diff(want, got)); bad == 3 {
				t.FailNow()
			}
			bad++
		}
	}
}

// pipe returns the name of a pipe. If something waits for a writer of the pipe 20 s later, the test fails.
func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", name).CombinedOutput(); err != nil {
		t.Skipf("mkfifo: %v: %s", err, out)
	}
	end := time.AfterFunc(20*time.Second, func() {
		if f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			t.Error("tshark waits for a writer of the pipe")
			_ = os.Remove(name)
			_ = f.Close()
		}
	})
	t.Cleanup(func() { end.Stop() })
	return name
}

// Without a key log, with the log of other connections, and without a regular file, sealed packets are shown as such. With a
// wrong secret of a direction, the packets of this direction do not open.
func TestDissectorWithoutKeys(t *testing.T) {
	r := recordSecure(t, 4)
	file := writeCapture(t, r.packets)
	wrong := regexp.MustCompile(`(?m)^(DATXDP2_SERVER .*) [0-9a-f]{64}$`).ReplaceAllString(r.log.String(), "$1 "+strings.Repeat("5a", 32))
	other := regexp.MustCompile(`(?m)^(DATXDP2_\w+ [0-9a-f]+) [0-9a-f]{8}`).ReplaceAllString(r.log.String(), "$1 12345678")
	cut := r.log.String()[:strings.Index(r.log.String(), "\n")-1]
	for name, tc := range map[string]struct {
		args       []string
		up, toward bool // which directions are said not to open: to the server, to the requester
	}{
		"no key log":        {nil, false, false},
		"no such file":      {[]string{"-o", "datxdp.keylog:/no/such/file"}, false, false},
		"a directory":       {[]string{"-o", "datxdp.keylog:/"}, false, false},
		"a device":          {[]string{"-o", "datxdp.keylog:/dev/zero"}, false, false},
		"a pipe":            {[]string{"-o", "datxdp.keylog:" + pipe(t)}, false, false},
		"others":            {keyLog(t, other), false, false},
		"an unfinished log": {keyLog(t, cut), false, false},
		"wrong secret":      {keyLog(t, wrong), false, true},
	} {
		for i, line := range summary(t, file, tc.args...) {
			if r.clear[i] == nil {
				continue
			}
			up := r.packets[i].from == ends4[0]
			refused := up && tc.up || !up && tc.toward
			opened := name == "wrong secret" && up
			if strings.Contains(line, "sealed=") == opened || strings.Contains(line, "[does not open]") != refused {
				t.Errorf("%s, packet %d: %s", name, i+1, line)
			}
		}
	}
}
