// Package labtest has what several root tests need: the conditions for skipping a test, labs that are closed with their
// test, and running programs. It is separate from package lab, so that no shipped program imports testing.
package labtest
