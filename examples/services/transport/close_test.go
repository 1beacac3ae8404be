package transport

import (
	"sync"
	"testing"
)

// together is a connection whose Close returns when all connections are being closed.
type together struct{ *sync.WaitGroup }

func (c together) Close() error {
	c.Done()
	c.Wait()
	return nil
}

// TestClosingsAtTheSameTime: a connection whose peer delays Close does not delay the Close of others.
func TestClosingsAtTheSameTime(t *testing.T) {
	var s closings
	s.wait()
	for range 2 {
		var all sync.WaitGroup
		all.Add(5)
		for range 5 {
			s.start(together{&all})
		}
		s.wait()
		if s.open != 0 {
			t.Errorf("%d connections are open", s.open)
		}
	}
}
