package agent

import "time"

// Tunables, with unit and reason.
const (
	// killLimit limits the wait for the end of a killed process.
	killLimit = 5 * time.Second
	// deathDelay is how long the report of a process's end may be delayed.
	deathDelay = 100 * time.Millisecond
	// watchdogAfter is the time after a command's limit at which an agent ends itself. The main job enforces the limit
	// first.
	watchdogAfter = 2 * time.Second
)
