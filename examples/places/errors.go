package places

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// maxErrors is the number of errors that Errors prints in a second.
const maxErrors = 10

// Errors prints errors that clients cause, up to a number in each second, because clients decide how many there are. The
// number of the others precedes the next error that it prints.
type Errors struct {
	Out io.Writer

	mu            sync.Mutex
	end           time.Time // of this second
	printed, left int       // in this second; since the last printed error
}

// Print prints a line. Any goroutine may call it.
func (e *Errors) Print(line string) { e.print(line, time.Now()) }

func (e *Errors) print(line string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.After(e.end) {
		e.end, e.printed = now.Add(time.Second), 0
	}
	if e.printed == maxErrors {
		e.left++
		return
	}
	e.printed++
	if e.left > 0 {
		line = fmt.Sprintf("(%d errors left out) %s", e.left, line)
		e.left = 0
	}
	fmt.Fprintln(e.Out, line) // nobody reads an error of the output
}
