package xdp

import (
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

const (
	// icmpBatch is the largest number of ICMP messages that readICMP handles in icmpPeriod. This limits the cost of a
	// flood of forged messages. The kernel drops the messages for which the receive buffer (icmpQueue) has no room.
	icmpBatch  = 64
	icmpPeriod = 10 * time.Millisecond
	// icmpQueue is the size in bytes of the receive buffer of a raw socket.
	icmpQueue = 64 << 10
	// maxRefused is the capacity of the report queue of a socket; a power of two.
	maxRefused = 16
)

// unreachable4 and unreachable6 are the ICMP types of destination unreachable. icmpHeader is the size in bytes of the ICMP
// header. The beginning of the refused packet follows this header.
const (
	unreachable4 = 3
	unreachable6 = 1
	icmpHeader   = 8
)

// icmpWatch reads the messages ICMP destination unreachable. A peer's kernel sends one when no program there has opened
// the destination port, and a router when it cannot forward a packet. Packets that leave over AF_XDP belong to no kernel
// socket, so only a raw socket receives ICMP messages about them. The XDP program passes these messages to the kernel.
type icmpWatch struct {
	files []*os.File
	done  sync.WaitGroup
}

// watchICMP starts one goroutine per address family, which reads the ICMP messages. It skips a family whose raw socket
// cannot be opened. For that family, only a timeout shows that a peer is unreachable.
//
// System calls: socket, setsockopt.
func watchICMP(ifname string, h *host, sockets []*Socket) *icmpWatch {
	w := &icmpWatch{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		f, err := openICMP(family, ifname, append([]uint16{h.local.Port()}, h.sources...))
		if err != nil {
			continue
		}
		parse := parseRefused4
		if family == unix.AF_INET6 {
			parse = parseRefused6
		}
		w.files = append(w.files, f)
		w.done.Go(func() { readICMP(f, parse, h.owns, sockets) })
	}
	return w
}

// close stops the readers and waits until they have ended.
func (w *icmpWatch) close() {
	if w == nil {
		return
	}
	for _, f := range w.files {
		_ = f.Close() // a raw socket has nothing to flush
	}
	w.done.Wait()
}

// openICMP opens a raw socket that receives the messages about our packets, from one interface.
func openICMP(family int, ifname string, ports []uint16) (*os.File, error) {
	protocol, filter := unix.IPPROTO_ICMP, filter4(ports)
	if family == unix.AF_INET6 {
		protocol, filter = unix.IPPROTO_ICMPV6, filter6(ports)
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	if err == nil {
		err = unix.BindToDevice(fd, ifname)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, icmpQueue)
	}
	if err != nil {
		_ = unix.Close(fd) // report the first error
		return nil, err
	}
	return os.NewFile(uintptr(fd), "ICMP"), nil
}

// readICMP passes reports to the sockets until the file is closed.
func readICMP(f *os.File, parse func([]byte, *link.Report) (from netip.AddrPort, ok bool), ours func(netip.Addr) bool, sockets []*Socket) {
	var b [256]byte // headers with options, and the bytes that a report quotes
	var report link.Report
	read, since := 0, time.Now()
	for {
		n, err := f.Read(b[:])
		if err != nil {
			return
		}
		if from, ok := parse(b[:n], &report); ok && ours(from.Addr()) {
			for _, s := range sockets { // any of them may have sent the packet
				s.report(&report)
			}
		}
		if read++; read == icmpBatch {
			time.Sleep(icmpPeriod - time.Since(since))
			read, since = 0, time.Now()
		}
	}
}

// filter4 returns a classic BPF program that passes destination unreachable messages about our UDP packets. Each message
// quotes the packet that did not arrive. This packet is ours if its source port is one of the device's. A raw IPv4 socket
// delivers a message with its IP header, so the program skips this header first.
func filter4(ports []uint16) []unix.SockFilter {
	return filter(ports, []unix.SockFilter{
		{Code: unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, K: 0}, // X: size of the IP header
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unreachable4, Jf: reject},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: icmpHeader + v4Protocol},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: protocolUDP, Jf: reject},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_IND, K: icmpHeader},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xf},
		{Code: unix.BPF_ALU | unix.BPF_LSH | unix.BPF_K, K: 2},
		{Code: unix.BPF_ALU | unix.BPF_ADD | unix.BPF_X},
		{Code: unix.BPF_MISC | unix.BPF_TAX}, // X: size of both IP headers
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_IND, K: icmpHeader},
	})
}

// filter6 is filter4 for a raw IPv6 socket, which delivers packets without their IP header.
func filter6(ports []uint16) []unix.SockFilter {
	return filter(ports, []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unreachable6, Jf: reject},
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: icmpHeader + v6Next},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: protocolUDP, Jf: reject},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: icmpHeader + v6Size},
	})
}

