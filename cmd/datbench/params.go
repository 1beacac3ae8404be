package main

import "time"

// Tunables, with unit and reason.
const (
	// defaultWait is how long run waits for a server that is taken.
	defaultWait = 10 * time.Second
	// exitLimit is how long an interrupted program may take to clean up. What is left then goes with
	// the process.
	exitLimit = 15 * time.Second
)
