package main

import (
	"net"
	"strings"

	"github.com/spf13/cobra"
)

// complete lets a shell complete flags by the words they know, each of a comma list.
func complete(cmd *cobra.Command, words map[string][]string) {
	for flag, known := range words {
		completeFunc(cmd, flag, func() []string { return known })
	}
}

func completeFunc(cmd *cobra.Command, flag string, known func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before, _ := splitLast(typed)
		var out []string
		for _, word := range known() {
			out = append(out, before+word)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // no such flag, or twice: every test of the command line would see it
	}
}

// completeFiles lets a shell complete a flag by the names of JSON files.
func completeFiles(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, jsonFiles); err != nil {
		panic(err) // as above
	}
}

// splitLast cuts a comma list before its last word.
func splitLast(list string) (before, last string) {
	i := strings.LastIndexByte(list, ',') + 1
	return list[:i], list[i:]
}

// adapterNames are the adapters that the interfaces of this host may make.
func adapterNames() (out []string) {
	ifis, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, ifi := range ifis {
		if ifi.Flags&net.FlagLoopback == 0 {
			out = append(out, "auto:"+ifi.Name, "xdp:"+ifi.Name)
		}
		addrs, _ := ifi.Addrs() // without them there is less to choose from
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() {
				out = append(out, "udp:"+ip.IP.String())
			}
		}
	}
	return out
}
