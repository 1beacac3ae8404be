//go:build !linux

package usage

// Usage measures nothing on this platform.
type Usage struct{}

// Start begins the measurement of the calling thread. The goroutine must be locked to it.
func Start() Usage { return Usage{} }

// Share returns a negative value: the fraction is unknown.
func (Usage) Share() float64 { return -1 }
