//go:build amd64 || arm64

package bpf

import "encoding/binary"

// expectedVerdict is a second implementation of steer.c, written from its rules. The program is configured with
// testPort, the source ports testSource and 65535, localMAC, any address, and a socket on the queue.
func expectedVerdict(frame []byte) steerVerdict {
	if len(frame) < 14 {
		return steerVerdictPASSED_MALFORMED
	}
	if [6]byte(frame) != localMAC {
		return steerVerdictPASSED_OTHER
	}
	etherType, packet := binary.BigEndian.Uint16(frame[12:]), frame[14:]
	if etherType == 0x8100 || etherType == 0x88a8 {
		if len(packet) < 4 {
			return steerVerdictPASSED_MALFORMED
		}
		if binary.BigEndian.Uint16(packet)&0xfff != 0 {
			return steerVerdictPASSED_OTHER
		}
		etherType, packet = binary.BigEndian.Uint16(packet[2:]), packet[4:]
	}
	switch etherType {
	case 0x0800:
		return expected4(packet)
	case 0x86dd:
		return expected6(packet)
	}
	return steerVerdictPASSED_OTHER
}

func expected4(ip []byte) steerVerdict {
	if len(ip) < 20 || ip[0]>>4 != 4 || ip[0]&15 < 5 {
		return steerVerdictPASSED_MALFORMED
	}
	total := int(binary.BigEndian.Uint16(ip[2:]))
	switch {
	case ip[9] != 17:
		return steerVerdictPASSED_OTHER
	case binary.BigEndian.Uint16(ip[6:])&^0xc000 != 0:
		return steerVerdictPASSED_FRAGMENT
	case ip[0]&15 != 5:
		return steerVerdictPASSED_OPTIONS
	case total < 20:
		return steerVerdictPASSED_MALFORMED
	}
	return expectedUDP(ip[20:], total-20)
}

func expected6(ip []byte) steerVerdict {
	if len(ip) < 40 || ip[0]>>4 != 6 {
		return steerVerdictPASSED_MALFORMED
	}
	switch ip[6] {
	case 17:
		return expectedUDP(ip[40:], int(binary.BigEndian.Uint16(ip[4:])))
	case 44:
		return steerVerdictPASSED_FRAGMENT
	case 0, 43, 60:
		return steerVerdictPASSED_OPTIONS
	}
	return steerVerdictPASSED_OTHER
}

func expectedUDP(datagram []byte, ipPayload int) steerVerdict {
	if len(datagram) < 8 {
		return steerVerdictPASSED_MALFORMED
	}
	if dst := binary.BigEndian.Uint16(datagram[2:]); dst != testPort && dst != testSource && dst != 65535 {
		return steerVerdictPASSED_OTHER
	}
	length := int(binary.BigEndian.Uint16(datagram[4:]))
	if ipPayload > len(datagram) || length < 8 || length > ipPayload {
		return steerVerdictPASSED_MALFORMED
	}
	return steerVerdictREDIRECTED
}
