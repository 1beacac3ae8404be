// Package measure times requests, so that a user can compare a transport with TCP.
package measure

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Requests makes a number of requests, one at a time, and returns a line about the time that they took.
func Requests(ctx context.Context, n int, request func() error) (string, error) {
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		if err := request(); err != nil {
			return "", err
		}
		times[i] = time.Since(start)
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	if n == 0 {
		return "no requests", nil
	}
	slices.Sort(times)
	at := func(percent int) time.Duration { return times[(n-1)*percent/100].Round(100 * time.Nanosecond) }
	return fmt.Sprintf("%d requests, one at a time: p50 %v, p99 %v", n, at(50), at(99)), nil
}

// Throughput returns a line about the transfer of a number of bytes.
func Throughput(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%d bytes: %.1f Gb/s", bytes, float64(bytes)*8/float64(took.Nanoseconds()))
}
