package route

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// prober checks claims of IP addresses. It asks the MAC address from which a packet came whether it has the claimed IP
// address. The probe is an ARP request (RFC 826) or a neighbour solicitation (RFC 4861 §7.3.3), sent to that MAC
// address alone. Confirmed claims are resolved by the kernel first, because the kernel's neighbour table is small and
// its solicitations are broadcast or multicast. A forged address therefore costs only one frame, which is no longer
// than the claim and reaches no other host.
//
// An answer to a probe creates no entry in the kernel's neighbour table. Answer uses it for a short time; a Hop does not.
type prober struct {
	v4, v6 *os.File // packet sockets; nil if unavailable
	seed   maphash.Seed

	mu     sync.Mutex // guards the rest
	probes [maxProbes]probe
}

// probe is a sent probe. A later probe in the same slot replaces it.
type probe struct {
	addr netip.Addr
	mac  [6]byte
	at   time.Time
}

// openProber opens packet sockets on an interface. It returns nil if the process lacks the privilege.
//
// System calls: socket, bind, setsockopt.
func openProber(index int) *prober {
	p := &prober{seed: maphash.MakeSeed()}
	p.v4 = openPacket(index, syscall.ETH_P_ARP, nil)
	p.v6 = openPacket(index, syscall.ETH_P_IPV6, advertisements)
	if p.v4 == nil && p.v6 == nil {
		return nil
	}
	return p
}

// openPacket opens a packet socket for one protocol; it returns nil on failure.
func openPacket(index int, protocol uint16, filter []syscall.SockFilter) *os.File {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if filter != nil {
		err = syscall.AttachLsf(fd, filter) //nolint:staticcheck // the standard library is what this package may use
	}
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: index})
	}
	if err != nil {
		_ = syscall.Close(fd) // the first error is the one that counts
		return nil
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("packet socket %#x", protocol))
}

// close ends listen.
func (p *prober) close() {
	if p == nil {
		return
	}
	for _, f := range []*os.File{p.v4, p.v6} {
		if f != nil {
			_ = f.Close() // a packet socket has nothing to flush
		}
	}
}

// serves reports whether claims of an address can be probed.
func (p *prober) serves(addr netip.Addr) bool {
	return p != nil && (addr.Is4() && p.v4 != nil || addr.Is6() && p.v6 != nil)
}

// send sends a probe for a claim. If the device drops the frame, the next claim of the address is probed again.
//
// System calls: write.
func (p *prober) send(i *Interface, addr netip.Addr, mac [6]byte, now time.Time) {
	from, ok := i.sourceFor(addr)
	if !ok {
		return
	}
	p.mu.Lock()
	p.probes[p.place(addr)] = probe{addr, mac, now}
	p.mu.Unlock()
	var b [maxProbe]byte
	if addr.Is4() {
		_, _ = p.v4.Write(putARP(b[:], i.MAC, from, mac, addr))
	} else {
		_, _ = p.v6.Write(putSolicitation(b[:], i.MAC, from, mac, addr))
	}
}

func (p *prober) place(addr netip.Addr) int { return int(maphash.Comparable(p.seed, addr) % maxProbes) }

// answered returns the MAC address to which the recent probe for an address was sent, and removes the probe. The answer
// may come from another MAC address, for example from a member of a bond.
func (p *prober) answered(addr netip.Addr, now time.Time) (mac [6]byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := &p.probes[p.place(addr)]
	if x.addr != addr || now.Sub(x.at) > probeTime {
		return mac, false
	}
	mac = x.mac
	*x = probe{}
	return mac, true
}

// listen calls confirmed for each confirmed claim, until the file is closed.
//
// System calls: read.
func (p *prober) listen(f *os.File, parse func([]byte) (netip.Addr, bool), confirmed func(netip.Addr, [6]byte)) {
	var b [128]byte
	for {
		n, err := f.Read(b[:])
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // the interface is down
			time.Sleep(resolvePause)
			continue
		}
		addr, ok := parse(b[:n])
		if !ok {
			continue
		}
		if mac, ok := p.answered(addr, time.Now()); ok {
			confirmed(addr, mac)
		}
	}
}

// sourceFor returns the source address for a probe of an address. It is the interface's address in the same subnet or,
// if there is none, its first address of the family.
func (i *Interface) sourceFor(addr netip.Addr) (from netip.Addr, ok bool) {
	for _, p := range i.Addrs {
		switch a := p.Addr(); {
		case a.Is4() != addr.Is4():
		case p.Contains(addr):
			return a, true
		case !ok:
			from, ok = a, true
		}
	}
	return from, ok
}

var be = binary.BigEndian
