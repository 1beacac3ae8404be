package network

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Bound is the bound of a result in words.
func (r Result) Bound() string { return r.bound() }

// Measured is the value of a result in words.
func (r Result) Measured() string { return format(r.Value) }

// kind is the rows of one kind.
type kind struct{ Name, Comment, Table string }

// comments say what the columns of each kind are.
var comments = map[string]string{
	"steady": "Bulk flows from hosts of their own to one host (`64-from-1`: all from one host). *drop*: dropped by the port; *again*: sent again; " +
		"*queue*, *max*: mean and largest queue of the port.",
	"incast": "One write of each sender, all posted within a microsecond. *cold*: the first of each connection, *warm*: the median of five later rounds; " +
		"time until the last has completed ÷ ideal. *timeouts*: for each flow.",
	"requests": "One write of 64 bytes at a time, 5 µs after the last, beside 8 bulk flows to the same host.",
	"pair":     "Two bulk flows to one host. *first*, *second*: their shares of the port.",
	"join":     "Four bulk flows begin and end, one every 20 ms. *fair after*: the longest time until they are fair (0.95 over 1 ms); *least used*: of the port in any millisecond.",
	"wan":      "One flow on a path of 10 ms, without limit by the port's buffer except in `1G-port`. Shares of the line from the first write on, in three times 150 ms. *kept*: share of the same without loss.",
	"reroute":  "One flow at 25 Gb/s; the round trip of its path changes. Shares of the line after that.",
	"flap":     "8 bulk flows; the cable of their receiver is cut for a time. *first*: until the first packet has arrived again; *90 %*: until 0.9 of the line.",
	"reorder":  "One flow at 25 Gb/s; some packets are late by the time of 3–30 packets, so that others overtake them. Shares of the line.",
	"trouble": "One conversation: a question of up to 2 kB, an answer of up to 32 KiB, pauses up to 300 ms; round trips of 8 µs to 10 ms. Into it come one to three faults of 10 µs to 3 s. " +
		"Rule: when both ends run and the path is whole again, the exchange that was outstanding completes within 250 ms (*outstanding*: the longest), and each of the next 20 " +
		"takes at most three times its time without faults and 10 ms (*later*: the longest time beyond three times). *failures*: share of 25 stories; *broken*: connections that ended. The figures are the worst of all seeds.",
	"mix": "Racks drawn by seed: 2–24 bulk flows from hosts with one of two MTUs and round trips of 5–200 µs, a flow of small requests, bursts, and faults of single paths. " +
		"Measured in 20 ms after them. *least share*: of the slowest bulk flow, divided by the fair share.",
	"beside": "Bulk flows beside as many TCP flows on one port of 10 or 1 Gb/s. Shares of the port.",
}

// WritePage writes docs/NETWORK.md.
func WritePage(w io.Writer, rows []Row, seeds int) error {
	data := struct {
		Seeds           int
		Targets, Others []Result
		Kinds           []kind
	}{Seeds: seeds, Kinds: kinds(rows)}
	for _, r := range Judge(rows) {
		if r.Other {
			data.Others = append(data.Others, r)
		} else {
			data.Targets = append(data.Targets, r)
		}
	}
	return page.Execute(w, data)
}

// kinds returns a table for each kind of rows, in the order of their first rows.
func kinds(rows []Row) (all []kind) {
	for _, r := range rows {
		name, rest, _ := strings.Cut(r.Name, "/")
		i := slices.IndexFunc(all, func(k kind) bool { return k.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, kind{name, comments[name], header(r)})
		}
		all[i].Table += r.cells(rest)
	}
	return all
}

// cells returns the row as a line of a table.
func (r Row) cells(name string) string {
	var line strings.Builder
	fmt.Fprintf(&line, "| %s |", name)
	for _, m := range r.Metrics {
		fmt.Fprintf(&line, " %s |", format(m.Value))
	}
	return line.String() + "\n"
}

// header returns the first two lines of the table of a row's kind.
func header(r Row) string {
	names, dashes := "| |", "|---|"
	for _, m := range r.Metrics {
		names += " " + m.Name + " |"
		dashes += "---|"
	}
	return names + "\n" + dashes + "\n"
}
