package wire

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
)

// alone returns the places that a single address gets if its threshold is share times the free places.
func alone(share float64, places int) int {
	return int(math.Ceil(share * float64(places) / (1 + share)))
}

// TestSecurityNumbers compares the bounds and the strength of secrets in docs/SECURITY.md with the constants.
func TestSecurityNumbers(t *testing.T) {
	data, err := os.ReadFile("../docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(data)), " ")
	var limits Limits
	limits.setDefaults()
	span := func(d time.Duration) string {
		if d >= time.Minute {
			return fmt.Sprintf("%d s", d/time.Second)
		}
		s := d.String()
		at := strings.IndexFunc(s, func(r rune) bool { return r > '9' })
		return s[:at] + " " + s[at:]
	}
	bounds := map[string]string{
		"packets that one Poll receives":                                         fmt.Sprint(maxReceive),
		"early packets that one Poll consumes, when the missing packet has come": fmt.Sprintf("%d, and %d in turn", maxReceive, maxReceive),
		"packets that one Poll sends for connections in turn":                    fmt.Sprint(maxTransmit),
		"packets in the turn of a connection":                                    fmt.Sprintf("%d / connections that are ready to send; at least 1, at most %d", roundPackets, maxBurst),
		"tables for the early packets of connections":                            fmt.Sprintf("one for each connection that holds early packets, and %d", reassembly.PoolSize),
		"half-open requests":                                                     fmt.Sprint(maxHalfOpen),
		"half-open requests of an address":                                       fmt.Sprintf("1/%v of the free slots; at most %d", 1/halfOpenShare, alone(halfOpenShare, maxHalfOpen)),
		"half-open requests of a network (IPv4 /24, IPv6 /64)":                   fmt.Sprintf("1/%v of the free slots; at most %d", 1/halfOpenPrefix, alone(halfOpenPrefix, maxHalfOpen)),
		"connections":               fmt.Sprint(maxConns),
		"connections of an address": fmt.Sprintf("as many as are free; at most %d", alone(connsShare, maxConns)),
		fmt.Sprintf("in secure mode, connects in a cookie period of %s", span(cookieLife)): fmt.Sprint(maxUsedConnects),
		"such connects of an address": fmt.Sprintf("as many as are free; at most %d", alone(usedShare, maxUsedConnects)),
		"such connects of a network":  fmt.Sprintf("%d times as many as are free; at most %d, or %d if each is the first of its address", usedPrefix, alone(usedPrefix, maxUsedConnects), alone(newcomerFactor*usedPrefix, maxUsedConnects)),
		"connections of a network":    fmt.Sprintf("%d times as many as are free; at most %d", connsPrefix, alone(connsPrefix, maxConns)),
		"first half-open request, connection or stateless reply of an address whose network has used its share": fmt.Sprintf(
			"allowed up to %d times the share of the network; at most %d half-open requests, %d connections, %d replies in %s", newcomerFactor, alone(newcomerFactor*halfOpenPrefix, maxHalfOpen),
			alone(newcomerFactor*connsPrefix, maxConns), alone(newcomerFactor*replyPrefix, replyBurst), span(replyPeriod)),
		"stateless replies (Challenge, Reject without a request, Reset, Closed, Versions)": fmt.Sprintf("%d in %s; at most %d to one address, %d to one network", replyBurst, span(replyPeriod), alone(replyShare, replyBurst), alone(replyPrefix, replyBurst)),
		"time for sending slow replies without a connection, as a share of one processor":  fmt.Sprintf("1/%d to one address, 1/%d to one network, 1/%d to all", replyAddress, replyNetwork, replyEngine),
		fmt.Sprintf("such time at once, besides the last reply, and up to %d before the first measured one", replySample): fmt.Sprintf("%s to one address; %s to one network and %s to all",
			span(replyTolerance/replyAddress), span(replyNeighbour/replyNetwork), span(replyNeighbour/replyEngine)),
		"Challenges of one attempt that are answered immediately":                                                        fmt.Sprint(promptChallenges),
		"time between two Connect packets of an attempt":                                                                 fmt.Sprintf("%s, doubling to %s", span(helloRetry), span(helloRetryMax)),
		"Accept packets sent without a repeated Connect":                                                                 fmt.Sprintf("%d, at intervals of %s, doubling", acceptTries+1, span(helloRetry)),
		"time for confirmation of an accepted request whose address or network has used its share of half-open requests": span(confirmTime),
		"rejected requests that are remembered":                                                                          fmt.Sprint(maxRejected),
		"connections closed at both ends that are remembered":                                                            fmt.Sprintf("%d, for %s each", maxClosedConns, span(timeWait)),
		"stray packets that wait for their engine":                                                                       fmt.Sprintf("%d; the engine takes %d at a time", maxStrays, strayBatch),
		"unfinished message that holds a receive of a shared receive queue, while others wait":                           fmt.Sprintf("ends its connection after %s without progress of %d bytes/s", span(fairqueue.ProgressTimeout), fairqueue.MinRate),
		"oldest message of the largest holders of a shared receive queue, while a peer without a receive waits":          fmt.Sprintf("ends its connection after %s at the earliest, if no waiting connection has got a receive for %s", span(fairqueue.ProgressTimeout), span(fairqueue.PushOutWait)),
		"slow peers and networks that a shared receive queue remembers, for 10 s":                                        fmt.Sprint(fairqueue.MaxSlow),
		"time without a slow message after which a peer has proven itself to a shared receive queue":                     span(fairqueue.ProvenTime),
		"wrong remote keys of an address before its Connects are dropped":                                                fmt.Sprintf("%d; the count decays by one in %s", freeGuesses, span(guessDecay)),
		"wrong remote keys of an IPv6 /64 before its Connects are dropped":                                               fmt.Sprintf("%d; the count decays by one in %s", prefixGuesses, span(guessDecay)),
		"time for which the Connects of an IPv6 /64 with more wrong keys are dropped":                                    fmt.Sprintf("%s at a time, with a pause of at least as much", span(prefixPause)),
		"time for which the Connects of an address with more wrong keys are dropped":                                     fmt.Sprintf("%s, doubling to %s", span(guessDelay), span(maxGuessDelay)),
		"remembered addresses with wrong keys; remembered networks with wrong keys":                                      fmt.Sprint(maxGuessers),
		"path MTU probes of one size":                                                                                    fmt.Sprintf("%d; none to a peer that has been silent since the last probe", pmtu.Tries),
		"Acks to idle peers because of a burst that looks like the end of a suspension":                                  fmt.Sprintf("as many as the burst has packets from peers, once in %s", span(resumeAckPause)),
		"packets outstanding on a connection":                                                                            fmt.Sprint(maxWindow),
		"keep-alives to a silent peer before its connection breaks":                                                      fmt.Sprint(keepAliveProbes),
		"silence of a peer before its connection breaks":                                                                 fmt.Sprintf("%s with outstanding data, %s without", span(limits.GiveUp), span(limits.KeepAlive+limits.GiveUp)),
		"time for which a message waits for a receive":                                                                   span(limits.NotReady),
	}
	_, table, _ := strings.Cut(string(data), "| what | bound |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if want, ok := bounds[cells[0]]; !ok || len(cells) != 2 || cells[1] != want {
			t.Errorf("docs/SECURITY.md: %q, want %q", row, want)
		}
		delete(bounds, cells[0])
	}
	if len(bounds) > 0 {
		t.Errorf("docs/SECURITY.md does not have %v", bounds)
	}
	if got := alone(connsPrefix, maxConns); got > maxConns || prefix4 != 24 || prefix6 != 64 {
		t.Errorf("a network has %d places, its prefixes are of %d and %d bits", got, prefix4, prefix6)
	}
	const psns, acks = 2*proto.MaxWindow + 1, 2*proto.MaxWindow + 1
	rate := replyBurst * int(time.Second/replyPeriod)
	plausible := math.Log2(float64(psns)) + math.Log2(float64(acks))
	for _, phrase := range []string{
		fmt.Sprintf("one of %d numbers and its acknowledgement one of %d", psns, acks),
		fmt.Sprintf("accepted with probability 2^−%.0f", 32+64-plausible),
		fmt.Sprintf("PSN and acknowledgement: 2^%.0f packets", 64-plausible),
		fmt.Sprintf("Good for %s to %s", span(cookieLife), span(2*cookieLife)),
		fmt.Sprintf("at most %d of these replies a second. So trying 2^32 tags takes %.1f days", rate, math.Exp2(32)/float64(rate)/86400),
		fmt.Sprintf("A replay within %d packets", proto.MaxWindow),
	} {
		if !strings.Contains(text, phrase) {
			t.Errorf("docs/SECURITY.md does not say %q", phrase)
		}
	}
}
