package main

import (
	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
)

const linksHelp = `links compares the links that an adapter can have, in a throw-away lab of two network namespaces
joined by a veth pair: AF_XDP in copy and in generic mode, and kernel UDP. It prints one row for
each link: round trips, messages, streams at MTU 1500 and 9000, what is left of kernel TCP over the
same interface, and the privilege that the link needs. docs/LINKS.md has such a table.

Exit status: 0 all results are valid, 1 a result is invalid, 2 nothing could be measured.`

func (a *app) linksCommand() *cobra.Command {
	cfg := defaultConfig()
	cfg.Transport = plan.TransportXDP
	c := &cobra.Command{
		Use:     "links",
		Short:   "Compare the links that an adapter can have, and what each costs other traffic",
		Long:    linksHelp,
		Example: "  datbench links --repeat 5",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return (&mainJob{app: a, cfg: &cfg, labs: plan.LinksJob, show: render.Links}).run(cmd.Context())
		},
	}
	cfg.jsonFlag(c)
	cfg.timeFlags(c)
	return c
}
