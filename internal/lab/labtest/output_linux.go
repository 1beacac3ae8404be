package labtest

import (
	"bytes"
	"sync"
)

// Output takes what programs print, and tells it while they run. The zero value is empty and ready; any
// goroutine may call it.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes b.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

// String is what was printed so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
