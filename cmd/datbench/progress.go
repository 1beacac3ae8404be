package main

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
)

// progress tells a reader of standard error how far a job is.
type progress interface {
	// begin announces the next step.
	begin(title string)
	// around writes to the same terminal, which the display makes room for.
	around(write func())
	// end takes the display away.
	end()
}

// newProgress is a bar on a terminal and a line per step elsewhere.
func newProgress(w io.Writer, steps int) progress {
	if isTerminal(w) {
		return newBar(w, steps)
	}
	return &lines{w: w, steps: steps}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && info.Name() != os.DevNull
}

// lines prints every step as a line.
type lines struct {
	w           io.Writer
	step, steps int
}

func (l *lines) begin(title string) {
	l.step++
	fmt.Fprintf(l.w, "[%2d/%d] %s\n", l.step, l.steps, title)
}

func (*lines) around(write func()) { write() }
func (*lines) end()                {}

// bar redraws only when a step begins: a timer would wake a core that is being measured.
type bar struct {
	b       *progressbar.ProgressBar
	started bool
}

func newBar(w io.Writer, steps int) *bar {
	return &bar{b: progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(false),
	)}
}

// The bar is decoration: an error of writing it changes nothing.
func (b *bar) begin(title string) {
	b.b.Describe(fmt.Sprintf("%-42s", title))
	if b.started {
		_ = b.b.Add(1)
	} else {
		_ = b.b.RenderBlank()
	}
	b.started = true
}

func (b *bar) around(write func()) {
	_ = b.b.Clear()
	write()
	_ = b.b.RenderBlank()
}

func (b *bar) end() { _ = b.b.Finish() }
