package route

import (
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
)

// Attributes and flags of linux/rtnetlink.h that package syscall does not have.
const (
	rtaVia, rtaProtocol, rtaSport, rtaDport = 18, 27, 28, 29

	fibMatch = 0x2000 // RTM_F_FIB_MATCH: the answer is the entry of the routing table
)

// asker asks the kernel of one network namespace for routes. netlink.Handle cannot: rules may select ports and the
// protocol (ip-rule(8)), and a request of a Handle has neither. Any goroutine may use it.
type asker struct{ sockets map[int]*nl.SocketHandle }

// openAsker opens a socket in the network namespace of the calling thread.
//
// System calls: socket, bind.
func openAsker() (*asker, error) {
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), syscall.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("route: open netlink socket: %w", err)
	}
	limit := nl.SocketTimeoutTv
	limit.Sec, limit.Usec = requestSeconds, 0
	_, _ = s.SetSendTimeout(&limit), s.SetReceiveTimeout(&limit) // they only store it
	return &asker{map[int]*nl.SocketHandle{syscall.NETLINK_ROUTE: {Socket: s}}}, nil
}

func (a *asker) close() {
	if a != nil {
		a.sockets[syscall.NETLINK_ROUTE].Close()
	}
}

// get makes one request for the route of a flow. With an index, packets leave through that interface. The request has
// what the kernel uses for a UDP socket without a firewall mark. get fails with ESRCH if the answer is empty.
//
// System calls: sendto, recvfrom (netlink).
func (a *asker) get(f flow, index int, flags uint32) (kernelRoute, error) {
	return a.ask(f, syscall.RTA_OIF, index, flags)
}

// ask makes the request of get. With RTA_IIF, packets of the flow have arrived through the interface.
func (a *asker) ask(f flow, through, index int, flags uint32) (kernelRoute, error) {
	src, dst := f.src.Addr(), f.dst.Addr()
	msg := &nl.RtMsg{}
	msg.Family, msg.Dst_len, msg.Flags = syscall.AF_INET6, uint8(dst.BitLen()), flags
	if dst.Is4() {
		msg.Family = syscall.AF_INET
	}
	req := nl.NewNetlinkRequest(syscall.RTM_GETROUTE, 0)
	req.Sockets = a.sockets
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(syscall.RTA_DST, dst.AsSlice()))
	if src.IsValid() {
		msg.Src_len = uint8(src.BitLen())
		req.AddData(nl.NewRtAttr(syscall.RTA_SRC, src.AsSlice()))
	}
	if index != 0 {
		req.AddData(nl.NewRtAttr(through, nl.Uint32Attr(uint32(index))))
	}
	req.AddData(nl.NewRtAttr(rtaProtocol, nl.Uint8Attr(syscall.IPPROTO_UDP)))
	req.AddData(nl.NewRtAttr(rtaSport, nl.BEUint16Attr(f.src.Port())))
	req.AddData(nl.NewRtAttr(rtaDport, nl.BEUint16Attr(f.dst.Port())))
	answers, err := req.Execute(syscall.NETLINK_ROUTE, syscall.RTM_NEWROUTE)
	if err == nil && len(answers) == 0 {
		err = syscall.ESRCH
	}
	if err != nil {
		return kernelRoute{}, err
	}
	return parseRoute(answers[0])
}

// actions returns the action of each rule of a family, in the order of the kernel's list. The rules of netlink.Handle
// have none. It returns nil without an asker, or if the kernel does not answer.
//
// System calls: sendto, recvfrom (netlink).
func (a *asker) actions(family int) (all []uint8) {
	if a == nil {
		return nil
	}
	req := nl.NewNetlinkRequest(syscall.RTM_GETRULE, syscall.NLM_F_DUMP)
	req.Sockets = a.sockets
	req.AddData(nl.NewIfInfomsg(family))
	rules, _ := req.Execute(syscall.NETLINK_ROUTE, syscall.RTM_NEWRULE)
	for _, r := range rules {
		all = append(all, nl.DeserializeRtMsg(r).Type)
	}
	return all
}
