package agent

import "time"

// Tunables, with unit and reason.
const (
	// killLimit limits the wait for the end of a killed process.
	killLimit = 5 * time.Second
	// deathDelay is how long the report of a process's end may be delayed.
	deathDelay = 100 * time.Millisecond
	// watchdogAfter is the time after which an agent that hangs ends itself. Normally the main job enforces the time
	// limit of a command; if a command exceeds its limit by watchdogAfter, the agent ends itself. When the main job has
	// ended, an agent closes its adapters; if this takes longer than watchdogAfter, the agent ends itself too.
	watchdogAfter = 2 * time.Second
)
