package tap

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Pcap writes the packets of any number of links to one pcapng file. It generates the Ethernet, IP and UDP headers from
// the addresses. Any goroutine may call its methods.
type Pcap struct {
	mu      sync.Mutex // guards the rest
	out     *bufio.Writer
	blocks  ngWriter
	frame   gopacket.SerializeBuffer
	err     error // first error; nothing is written after it
	packets uint64
}

// NewPcap begins a file. The caller closes w after Flush.
func NewPcap(w io.Writer) (*Pcap, error) {
	out := bufio.NewWriter(w)
	p := &Pcap{out: out, blocks: ngWriter{w: out}, frame: gopacket.NewSerializeBuffer()}
	if err := p.blocks.header(); err != nil {
		return nil, fmt.Errorf("tap: begin pcapng file: %w", err)
	}
	return p, nil
}

// Flush writes buffered data and returns the first error so far.
func (p *Pcap) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = p.out.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("tap: write pcapng file: %w", p.err)
	}
	return nil
}

// Packets returns the number of packets written.
func (p *Pcap) Packets() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packets
}

// record is one packet to write.
type record struct {
	from, to netip.AddrPort
	marked   bool // congestion experienced
	sent     bool // otherwise received
	payload  []byte
}

func (p *Pcap) write(r *record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	if p.err = r.build(p.frame); p.err != nil {
		return
	}
	direction := uint32(flagInbound)
	if r.sent {
		direction = flagOutbound
	}
	p.err = p.blocks.packet(time.Now(), direction, p.frame.Bytes())
	if p.err == nil {
		p.packets++
	}
}

// build encodes the frame into b.
func (r *record) build(b gopacket.SerializeBuffer) error {
	from, to := r.from.Addr().WithZone(""), r.to.Addr().WithZone("")
	eth := &layers.Ethernet{SrcMAC: madeUpMAC(from), DstMAC: madeUpMAC(to)}
	udp := &layers.UDP{SrcPort: layers.UDPPort(r.from.Port()), DstPort: layers.UDPPort(r.to.Port())}
	var ecn uint8 = 2 // ECT(0)
	if r.marked {
		ecn = 3
	}
	var network gopacket.SerializableLayer
	var err error
	if from.Is4() {
		ip := &layers.IPv4{
			Version: 4, TOS: ecn, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP,
			SrcIP: from.AsSlice(), DstIP: to.AsSlice(),
		}
		eth.EthernetType, network, err = layers.EthernetTypeIPv4, ip, udp.SetNetworkLayerForChecksum(ip)
	} else {
		ip := &layers.IPv6{
			Version: 6, TrafficClass: ecn, HopLimit: 64, NextHeader: layers.IPProtocolUDP,
			SrcIP: from.AsSlice(), DstIP: to.AsSlice(),
		}
		eth.EthernetType, network, err = layers.EthernetTypeIPv6, ip, udp.SetNetworkLayerForChecksum(ip)
	}
	if err != nil {
		return err
	}
	o := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	return gopacket.SerializeLayers(b, o, eth, network, udp, gopacket.Payload(r.payload))
}

// madeUpMAC returns a locally administered MAC address that contains the last bytes of the IP address.
func madeUpMAC(a netip.Addr) []byte {
	ip := a.AsSlice()
	mac := []byte{2, 0, 0, 0, 0, 0}
	copy(mac[2:], ip[len(ip)-4:])
	return mac
}
