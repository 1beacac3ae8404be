package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/lab"
)

// openSite creates two network namespaces that only this process holds.
func openSite(mtu int) (*site, error) {
	l, err := lab.New(lab.Options{MTU: mtu})
	if err != nil {
		return nil, err
	}
	ends := [...]lab.Side{serverEnd: lab.A, clientEnd: lab.B}
	return &site{
		host: lab.A.Addr4().String(), ifname: lab.Interface, inside: withSysfs, close: l.Close,
		launch: func(end int, cmd *exec.Cmd) (child, error) {
			c, err := l.Start(ends[end], cmd)
			if err != nil {
				return nil, err // a nil *lab.Child would be a child that is not nil
			}
			return c, nil
		},
	}, nil
}

// withSysfs runs a program with the /sys of its network namespace, as ip netns exec does. UCX finds interfaces there.
var withSysfs = []string{"unshare", "--mount", "sh", "-c", `mount -t sysfs sysfs /sys && exec "$0" "$@"`}

// readyState has the socket state of a server that is ready (include/net/tcp_states.h): TCP_LISTEN, and TCP_CLOSE for
// UDP.
var readyState = map[string]string{"tcp": "0A", "udp": "07"}

// listens reports whether a port is open in the network namespace of a process.
func listens(pid int, p tool.Port) bool {
	return tableHas(fmt.Sprintf("/proc/%d/net/%s", pid, p.Protocol), p) || tableHas(fmt.Sprintf("/proc/%d/net/%s6", pid, p.Protocol), p)
}

// tableHas searches a table for a ready socket. The second field of a line is the address, the fourth the state.
func tableHas(file string, p tool.Port) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	local := fmt.Sprintf(":%04X", p.Number)
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) > 3 && strings.HasSuffix(fields[1], local) && fields[3] == readyState[p.Protocol] {
			return true
		}
	}
	return false
}
