package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestContradictions: invalid flags, and flags that exclude each other, are refused with an explanation.
func TestContradictions(t *testing.T) {
	tests := []struct{ args, want string }{
		{"--count 10", "--count: 10 round trips are too few for a p99.9; ask for 1000 or more"},
		{"--count 5000 --duration 1s", "--count and --duration: each says when a row ends; give one of them"},
		{"--connections 4", "--connections is for --metric rate or bw: lat has one"},
		{"--bidir", "--bidir is for --metric rate or bw: lat goes one way"},
		{"--depth 2", "--depth is for --metric rate, rr or bw: lat has one operation at a time"},
		{"--signal 4", "--signal is for --metric rate: in lat rows every operation has a completion event"},
		{"--metric rate --signal 4 --count 5", "--signal and --count: counted operations complete one by one; give one of them"},
		{"--metric rate --signal 9 --depth 8", "--signal 9 is more than the depth of 8: no outstanding request would signal its completion"},
		{"--metric rate --signal -1", "--signal: -1 is not from 1 to 1024; 0 takes the default"},
		{"--metric rr --connections 4", "--connections is for --metric rate or bw: rr has one"},
		{"--metric rr --op send,write", "--metric rr is of --op send, each answered by one: write has no answer"},
		{"--metric rr --count 10", "--count: 10 round trips are too few for a p99.9; ask for 1000 or more"},
		{"--churn 2G", "--churn: 2 GiB is more than 1 GiB"},
		{"--bytes 1M", "--bytes is for --metric sha256; --size is what other rows are made of"},
		{"--connections 129", "--connections: 129 is not from 1 to 128"},
		{"--repeat 0", "--repeat: 0 is not from 1 to 1000"},
		{"--interval 1ms", "--interval: 1ms is not 10ms or more; 0 is none"},
		{"--size 128M", "--size: 128 MiB is more than 64 MiB"},
		{"--metric bw --connections 128 --size 64M",
			"64 MiB × depth 8 × connections 128 needs 72.1 GiB of buffers, more than 1 GiB: ask for less of one of them"},
		{"--key=", `invalid argument "" for "--key" flag: it names no file`},
		{"--cpu 1023", "--cpu: 1023 is not a CPU that this process may use; choose from "},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"run", "127.0.0.1", "--ia", "udp:127.0.0.2"}, strings.Fields(tt.args)...)
			code := run(t.Context(), args, nil, &stdout, &stderr)
			if code != exitUsage || !strings.HasPrefix(stderr.String(), "datbench: "+tt.want) || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("got exit %d, %s\nwant %s", code, stderr.String(), tt.want)
			}
		})
	}
}

// TestCompletion: the shell completion offers the values of flags, also inside a list. Every shell has a script.
func TestCompletion(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"run", "--op", ""}, "send"},
		{[]string{"run", "--metric", "lat,"}, "lat,rr"},
		{[]string{"run", "--churn", ""}, "1G"},
		{[]string{"--full", "--mtu", "1500,"}, "1500,3498"},
		{[]string{"--op", "raw,"}, "raw,raw_asavie"},
		{[]string{"--transport", ""}, "auto"},
		{[]string{"raw", "--engine", "native,"}, "native,asavie"},
		{[]string{"server", "--ia", "udp:"}, "udp:127.0.0.1"},
		{[]string{"se"}, "selftest"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		run(t.Context(), append([]string{"__complete"}, tt.args...), nil, &stdout, &stderr)
		words := strings.FieldsFunc(stdout.String(), func(r rune) bool { return r == '\n' || r == '\t' })
		if !slices.Contains(words, tt.want) {
			t.Errorf("%v: no %s in %s", tt.args, tt.want, stdout.String())
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"completion", shell}, nil, &stdout, &stderr); code != exitValid || stdout.Len() < 1000 {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, stdout.Len(), stderr.String())
		}
	}
}

// TestHelpWidth: every command has a help text of at most 100 columns.
func TestHelpWidth(t *testing.T) {
	for _, args := range [][]string{{}, {"server"}, {"run"}, {"raw"}, {"links"}, {"selftest"}, {"keygen"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append(args, "--help"), nil, &stdout, &stderr); code != exitValid {
			t.Errorf("%v: exit %d", args, code)
		}
		for line := range strings.Lines(stdout.String()) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
				t.Errorf("%v: %d columns: %s", args, n, line)
			}
		}
	}
}
