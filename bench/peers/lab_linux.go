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

// openSite makes two network namespaces that nothing but this process holds.
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
				return nil, err // a nil *lab.Child is no nil child
			}
			return c, nil
		},
	}, nil
}

// withSysfs shows a program the /sys of its namespace, as ip netns exec does: UCX looks for interfaces there.
var withSysfs = []string{"unshare", "--mount", "sh", "-c", `mount -t sysfs sysfs /sys && exec "$0" "$@"`}

// States of a socket that is ready, of include/net/tcp_states.h: TCP_LISTEN, and TCP_CLOSE as UDP has it.
var readyState = map[string]string{"tcp": "0A", "udp": "07"}

// listens says whether a port is served where a process runs.
func listens(pid int, p tool.Port) bool {
	return tableHas(fmt.Sprintf("/proc/%d/net/%s", pid, p.Protocol), p) || tableHas(fmt.Sprintf("/proc/%d/net/%s6", pid, p.Protocol), p)
}

// tableHas looks for a ready socket: the second field of a line is its address, the fourth its state.
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
