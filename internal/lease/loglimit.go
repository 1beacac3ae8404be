package lease

import (
	"sync"
	"time"
)

// logLimit bounds the log lines of one kind.
type logLimit struct {
	mu     sync.Mutex
	second time.Time // begin of the current second
	lines  int       // in this second
	hidden int       // not logged since the last line
}

// next returns true if a line may be logged, with the number of lines that were not logged before it.
func (l *logLimit) next(now time.Time) (hidden int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.second) >= time.Second {
		l.second, l.lines = now, 0
	}
	if l.lines == maxLines {
		l.hidden++
		return 0, false
	}
	l.lines++
	hidden, l.hidden = l.hidden, 0
	return hidden, true
}
