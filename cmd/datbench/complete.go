package main

import (
	"net"
	"strings"

	"github.com/spf13/cobra"
)

// complete registers the values that shell completion offers for each flag. If the value is a comma-separated list, its
// last element is completed.
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
		panic(err) // the flag does not exist or is registered twice: a bug that every test of the command line finds
	}
}

// completeFiles registers the completion of a flag by names of JSON files.
func completeFiles(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, jsonFiles); err != nil {
		panic(err) // see completeFunc
	}
}

// splitLast splits a comma list before its last element.
func splitLast(list string) (before, last string) {
	i := strings.LastIndexByte(list, ',') + 1
	return list[:i], list[i:]
}

// adapterNames returns adapter names for the interfaces of this host.
func adapterNames() (out []string) {
	ifis, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, ifi := range ifis {
		if ifi.Flags&net.FlagLoopback == 0 {
			out = append(out, "auto:"+ifi.Name, "xdp:"+ifi.Name)
		}
		addrs, _ := ifi.Addrs() // on an error, only the addresses are missing
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLinkLocalUnicast() {
				out = append(out, "udp:"+ip.IP.String())
			}
		}
	}
	return out
}
