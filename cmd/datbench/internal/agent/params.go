package agent

import "time"

// Tunables, with unit and reason.
const (
	// killLimit bounds the death of a process that was killed.
	killLimit = 5 * time.Second
	// newsLimit is how long the death of a process may take to be known.
	newsLimit = 100 * time.Millisecond
	// watchdogAfter is how long an agent waits beyond a command's limit before it ends itself: whoever
	// set the limit has had its chance.
	watchdogAfter = 2 * time.Second
)
