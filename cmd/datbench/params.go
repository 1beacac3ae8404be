package main

import "time"

// Tunables, with unit and reason.
const (
	// defaultWait is how long run waits for a server that another client has.
	defaultWait = 10 * time.Second
	// exitLimit limits the clean-up of an interrupted program. The kernel releases the rest when the process ends.
	exitLimit = 15 * time.Second
)
