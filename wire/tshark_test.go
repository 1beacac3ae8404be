package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const dissector = "../docs/datxdp.lua"

// writeCapture writes a pcap file of IP packets.
func writeCapture(t *testing.T, packets []datagram) string {
	t.Helper()
	le, be := binary.LittleEndian, binary.BigEndian
	out := le.AppendUint32(nil, 0xa1b23c4d) // pcap, nanoseconds
	out = le.AppendUint32(out, 4<<16|2)     // version 2.4
	out = append(out, make([]byte, 8)...)
	out = le.AppendUint32(le.AppendUint32(out, 1<<18), 101) // snap length, LINKTYPE_RAW
	for i, p := range packets {
		size := len(p.payload) + 8
		var ip []byte
		if p.from.Addr().Is4() {
			ip = be.AppendUint16([]byte{0x45, 2}, uint16(20+size))
			ip = append(ip, 0, 0, 0x40, 0, 64, 17, 0, 0)
		} else {
			ip = be.AppendUint16([]byte{0x60, 0x20, 0, 0}, uint16(size))
			ip = append(ip, 17, 64)
		}
		ip = append(append(ip, p.from.Addr().AsSlice()...), p.to.Addr().AsSlice()...)
		ip = be.AppendUint16(be.AppendUint16(ip, p.from.Port()), p.to.Port())
		ip = be.AppendUint16(be.AppendUint16(ip, uint16(size)), 0xffff)
		ip = append(ip, p.payload...)
		out = le.AppendUint32(le.AppendUint32(out, 1), uint32(i))
		out = le.AppendUint32(le.AppendUint32(out, uint32(len(ip)-p.cut)), uint32(len(ip)))
		out = append(out, ip[:len(ip)-p.cut]...)
	}
	name := filepath.Join(t.TempDir(), "capture.pcap")
	if err := os.WriteFile(name, out, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// tshark runs tshark with our dissector only. A Lua error fails the test.
func tshark(t *testing.T, file string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("no tshark: the Wireshark dissector is not tested")
	}
	if _, err := os.ReadFile(dissector); err != nil { // also tells go test that the result depends on this file
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"-n", "-X", "lua_script:" + dissector, "-r", file}, args...)...)
	cmd.Env = append(os.Environ(), "WIRESHARK_CONFIG_DIR="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("tshark: %v\n%s", err, &stderr)
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "Running as user") {
			t.Errorf("tshark says: %s", line)
		}
	}
	if i := bytes.Index(stdout.Bytes(), []byte("Lua Error")); i >= 0 {
		t.Fatalf("tshark: %s", stdout.Bytes()[i:min(i+300, stdout.Len())])
	}
	return stdout.Bytes()
}

// item is a field as tshark shows it: its place in the UDP payload, and its value in hexadecimal.
type item struct {
	Name      string
	Pos, Size int
	Value     string
}

// pdmlField is an element of PDML, the XML of tshark.
type pdmlField struct {
	Name     string      `xml:"name,attr"`
	ShowName string      `xml:"showname,attr"`
	Show     string      `xml:"show,attr"`
	Value    string      `xml:"value,attr"`
	Pos      int         `xml:"pos,attr"`
	Size     int         `xml:"size,attr"`
	Fields   []pdmlField `xml:"field"`
}

type pdmlPacket struct {
	Protos []pdmlField `xml:"proto"`
}

// dissect returns what tshark shows of each packet of a capture.
func dissect(t *testing.T, packets []datagram, args ...string) []pdmlPacket {
	t.Helper()
	var doc struct {
		Packets []pdmlPacket `xml:"packet"`
	}
	out := tshark(t, writeCapture(t, packets), append([]string{"-T", "pdml", "-J", "datxdp"}, args...)...)
	if err := xml.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Packets) != len(packets) {
		t.Fatalf("tshark saw %d packets of %d", len(doc.Packets), len(packets))
	}
	return doc.Packets
}

// items returns our protocol's fields of one packet in order, nested ones included.
func (p *pdmlPacket) items() []item {
	var all []item
	for _, pr := range p.Protos {
		if pr.Name == "datxdp" {
			for i := range pr.Fields {
				all = pr.Fields[i].items(all, pr.Pos)
			}
		}
	}
	return all
}

func (f *pdmlField) items(all []item, start int) []item {
	if name, ours := strings.CutPrefix(f.Name, "datxdp."); ours {
		all = append(all, f.item(name, start))
	}
	for i := range f.Fields {
		all = f.Fields[i].items(all, start)
	}
	return all
}

func (f *pdmlField) item(name string, start int) item {
	switch name {
	case "crc.good", "crc.bad", "malformed", "cut", "ended", "unopened": // expert items have no place in the packet
		return item{Name: name}
	case "sack", "chunk.payload", "hello.private", "hello.option.value", "hello.option.server_key", "hello.option.key_id",
		"hello.option.head", "probe.padding", "body", "sealed", "seal":
		return item{name, f.Pos - start, f.Size, f.Value}
	case "chunk", "hello", "hello.option", "goodbye":
		return item{name, f.Pos - start, f.Size, ""}
	}
	n, err := strconv.ParseUint(strings.NewReplacer("True", "1", "False", "0").Replace(f.Show), 0, 64)
	if err != nil {
		return item{name, f.Pos - start, f.Size, f.Show}
	}
	return item{name, f.Pos - start, f.Size, fmt.Sprint(n)}
}

// summary returns the columns Protocol and Info.
func summary(t *testing.T, file string, args ...string) []string {
	t.Helper()
	var doc struct {
		Packets []struct {
			Sections []string `xml:"section"`
		} `xml:"packet"`
	}
	if err := xml.Unmarshal(tshark(t, file, append([]string{"-T", "psml"}, args...)...), &doc); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range doc.Packets { // No., Time, Source, Destination, Protocol, Length, Info
		lines = append(lines, p.Sections[4]+": "+strings.TrimSpace(p.Sections[6]))
	}
	return lines
}
