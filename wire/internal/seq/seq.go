// Package seq implements serial number arithmetic (RFC 1982) over 32 bits. Only this package handles wrap-around.
package seq

// Num is a serial number of packets, messages or operations.
type Num uint32

// Less reports whether a comes before b. They must be less than 2^31 apart.
func (a Num) Less(b Num) bool { return int32(a-b) < 0 }

// LessEq reports whether a comes before b or is b.
func (a Num) LessEq(b Num) bool { return int32(a-b) <= 0 }

// Within reports whether a is in the range from lo to hi, both included, however long the range is.
func (a Num) Within(lo, hi Num) bool { return a-lo <= hi-lo }

// Sub returns a-b; negative if a comes before b.
func (a Num) Sub(b Num) int { return int(int32(a - b)) }
