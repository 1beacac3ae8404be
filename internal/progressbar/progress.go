package progressbar

import (
	"fmt"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
)

// Display shows the progress of a job on standard error. One goroutine at a time calls it.
type Display interface {
	// Begin announces the next step.
	Begin(title string)
	// Note shows what the step waits for. Without a terminal only the first note of a step is printed.
	Note(text string)
	// Around calls write, which may print to the same terminal. The display moves out of the way.
	Around(write func())
	// End removes the display.
	End()
}

// New returns a bar on a terminal, and a line per step elsewhere.
func New(w io.Writer, steps int) Display {
	if IsTerminal(w) {
		return newBar(w, steps)
	}
	return &lines{w: w, steps: steps}
}

// IsTerminal reports whether w is a terminal or another character device, but not /dev/null.
func IsTerminal(w io.Writer) bool {
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
	noted       bool
}

func (l *lines) Begin(title string) {
	l.step++
	l.noted = false
	fmt.Fprintf(l.w, "[%2d/%d] %s\n", l.step, l.steps, title)
}

func (l *lines) Note(text string) {
	if !l.noted {
		l.noted = true
		fmt.Fprintf(l.w, "        %s\n", text)
	}
}

func (*lines) Around(write func()) { write() }
func (*lines) End()                {}

// bar redraws only when a step begins. A timer would use a core that is being measured.
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

// Begin ignores write errors, because nothing depends on the bar.
func (b *bar) Begin(title string) {
	b.b.Describe(fmt.Sprintf("%-42s", title))
	if b.started {
		_ = b.b.Add(1)
	} else {
		_ = b.b.RenderBlank()
	}
	b.started = true
}

func (b *bar) Note(text string) { b.b.Describe(text) }

func (b *bar) Around(write func()) {
	_ = b.b.Clear()
	write()
	_ = b.b.RenderBlank()
}

func (b *bar) End() { _ = b.b.Finish() }
