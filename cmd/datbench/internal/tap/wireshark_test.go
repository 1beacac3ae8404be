package tap

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// tool runs a Wireshark program without the user's configuration.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: capture files are not opened with it", name)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "WIRESHARK_CONFIG_DIR="+t.TempDir(), "LC_ALL=C", "TZ=UTC")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "Running as user") {
			t.Errorf("%s says: %s", name, line)
		}
	}
	return stdout.String()
}

// conversation returns a capture of two packets: a request of two frames and its answer, captured at addrs[0]. It then
// adds one packet with a known time.
func conversation(t *testing.T, addrs [2]netip.AddrPort, at time.Time) string {
	t.Helper()
	var file bytes.Buffer
	pcap, err := NewPcap(&file)
	if err != nil {
		t.Fatal(err)
	}
	n := simlink.New(simlink.Config{Immediate: true, FrameSize: 20, Segments: 100})
	a, b := pcap.Tap(n.Link(addrs[0])), n.Link(addrs[1])
	p, err := a.Resolve(addrs[1], 0)
	if err != nil {
		t.Fatal(err)
	}
	bufs := make([]link.Buf, 100)
	a.Alloc(bufs[:2])
	for i, text := range []string{"question of two ", "frames"} {
		bufs[i].Data, bufs[i].Path = bufs[i].Data[:copy(bufs[i].Data, text)], p
	}
	bufs[0].Flags = link.More
	a.Send(bufs[:2])
	b.Free(bufs[:b.Recv(bufs)])
	back, err := b.Resolve(addrs[0], 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Alloc(bufs[:1])
	bufs[0].Data, bufs[0].Path = bufs[0].Data[:copy(bufs[0].Data, "answer")], back
	b.Send(bufs[:1])
	a.Free(bufs[:a.Recv(bufs)])

	marked := record{from: addrs[1], to: addrs[0], marked: true, payload: []byte("marked")}
	if err := marked.build(pcap.frame); err != nil {
		t.Fatal(err)
	}
	if err := pcap.blocks.packet(at, flagInbound, pcap.frame.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := pcap.Flush(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "capture.pcapng")
	if err := os.WriteFile(name, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestWireshark opens a capture with capinfos and tshark. It checks both directions, times in nanoseconds, headers and
// checksums.
func TestWireshark(t *testing.T) {
	for _, tt := range []struct {
		name, network, ecn string
		addrs              [2]netip.AddrPort
	}{
		{"IPv4", "ip", "ip.dsfield.ecn", [2]netip.AddrPort{addrA, addrB}},
		{"IPv6", "ipv6", "ipv6.tclass.ecn", [2]netip.AddrPort{netip.MustParseAddrPort("[fd00::1]:17473"), netip.MustParseAddrPort("[fd00::2]:17473")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := time.Unix(1_700_000_000, 123_456_789)
			before := time.Now()
			file := conversation(t, tt.addrs, at)
			checkInfos(t, tool(t, "capinfos", file))

			fields := []string{"-n", "-r", file, "-T", "fields", "-E", "occurrence=f", "-o", "udp.check_checksum:TRUE",
				"-o", "ip.check_checksum:TRUE"}
			for _, f := range []string{"frame.time_epoch", "frame.packet_flags_direction", tt.network + ".src", tt.network + ".dst",
				"udp.srcport", "udp.dstport", tt.ecn, "udp.checksum.status", "_ws.expert.message", "udp.payload"} {
				fields = append(fields, "-e", f)
			}
			from, to := tt.addrs[0].Addr().String(), tt.addrs[1].Addr().String()
			text := func(s string) string { return hex.EncodeToString([]byte(s)) }
			want := [][]string{
				{"2", from, to, "17473", "17473", "2", "1", "", text("question of two frames")},
				{"1", to, from, "17473", "17473", "2", "1", "", text("answer")},
				{"1", to, from, "17473", "17473", "3", "1", "", text("marked")},
			}
			var got [][]string
			var times []string
			for line := range strings.Lines(tool(t, "tshark", fields...)) {
				cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				cells[1] = cells[1][len(cells[1])-1:] // a hexadecimal number, whose width depends on the version
				times = append(times, cells[0])
				got = append(got, cells[1:])
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("fields (-want, +got):\n%s", d)
			}
			if times[2] != "1700000000.123456789" {
				t.Errorf("time is %s", times[2])
			}
			checkTimes(t, times[:2], before)
		})
	}
}

func checkInfos(t *testing.T, infos string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(infos) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch strings.TrimSpace(key) {
		case "File type", "File encapsulation", "File timestamp precision", "Number of packets", "Number of interfaces in file":
			got = append(got, strings.TrimSpace(value))
		}
	}
	want := []string{"Wireshark/... - pcapng", "Ethernet", "nanoseconds (9)", "3", "1"}
	if !slices.Equal(got, want) {
		t.Errorf("capinfos says %q, want %q; all of it:\n%s", got, want, infos)
	}
}

// checkTimes checks that times, in seconds since 1970, lie in the expected interval.
func checkTimes(t *testing.T, times []string, before time.Time) {
	t.Helper()
	last := before.Round(0) // only the wall clock
	for _, s := range times {
		d, err := time.ParseDuration(s + "s")
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(0, 0).Add(d)
		if at.Before(last) || time.Since(at) > time.Minute {
			t.Errorf("time is %v, want one after %v", at, last)
		}
		last = at
	}
}
