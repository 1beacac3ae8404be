package main

import (
	"fmt"
	"strconv"
	"strings"
)

// fixedNotes are below every table: they explain its words, and which comparisons are fair.
var fixedNotes = []string{
	`Theirs and ours are medians (--repeat %d, --duration %s); round trips are full ones: their p50, or, with a ~, their mean, of a tool that has no ` +
		`percentiles. The ratio is how many times better ours is; below 1 the peer is.`,
	`Polling sides spin, as datxdp does. Blocking ones sleep in the kernel, as all of Go does here.`,
	`The kernel moves TCP, and much of UDP, over a veth in super-frames of up to 64 KiB that nothing cuts to the MTU: a stream of it is ` +
		`comparable where the rows are without tso, gso and gro, or at MTU 65000.`,
	`A buffered sender gathers 64 KiB of messages before a write and hears of none of them; each of ours is a post of its own, completed ` +
		`when the far end has it. TLS and QUIC encrypt, ` +
		`and are compared with ours in secure mode (+aes), whose keys are those of datbench keygen; the others do not encrypt.`,
}

// notes returns the notes below the table.
func (r *Report) notes() []string {
	var names []string
	for _, v := range r.Versions {
		names = append(names, v.Tool+" "+v.Version)
	}
	first := "Versions: " + strings.Join(names, ", ")
	if r.Env.Kernel != "" {
		first += fmt.Sprintf("; Linux %s, %d × %s", r.Env.Kernel, r.Env.CPUs, r.Env.CPU)
	}
	out := []string{first + ".", fmt.Sprintf(fixedNotes[0], r.Repeat, r.Duration)}
	out = append(out, fixedNotes[1:]...)
	out = append(out, r.grouped("(*)", func(row *Row) string { return row.Note })...)
	out = append(out, r.grouped("(!)", (*Row).why)...)
	if r.Env.Interrupted {
		out = append(out, "Ended early: runs that were asked for are missing.")
	}
	return out
}

// why returns the reason for an invalid row; empty if the row is valid.
func (r *Row) why() string {
	switch {
	case r.Valid:
		return ""
	case r.Reason == "":
		return "nothing was measured"
	}
	return r.Reason
}

// grouped merges equal notes of several rows into one, with the numbers of the rows.
func (r *Report) grouped(mark string, say func(*Row) string) (out []string) {
	numbers := map[string][]string{}
	var order []string
	for i := range r.Rows {
		text := say(&r.Rows[i])
		if text == "" {
			continue
		}
		if numbers[text] == nil {
			order = append(order, text)
		}
		numbers[text] = append(numbers[text], strconv.Itoa(i+1))
	}
	for _, text := range order {
		out = append(out, fmt.Sprintf("%s %s: %s.", mark, strings.Join(numbers[text], ", "), text))
	}
	return out
}
