//go:build !linux

package usage

// Usage is not known here.
type Usage struct{}

// Start begins to measure the calling thread, to which the goroutine must be locked.
func Start() Usage { return Usage{} }

// Share is the part of a core that the thread has had since Start; negative where that is not known.
func (Usage) Share() float64 { return -1 }
