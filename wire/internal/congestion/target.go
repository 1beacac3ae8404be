package congestion

import (
	"math"
	"time"
)

// target returns the delay in queues that a connection tolerates at a rate in bytes per second. The tunables say how it
// depends on the rate.
func target(rate float64) time.Duration {
	r := rate / 1e6
	root := float64(rootBase) + float64(rootScale)/math.Sqrt(r)
	log := float64(logBase) - float64(logStep)*math.Log2(r/logRate)
	return time.Duration(min(max(root, log), float64(MaxQueue)))
}
