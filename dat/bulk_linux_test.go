package dat

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/link"
)

// bulkSize is the size in bytes of the writes of BenchmarkBulk, and bulkDepth the number of outstanding writes.
const (
	bulkSize  = 1 << 20
	bulkDepth = 8
)

// BenchmarkBulk measures 1 MiB writes over kernel UDP, beside a kernel TCP stream: between two network namespaces at MTU
// 1500, and over the loopback interface with packets of 1472 bytes. cpu-s/GiB is the processor time of the whole machine.
func BenchmarkBulk(b *testing.B) {
	lo := [2]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}
	veth := [2]netip.Addr{lab.A.Addr4(), lab.B.Addr4()}
	for _, bb := range []struct {
		name  string
		addrs [2]netip.Addr
		o     Options
	}{
		{"veth", veth, Options{}},
		{"veth,plain", veth, Options{NoOffload: true}},
		{"loopback", lo, Options{Wrap: func(l link.Link) link.Link { return shortPackets{l} }}},
	} {
		in := func(_ lab.Side, f func() error) error { return f() }
		if bb.addrs == veth {
			in = sharedLab(b).Do
		}
		b.Run(bb.name, func(b *testing.B) {
			open := func(side int) *host {
				h := &host{t: b, addr: bb.addrs[side]}
				ok(b, in(lab.Side(side), func() (err error) {
					h.ia, err = Open("udp:"+h.addr.String(), bb.o)
					return err
				}))
				b.Cleanup(func() { h.ia.Close() })
				h.pz = must(h.ia.CreatePZ())(b)
				return h
			}
			x, y := open(0), open(1)
			y.listen(testQual, 8)
			benchBulk(b, x, y)
		})
		if !bb.o.NoOffload {
			b.Run(bb.name+",tcp", func(b *testing.B) { benchTCP(b, bb.addrs, in) })
		}
	}
}

// shortPackets is a link with the payload of MTU 1500.
type shortPackets struct{ link.Link }

func (s shortPackets) Caps() link.Caps {
	c := s.Link.Caps()
	c.MaxPayload = 1472
	return c
}

func (s shortPackets) PathMTU(p link.Path) int { return min(s.Link.PathMTU(p), 1472) }

func benchBulk(b *testing.B, x, y *host) {
	p, q := x.pointWith(nil, bulkSize, 64), y.pointWith(nil, bulkSize, 64)
	join(p, q)
	iov, to := p.seg(0, bulkSize), q.lmr.Remote(0, bulkSize)
	var ev Event
	done := func() {
		if _, err := p.request.Wait(patience, 1, &ev); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(bulkSize)
	busy := startProcessors(b)
	out := 0
	for b.Loop() {
		ok(b, p.PostRDMAWrite(iov, 1, to, 0))
		if out++; out == bulkDepth {
			done()
			out--
		}
	}
	for ; out > 0; out-- {
		done()
	}
	busy.report(b)
	s := must(x.ia.Stats())(b)
	b.ReportMetric(float64(s.Link.TxPackets)/float64(max(1, s.Link.TxGroups)), "packets/group")
	b.ReportMetric(s.Window, "window")
	b.ReportMetric(100*float64(s.Retransmits)/float64(s.Link.TxPackets), "%retransmits")
}

func benchTCP(b *testing.B, addrs [2]netip.Addr, in func(lab.Side, func() error) error) {
	var l net.Listener
	ok(b, in(lab.B, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(addrs[1].String(), "0"))
		return err
	}))
	defer l.Close()
	read := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, struct{ io.Reader }{bufio.NewReaderSize(c, bulkSize)})
		}
		read <- err
	}()
	var c net.Conn
	ok(b, in(lab.A, func() (err error) {
		c, err = net.Dial("tcp", l.Addr().String())
		return err
	}))
	buf := make([]byte, bulkSize)
	b.SetBytes(bulkSize)
	busy := startProcessors(b)
	for b.Loop() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	ok(b, c.Close())
	ok(b, <-read)
	busy.report(b)
}

// processors is the time in ticks of 10 ms for which the processors were busy.
type processors int

// startProcessors reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
func startProcessors(b *testing.B) processors {
	text, err := os.ReadFile("/proc/stat")
	ok(b, err)
	line, _, _ := strings.Cut(string(text), "\n")
	sum := 0
	for i, word := range strings.Fields(line)[1:8] {
		n, err := strconv.Atoi(word)
		ok(b, err)
		if i != 3 && i != 4 {
			sum += n
		}
	}
	return processors(sum)
}

func (p processors) report(b *testing.B) {
	gib := float64(b.N) * bulkSize / (1 << 30)
	b.ReportMetric(float64(startProcessors(b)-p)/100/gib, "cpu-s/GiB")
}
