package wire

import "github.com/datxdp/datxdp/wire/internal/clock"

// Time is a moment on a monotonic clock, in nanoseconds. The caller of Poll supplies it.
type Time = clock.Time

// never is later than every deadline.
const never = clock.Never
