package main

import (
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on a terminal. Without a terminal it prints a line for every tenth of the file.
type progress struct {
	out    *os.File
	size   int64
	tenths int64
	bar    *progressbar.ProgressBar // nil without a terminal
}

func newProgress(out *os.File, size int64) *progress {
	p := &progress{out: out, size: size}
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(out), progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(pause), progressbar.OptionSetWidth(24))
	}
	return p
}

// show reports how many bytes the slowest receiver has. It ignores errors, because the transfer does not depend on it.
func (p *progress) show(n int64) {
	n = min(n, p.size)
	if p.bar != nil {
		_ = p.bar.Set64(n)
		return
	}
	if tenths := n * 10 / max(p.size, 1); tenths > p.tenths {
		p.tenths = tenths
		fmt.Fprintf(p.out, "%d %% of %d bytes\n", tenths*10, p.size)
	}
}

func (p *progress) finish(n int64) {
	p.show(n)
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.out)
	}
}
