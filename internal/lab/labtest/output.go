package labtest

import (
	"bytes"
	"sync"
)

// Output collects the output of programs, and can be read while they run. The zero value is empty and ready to use. Any
// goroutine may call its methods.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends b.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
