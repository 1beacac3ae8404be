package main

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/dat"
)

// config holds the flags of every measuring command: what to measure, and where to write the output.
type config struct {
	plan.Options
	json, metrics, pcap string
	wait                time.Duration
}

func defaultConfig() config {
	c := config{Options: plan.DefaultOptions()}
	c.Port = defaultPort
	return c
}

// defaultPort is the UDP port of DAT traffic.
const defaultPort = dat.DefaultPort
