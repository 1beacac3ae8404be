// Package seq is serial number arithmetic (RFC 1982) over 32 bits. All wrap-around maths of the
// protocol is here.
package seq

// Num is a serial number: a packet sequence number, a message number, an operation number.
type Num uint32

// Less reports whether a comes before b. It is defined while they are less than 2^31 apart.
func (a Num) Less(b Num) bool { return int32(a-b) < 0 }

// LessEq reports whether a comes before b or is b.
func (a Num) LessEq(b Num) bool { return int32(a-b) <= 0 }

// Within reports whether a is one of lo, lo+1, and so on to hi, however far apart they are.
func (a Num) Within(lo, hi Num) bool { return a-lo <= hi-lo }

// Sub is the distance from b to a; negative when a comes before b.
func (a Num) Sub(b Num) int { return int(int32(a - b)) }
