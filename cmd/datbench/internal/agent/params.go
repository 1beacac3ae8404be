package agent

import "time"

// Tunables, with unit and reason.
const (
	// killLimit limits the wait for the end of a killed process.
	killLimit = 5 * time.Second
	// deathDelay is how long the report of a process's end may be delayed.
	deathDelay = 100 * time.Millisecond
	// watchdogAfter is the time by which a command may exceed its limit, and for which closing may last after the main
	// job has ended. Then the agent ends itself. The main job enforces the limit of a command earlier.
	watchdogAfter = 2 * time.Second
)
