package wire

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/rtt"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// documentTable returns the rows of a table in docs/WIRE.md. The table is the first one with the given header line
// after the given heading.
func documentTable(t *testing.T, heading, header string) [][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+heading+"\n")
	if found {
		_, rest, found = strings.Cut(rest, "\n"+header+"\n")
	}
	if !found {
		t.Fatalf("docs/WIRE.md has no table %q under %q", header, heading)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows[1:]
}

// place returns the range of bytes that a field changes: "4–7", "1", or "40–" up to the end.
func place(zero, set []byte) string {
	if len(set) > len(zero) {
		return fmt.Sprintf("%d–", len(zero))
	}
	first, last := -1, -1
	for i := range zero {
		if zero[i] != set[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d–%d", first, last)
}

// checkLayout compares the documented byte ranges of a structure with its encoding. The argument rows has the rows of
// the table in the document, each with a byte range and a field name. The argument zero is the encoding with all fields
// zero. For each field name, the map set has the encoding with only that field set. The bytes that differ between the
// two encodings must be the byte range of the field in the table. The table must have a row for every field. A row with
// the name 0 is for bytes that belong to no field.
func checkLayout(t *testing.T, rows [][]string, zero []byte, set map[string][]byte) {
	t.Helper()
	next := 0
	for _, row := range rows {
		name := row[1]
		var first, last int
		switch n, _ := fmt.Sscanf(row[0], "%d–%d", &first, &last); n {
		case 0:
			t.Errorf("%q is no range of bytes", row[0])
		case 1:
			last = first
		}
		if first != next {
			t.Errorf("%s begins at %d, the row before ends at %d", name, first, next)
		}
		next = last + 1
		if name == "0" {
			continue
		}
		b, ok := set[name]
		if !ok {
			t.Errorf("the codec has no field %q", name)
			continue
		}
		delete(set, name)
		if got := place(zero, b); got != row[0] {
			t.Errorf("%s is at %s, the document says %s", name, got, row[0])
		}
	}
	for name := range set {
		t.Errorf("the document has no row %q", name)
	}
}

func TestDocumentHeader(t *testing.T) {
	put := func(h proto.Header) []byte {
		b := make([]byte, proto.HeaderSize)
		h.Put(b)
		return b
	}
	set := map[string][]byte{
		"version, type": put(proto.Header{Type: 0xf}),
		"flags":         put(proto.Header{Flags: 0xff}),
		"CE":            put(proto.Header{CE: 0xffff}),
		"CID":           put(proto.Header{CID: ^uint32(0)}),
		"PSN":           put(proto.Header{PSN: ^seq.Num(0)}),
		"ack":           put(proto.Header{Ack: ^seq.Num(0)}),
		"credit":        put(proto.Header{Credit: ^seq.Num(0)}),
		"TS":            put(proto.Header{TS: ^uint32(0)}),
		"echo":          put(proto.Header{Echo: ^uint32(0)}),
		"tag":           put(proto.Header{Tag: ^uint32(0)}),
		"body":          append(put(proto.Header{}), 1),
	}
	rows := documentTable(t, "## Packet", "| bytes | field | meaning |")
	last := rows[len(rows)-1]
	if want := fmt.Sprintf("last %d", proto.TrailerSize); last[0] != want {
		t.Errorf("the trailer is %q, want %q", last[0], want)
	}
	checkLayout(t, rows[:len(rows)-1], put(proto.Header{}), set)
	if want := fmt.Sprintf("version (%d) in the upper four bits", proto.Version); !strings.Contains(rows[0][2], want) {
		t.Errorf("%q is not %q", rows[0][2], want)
	}
	if want := fmt.Sprintf("units of %d ns", 1<<clock.StampShift); !strings.Contains(rows[7][2], want) {
		t.Errorf("%q is not in %q", rows[7][2], want)
	}
}

func TestDocumentHello(t *testing.T) {
	put := func(h proto.Hello) []byte {
		b := make([]byte, h.Size())
		h.Put(b)
		clear(b[proto.HelloSize-4 : proto.HelloSize]) // the lengths have rows of their own
		return b
	}
	zero := put(proto.Hello{})
	length := func(at int) []byte { b := slices.Clone(zero); b[at], b[at+1] = 1, 1; return b }
	options, private := length(48), length(50)
	for name, b := range map[string][]byte{
		"options":      slices.Concat(options[:48], []byte{1, 0}, zero[50:], []byte{9, 254}, make([]byte, 254)),
		"private data": slices.Concat(private, make([]byte, 1<<8+1)),
	} {
		if h := new(proto.Hello); !h.Parse(b) {
			t.Errorf("the length of the %s is elsewhere", name)
		}
	}
	rows := documentTable(t, "### Hello", "| bytes | field | meaning |")
	checkLayout(t, rows, zero, map[string][]byte{
		"CID":                   put(proto.Hello{CID: ^uint32(0)}),
		"tag":                   put(proto.Hello{Tag: ^uint32(0)}),
		"MTU":                   put(proto.Hello{MTU: ^uint32(0)}),
		"window":                put(proto.Hello{Window: ^uint16(0)}),
		"reads served":          put(proto.Hello{ReadIn: ^uint16(0)}),
		"reads wanted":          put(proto.Hello{ReadOut: ^uint16(0)}),
		"reason":                put(proto.Hello{Reason: 0xff}),
		"capabilities":          put(proto.Hello{Capabilities: ^uint32(0)}),
		"qualifier":             put(proto.Hello{Qual: ^uint64(0)}),
		"port":                  put(proto.Hello{Port: ^uint64(0)}),
		"cookie":                put(proto.Hello{Cookie: ^uint64(0)}),
		"options length":        options,
		"private length":        private,
		"options, private data": put(proto.Hello{UDPPort: 1, Private: []byte{1}}),
	})
	for row, want := range map[int]string{
		len(rows) - 3: fmt.Sprintf("at most %d", proto.MaxOptions),
		len(rows) - 2: fmt.Sprintf("at most %d", proto.MaxPrivateData),
	} {
		if !strings.HasSuffix(rows[row][2], want) {
			t.Errorf("%q is not in %q", want, rows[row][2])
		}
	}
}

func TestDocumentOptions(t *testing.T) {
	rows := documentTable(t, "### Hello", "| type | | length | value |")
	if len(rows) != 2 {
		t.Fatalf("%d options, want 2", len(rows))
	}
	h := proto.Hello{UDPPort: 0x1234}
	b := make([]byte, h.Size())
	h.Put(b)
	o := b[proto.HelloSize:]
	if want := []string{fmt.Sprintf("0x%02x", o[0]), "UDP port", fmt.Sprint(o[1])}; !slices.Equal(rows[0][:3], want) || len(o) != 2+int(o[1]) {
		t.Errorf("%v, want %v", rows[0], want)
	}
	var typ byte
	if _, err := fmt.Sscanf(rows[1][0], "0x%02x", &typ); err != nil {
		t.Fatal(err)
	}
	if !h.Parse(withOptions(typ, 0)) || h.Refused != typ {
		t.Errorf("%v is understood, or may be skipped", rows[1])
	}
}

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

func TestDocumentGoodbye(t *testing.T) {
	put := func(g proto.Goodbye) []byte {
		b := make([]byte, proto.GoodbyeSize)
		g.Put(b)
		return b
	}
	rows := documentTable(t, "### Goodbye", "| bytes | field | meaning |")
	checkLayout(t, rows, put(proto.Goodbye{}), map[string][]byte{
		"CID":    put(proto.Goodbye{CID: ^uint32(0)}),
		"number": put(proto.Goodbye{Num: ^uint32(0)}),
		"reason": put(proto.Goodbye{Reason: 0xff}),
		"op":     put(proto.Goodbye{Op: 0xff}),
	})
	if want := fmt.Sprintf("–%d", proto.GoodbyeSize-1); !strings.HasSuffix(rows[len(rows)-1][0], want) {
		t.Errorf("a Goodbye ends at %s, want %s", rows[len(rows)-1][0], want)
	}
}

func TestDocumentChunks(t *testing.T) {
	type fields map[string]proto.Chunk
	want := map[string]struct {
		op     proto.Op
		fields fields
	}{
		"Ready": {proto.OpReady, fields{}},
		"Send":  {proto.OpSend, fields{"message number": {Num: ^seq.Num(0)}, "offset in the message": {Off: ^uint32(0)}}},
		"Write": {proto.OpWrite, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}}},
		"ReadReq": {proto.OpReadReq, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}, "length": {Size: ^uint32(0)},
			"read number": {Num: ^seq.Num(0)}}},
		"WriteImm": {proto.OpWriteImm, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}, "message number": {Num: ^seq.Num(0)},
			"offset in the write": {Off: ^uint32(0)}, "immediate data": {Imm: ^uint32(0)}}},
		"AtomicReq": {proto.OpAtomicReq, fields{"key": {Key: ^uint32(0)}, "address": {Addr: ^uint64(0)}, "read number": {Num: ^seq.Num(0)},
			"operand": {Value: ^uint64(0)}, "comparand": {Comp: ^uint64(0)}}},
		"AtomicResp": {proto.OpAtomicResp, fields{"read number": {Num: ^seq.Num(0)}, "old value": {Value: ^uint64(0)}}},
		"ReadResp":   {proto.OpReadResp, fields{"read number": {Num: ^seq.Num(0)}, "offset in the read": {Off: ^uint32(0)}}},
		"SendOnly":   {proto.OpSendOnly, fields{}},
		"SendInv": {proto.OpSendInv, fields{"message number": {Num: ^seq.Num(0)}, "offset in the message": {Off: ^uint32(0)},
			"key": {Key: ^uint32(0)}}},
	}
	for _, row := range documentTable(t, "### Chunks", "| op | | after the first 4 bytes | payload |") {
		w, ok := want[row[1]]
		if !ok || row[0] != fmt.Sprint(w.op) {
			t.Errorf("op %s is %s?", row[0], row[1])
			continue
		}
		delete(want, row[1])
		b := bytes.Repeat([]byte{0}, proto.ChunkSize(byte(w.op)))
		b[0] = byte(w.op)
		at := 4
		for _, f := range strings.Split(row[2], ", ") {
			if f == "–" {
				break
			}
			name, width, _ := strings.Cut(strings.TrimSuffix(f, ")"), " (")
			n, _ := strconv.Atoi(width)
			set := slices.Clone(b)
			copy(set[at:at+n], bytes.Repeat([]byte{0xff}, n))
			var c proto.Chunk
			c.Parse(set)
			c.Op = 0
			if c != w.fields[name] {
				t.Errorf("%s: setting bytes %d–%d gives %+v, want %s", row[1], at, at+n-1, c, name)
			}
			delete(w.fields, name)
			at += n
		}
		if at != len(b) || len(w.fields) > 0 {
			t.Errorf("%s: %d bytes, want %d; missing are %v", row[1], at, len(b), w.fields)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// checkNames compares a documented table of numbers and names with the constants.
func checkNames[T fmt.Stringer](t *testing.T, rows [][]string, want map[string]T) {
	t.Helper()
	for _, row := range rows {
		if n, ok := want[row[1]]; !ok || row[0] != n.String() {
			t.Errorf("%s is %s?", row[1], row[0])
		}
		delete(want, row[1])
	}
	for name, n := range want {
		t.Errorf("the document has no %s, %v", name, n)
	}
}

type dec int

func (d dec) String() string { return strconv.Itoa(int(d)) }

type hexByte int

func (h hexByte) String() string { return fmt.Sprintf("0x%02x", int(h)) }

func TestDocumentNames(t *testing.T) {
	types := map[string]dec{"Data": dec(proto.Data), "Ack": dec(proto.Ack), "Connect": dec(proto.Connect),
		"Accept": dec(proto.Accept), "Reject": dec(proto.Reject), "Close": dec(proto.Close), "Closed": dec(proto.Closed),
		"Reset": dec(proto.Reset), "Challenge": dec(proto.Challenge), "Probe": dec(proto.Probe), "Probed": dec(proto.Probed), "Versions": dec(proto.Versions)}
	known := 0
	for i := range proto.Type(16) {
		b := make([]byte, proto.HeaderSize)
		(&proto.Header{Type: i}).Put(b)
		if new(proto.Header).Parse(b) {
			known++
		}
	}
	if known != len(types) {
		t.Errorf("the codec knows %d types", known)
	}
	checkNames(t, documentTable(t, "## Packet", "| type | | body |"), types)
	checkNames(t, documentTable(t, "## Packet", "| flag | | meaning |"), map[string]hexByte{
		"AckRequest": hexByte(proto.AckRequest), "HasSACK": hexByte(proto.HasSACK), "KeyPhase": hexByte(proto.KeyPhase),
		"Epoch": hexByte(proto.Epoch), "NoCredit": hexByte(proto.NoCredit), "EpochSeen": hexByte(proto.EpochSeen),
		"NotReady": hexByte(proto.NotReady), "SourcePort": hexByte(proto.SourcePort)})

	// Each reason must complete the request of the active side with the documented status.
	status := map[Status]string{StatusRemoteAccess: "REMOTE_ACCESS", StatusRemoteResponder: "REMOTE_RESPONDER",
		StatusNotReady: "RECEIVER_NOT_READY", StatusBadResponse: "BAD_RESPONSE", StatusTransport: "TRANSPORT", StatusFlushed: "–"}
	const header = "| reason | | initiator's status of the operation that failed |"
	rows := documentTable(t, "### Goodbye", header)
	if len(rows) != int(proto.ReasonPort)+1 {
		t.Errorf("%d reasons, want %d", len(rows), proto.ReasonPort+1)
	}
	for i, row := range rows {
		got := status[blamed(t, proto.Reason(i))]
		if row[0] != strconv.Itoa(i) || row[2] != got {
			t.Errorf("row %v: reason %d gives status %s", row, i, got)
		}
	}
}

// blamed returns the status of a write for which the peer breaks the connection.
func blamed(t *testing.T, why proto.Reason) Status {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	ca, cb := w.pair(plain)
	src, dst := a.memory(8), w.nodes[1].memory(8)
	a.post(ca, ca.PostWrite(src.seg(0, 8), 1, dst.at(0), 0))
	cb.fault(why, proto.OpWrite, 0)
	w.until("the end", time.Second, func() bool { return ca.State() == Closed })
	var c Completion
	if !a.request.Pop(&c) {
		t.Fatal("no completion")
	}
	return c.Status
}

// overtaken returns how many packets later a packet must be whose arrival makes a packet count as lost.
func overtaken(t *testing.T) int {
	for gap := 1; gap < 10; gap++ {
		w := newWorld(t, simlink.Config{}, 2)
		a, b := w.nodes[0], w.nodes[1]
		c, _ := w.pair(plain)
		src, dst := a.memory(1<<16), b.memory(1<<16)
		a.post(c, c.PostWrite(src.seg(0, 1<<16), 1, dst.at(0), 0))
		a.eng.Poll(Time(w.net.Now()))
		a.eng.now = a.eng.now.Add(time.Second)
		sack := make([]byte, proto.MaxSACKSize)
		sack[0] = 1 << (gap - 1)
		c.takeAck(&proto.Header{Ack: c.sent.Una}, sack)
		if c.sent.Lost() > 0 {
			return gap
		}
	}
	return 0
}

func TestDocumentNumbers(t *testing.T) {
	var limits Limits
	limits.setDefaults()
	packets := func(n float64) string { return fmt.Sprint(n) + " packets" }
	octets := func(n int) string { return fmt.Sprintf("%d bytes", n) }
	span := func(d time.Duration) string {
		if d >= time.Minute {
			return fmt.Sprintf("%d s", d/time.Second)
		}
		s := d.String()
		for _, unit := range []string{"ms", "µs", "s"} {
			if n, ok := strings.CutSuffix(s, unit); ok {
				return n + " " + unit
			}
		}
		return s
	}
	want := map[string]string{
		"suspension pause":             span(resumeAckPause),
		"accept tries":                 fmt.Sprint(acceptTries),
		"confirm time":                 span(confirmTime),
		"free guesses of a network":    fmt.Sprint(prefixGuesses),
		"network pause":                span(prefixPause),
		"newcomer factor":              fmt.Sprint(newcomerFactor),
		"acknowledge delay":            span(ackDelay),
		"acknowledge every":            packets(ackEvery),
		"loss factor":                  fmt.Sprint(congestion.LossFactor),
		"noise factor":                 fmt.Sprint(congestion.NoiseFactor),
		"base packet":                  octets(basePacket),
		"base period":                  span(congestion.BasePeriod),
		"black-hole timeouts":          fmt.Sprint(blackHoleTries),
		"close retry":                  span(closeRetry),
		"close tries":                  fmt.Sprint(closeTries),
		"cookie life":                  span(cookieLife),
		"credit probe":                 span(creditProbeInterval),
		"credit share":                 fmt.Sprintf("1/%d", creditShare),
		"challenge ACK limit":          span(challengeAckLimit),
		"challenge ACK retry":          span(challengeAckRetry),
		"port report wait":             span(portReportWait),
		"Nagle threshold":              fmt.Sprint(nagleThreshold),
		"first probe timeout":          span(rtt.InitialPTO),
		"initial window":               packets(congestion.InitialWindow),
		"give-up":                      span(limits.GiveUp),
		"half-open requests":           fmt.Sprint(maxHalfOpen),
		"half-open share":              fmt.Sprintf("1/%v", 1/halfOpenShare),
		"half-open share of a network": fmt.Sprintf("1/%v", 1/halfOpenPrefix),
		"connections of a network":     fmt.Sprint(connsPrefix),
		"free guesses":                 fmt.Sprint(freeGuesses),
		"guess decay":                  span(guessDecay),
		"longest guess delay":          span(maxGuessDelay),
		"handshake retry":              span(helloRetry),
		"keep-alive":                   span(limits.KeepAlive),
		"largest window":               packets(maxWindow),
		"smallest congestion window":   fmt.Sprintf("1/%v packet", 1/congestion.MinWindow),
		"listen grace":                 span(limits.ListenGrace),
		"longest busy timeout":         span(busyRTO),
		"longest handshake retry":      span(helloRetryMax),
		"longest RNR delay":            span(rnrDelayMax),
		"longest timeout":              span(maxRTO),
		"not ready":                    span(limits.NotReady),
		"outlier bound":                fmt.Sprint(rtt.Outlier),
		"probe tries":                  fmt.Sprint(pmtu.Tries),
		"prompt challenges":            fmt.Sprint(promptChallenges),
		"reordering":                   packets(float64(overtaken(t))),
		"reply period":                 span(replyPeriod),
		"stateless replies":            fmt.Sprint(replyBurst),
		"partial packet room":          octets(smallOp + proto.MaxChunkSize),
		"search again":                 span(pmtu.Again),
		"shortest probe timeout":       span(rtt.MinPTO),
		"shortest RNR delay":           span(rnrDelayMin),
		"shortest timeout":             span(minRTO),
		"small operation":              octets(smallOp),
		"smallest window":              packets(minPeerWindow),
		"suspension":                   span(suspendTime),
		"delay floor":                  packets(congestion.DelayFloor),
		"shared message rate":          octets(fairqueue.MinRate) + "/s",
		"progress timeout":             span(fairqueue.ProgressTimeout),
		"slow message":                 span(fairqueue.SlowMessage),
		"slow time":                    span(fairqueue.SlowTime),
		"proven time":                  span(fairqueue.ProvenTime),
		"proven turns":                 fmt.Sprint(fairqueue.ProvenTurns),
	}
	text, err := os.ReadFile("../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range documentTable(t, "## Numbers", "| number | value |") {
		if row[1] != want[row[0]] {
			t.Errorf("%s is %q, want %q", row[0], row[1], want[row[0]])
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), "*"+row[0]+"*") {
			t.Errorf("the text does not use %s", row[0])
		}
		delete(want, row[0])
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	wantNames := [][]string{
		{"CID", fmt.Sprintf("%d bits", engineBits), fmt.Sprintf("%d bits", genBits), fmt.Sprintf("%d bits", slotBits)},
		{"remote key", "–", fmt.Sprintf("%d bits", 32-regionBits), fmt.Sprintf("%d bits", regionBits)},
	}
	if got := documentTable(t, "## Names and keys", "| | engine | generation | slot |"); !slices.EqualFunc(got, wantNames, slices.Equal) {
		t.Errorf("names are %v, want %v", got, wantNames)
	}
	const usual = len(pmtu.Usual) - 1
	for _, phrase := range []string{
		fmt.Sprintf("whose MTU is below %d", minPacket),
		fmt.Sprintf("A SACK block has %d to %d bytes, a multiple of %d", proto.SACKSize(0), proto.MaxSACKSize, proto.SACKWord),
		fmt.Sprintf("covers up to %d packets", proto.MaxWindow),
		fmt.Sprintf("PSN is at most %d before or after the expected one", proto.MaxWindow),
		fmt.Sprintf("at most %d before the next PSN of this end", 2*proto.MaxWindow),
		fmt.Sprintf("less than %d packets ahead", proto.MaxWindow),
		fmt.Sprintf("The PSN is at most %d before the oldest", proto.MaxWindow),
		fmt.Sprintf("The header is %d bytes long", proto.HeaderSize),
		fmt.Sprintf("Connect is type %d, Versions is type %d", proto.Connect, proto.Versions),
		fmt.Sprintf("if the Connect has at least %d bytes", proto.HeaderSize+8+proto.TrailerSize),
		fmt.Sprintf("size of the Probe that arrived (%d)", proto.ProbedSize),
		fmt.Sprintf("next smaller of %s and %d bytes", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(pmtu.Usual[:usual])), ", "), "[]"),
			pmtu.Usual[usual]),
		fmt.Sprintf("Flag 0x%02x marks the last piece", uint8(proto.Last)),
		fmt.Sprintf("0x%02x on Send, SendInv, WriteImm and SendOnly asks for a notification", uint8(proto.Solicited)),
		fmt.Sprintf("0x%02x on AtomicReq makes it a compare and swap", uint8(proto.Compare)),
		fmt.Sprintf("at most 2^31 − %d bytes", 1<<31-maxOperation),
	} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), phrase) {
			t.Errorf("docs/WIRE.md does not say %q", phrase)
		}
	}
}
