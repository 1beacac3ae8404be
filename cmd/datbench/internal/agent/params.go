package agent

import "time"

// Tunables, with unit and reason.
const (
	// killLimit limits the wait for the end of a killed process.
	killLimit = 5 * time.Second
	// deathDelay is how long the report of a process's end may be delayed.
	deathDelay = 100 * time.Millisecond
	// The agent ends itself if a command runs for watchdogAfter longer than the command's limit. It also ends itself if
	// the main job has ended and the agent does not close its adapters within watchdogAfter. Normally the main job
	// enforces the limit of a command, before the agent does.
	watchdogAfter = 2 * time.Second
)
