package main

import "fmt"

// pattern is an endless sequence of bytes. It implements io.Reader for a sender and io.Writer for a receiver.
type pattern struct{ pos int64 }

// at returns the byte at a position. The period of 251 is no factor of any buffer size.
func at(pos int64) byte { return byte(pos % 251) }

// Read implements io.Reader: it returns the next bytes.
func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = at(p.pos + int64(i))
	}
	p.pos += int64(len(b))
	return len(b), nil
}

// Write implements io.Writer: it fails unless b has the next bytes.
func (p *pattern) Write(b []byte) (int, error) {
	for i, got := range b {
		if want := at(p.pos + int64(i)); got != want {
			return i, fmt.Errorf("byte %d is %d, not %d", p.pos+int64(i), got, want)
		}
	}
	p.pos += int64(len(b))
	return len(b), nil
}