// reject is a placeholder for a jump to the instruction that drops the message.
const reject = 0xff

// filter appends the check of the source port, which head has loaded, and resolves the jumps to reject: to the last but
// one instruction.
func filter(ports []uint16, head []unix.SockFilter) []unix.SockFilter {
	all := head
	for i, port := range ports {
		all = append(all, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(port), Jt: uint8(len(ports) - i)})
	}
	all = append(all,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 1<<16 - 1})
	for i := range all {
		if all[i].Jf == reject {
			all[i].Jf = uint8(len(all) - 2 - (i + 1))
		}
	}
	return all
}

// parseRefused4 parses an IPv4 packet with destination unreachable. from is the source of the refused packet.
func parseRefused4(b []byte, report *link.Report) (from netip.AddrPort, ok bool) {
	b, ok = behind4(b, unix.IPPROTO_ICMP)
	if !ok || len(b) < icmpHeader || b[0] != unreachable4 {
		return from, false
	}
	if report.Why, ok = link.Refusal4(b[1]); !ok {
		return from, false
	}
	inner := b[icmpHeader:]
	udp, ok := behind4(inner, protocolUDP)
	if !ok || len(udp) < udpSize {
		return from, false
	}
	report.To = netip.AddrPortFrom(netip.AddrFrom4([4]byte(inner[v4Dst:])), be.Uint16(udp[udpDst:]))
	report.SetQuoted(udp[udpSize:])
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(inner[v4Src:])), be.Uint16(udp[udpSrc:])), true
}

// behind4 returns the bytes after the IPv4 header, if the header is valid and carries the protocol.
func behind4(b []byte, protocol byte) ([]byte, bool) {
	if len(b) < v4Size || b[0]>>4 != 4 || b[v4Protocol] != protocol {
		return nil, false
	}
	size := int(b[0]&0xf) * 4
	if size < v4Size || size > len(b) {
		return nil, false
	}
	return b[size:], true
}

// parseRefused6 is parseRefused4 for IPv6. b begins with the ICMPv6 header.
func parseRefused6(b []byte, report *link.Report) (from netip.AddrPort, ok bool) {
	if len(b) < icmpHeader+v6Size+udpSize || b[0] != unreachable6 {
		return from, false
	}
	inner := b[icmpHeader:]
	if inner[0]>>4 != 6 || inner[v6Next] != protocolUDP {
		return from, false
	}
	udp := inner[v6Size:]
	report.Why = link.Refusal6(b[1])
	report.To = netip.AddrPortFrom(netip.AddrFrom16([16]byte(inner[v6Dst:])), be.Uint16(udp[udpDst:]))
	report.SetQuoted(udp[udpSize:])
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(inner[v6Src:])), be.Uint16(udp[udpSrc:])), true
}

// refusals is a queue of reports to the owner, from the two ICMP readers (one per family) and from Send.
type refusals struct {
	mu   sync.Mutex // serialises the writers
	ring [maxRefused]link.Report
	head atomic.Uint32 // next to take; the owner writes it
	tail atomic.Uint32 // next to fill
}

// put appends a report; it returns false if the queue is full.
func (r *refusals) put(report *link.Report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	tail := r.tail.Load()
	if tail-r.head.Load() == maxRefused {
		return false
	}
	r.ring[tail%maxRefused] = *report
	r.tail.Store(tail + 1)
	return true
}

// report queues a report for the owner and wakes it.
func (s *Socket) report(report *link.Report) {
	if s.refusals.put(report) {
		s.Wake()
	}
}

// reportUnresolved reports a packet that is dropped because the neighbour does not answer, as the kernel does for packets of
// its sockets. While the kernel still asks for the neighbour, there is no report.
func (s *Socket) reportUnresolved(p *path, packet []byte) {
	if p.hop.Failures() == p.failures {
		return
	}
	report := link.Report{To: p.destination(), Why: link.RefusedHost}
	report.SetQuoted(packet)
	s.report(&report)
}

// Refused implements link.Reporter.
func (s *Socket) Refused(to []link.Report) int {
	r := &s.refusals
	head, tail := r.head.Load(), r.tail.Load()
	n := 0
	for ; head != tail && n < len(to); head++ {
		to[n] = r.ring[head%maxRefused]
		n++
	}
	if n > 0 {
		r.head.Store(head)
	}
	return n
}

// Destination implements link.Reporter.
func (s *Socket) Destination(id link.Path) netip.AddrPort {
	p := s.paths.Get(id)
	if p == nil {
		return netip.AddrPort{}
	}
	return p.destination()
}

// destination returns the address and port in the headers.
func (p *path) destination() netip.AddrPort {
	ip := p.template[ethSize:p.size]
	port := be.Uint16(p.template[p.size-udpSize+udpDst:])
	if p.v6() {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(ip[v6Dst:])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[v4Dst:])), port)
}
