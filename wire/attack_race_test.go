//go:build race

package wire

// raceEnabled says that tests run under the race detector, ten times as slow.
const raceEnabled = true
