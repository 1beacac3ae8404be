package wire

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/congestion"
	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/rtt"
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
	if len(rows) != int(proto.ReasonProhibited)+1 {
		t.Errorf("%d reasons, want %d", len(rows), proto.ReasonProhibited+1)
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
	cb.breakOnFault(why, proto.OpWrite, 0)
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
		"gain":                         fmt.Sprint(congestion.Gain),
		"longest queue":                span(congestion.MaxQueue),
		"mark delay":                   span(congestion.MarkDelay),
		"paced window":                 packets(congestion.PacedWindow),
		"paced path":                   span(congestion.PacedPath),
		"largest burst":                octets(congestion.MaxBurst),
		"noise packets":                packets(congestion.NoisePackets),
		"noise share":                  fmt.Sprintf("1/%v", congestion.NoiseShare),
		"base packet":                  octets(basePacket),
		"close retry":                  span(closeRetry),
		"close tries":                  fmt.Sprint(closeTries),
		"closed connections":           fmt.Sprint(maxClosedConns),
		"time-wait":                    span(timeWait),
		"cookie life":                  span(cookieLife),
		"credit probe":                 span(creditProbeInterval),
		"credit share":                 fmt.Sprintf("1/%d", creditShare),
		"challenge ACK limit":          span(challengeAckLimit),
		"challenge ACK retry":          span(challengeAckRetry),
		"port report wait":             span(portReportWait),
		"Nagle threshold":              fmt.Sprint(nagleThreshold),
		"first probe timeout":          span(rtt.InitialPTO),
		"initial window":               packets(congestion.InitialPackets),
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
		"least longest timeout":        span(minBackoff),
		"silent interval":              span(silentInterval),
		"longest handshake retry":      span(helloRetryMax),
		"longest RNR delay":            span(rnrDelayMax),
		"longest timeout":              span(maxRTO),
		"abandoned wait":               span(abandonedWait),
		"lost accept wait":             span(lostAcceptWait),
		"not ready":                    span(limits.NotReady),
		"outlier bound":                fmt.Sprint(rtt.Outlier),
		"probe tries":                  fmt.Sprint(pmtu.Tries),
		"prompt challenges":            fmt.Sprint(promptChallenges),
		"reordering":                   packets(float64(overtaken(t))),
		"reply period":                 span(replyPeriod),
		"stateless replies":            fmt.Sprint(replyBurst),
		"partial packet room":          octets(smallOp + proto.MaxChunkSize),
		"search again":                 span(pmtu.Again),
		"first search again":           span(pmtu.AgainMin),
		"test tries":                   fmt.Sprint(pmtu.VerifyTries),
		"test interval":                span(pmtu.VerifyEvery),
		"shortest probe timeout":       span(rtt.MinPTO),
		"shortest RNR delay":           span(rnrDelayMin),
		"shortest timeout":             span(minRTO),
		"small operation":              octets(smallOp),
		"smallest window":              packets(minPeerWindow),
		"suspension":                   span(suspendTime),
		"delay floor":                  fmt.Sprintf("1/%v packet", 1/congestion.DelayFloor),
		"shared message rate":          octets(fairqueue.MinRate) + "/s",
		"progress timeout":             span(fairqueue.ProgressTimeout),
		"slow message":                 span(fairqueue.SlowMessage),
		"slow time":                    span(fairqueue.SlowTime),
		"proven time":                  span(fairqueue.ProvenTime),
		"push-out wait":                span(fairqueue.PushOutWait),
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
	checkPhrases(t, []string{
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
	})
}

// checkPhrases checks that docs/WIRE.md has every phrase.
func checkPhrases(t *testing.T, phrases []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/WIRE.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, phrase := range phrases {
		if !strings.Contains(words, phrase) {
			t.Errorf("docs/WIRE.md does not say %q", phrase)
		}
	}
}
