//go:build race

package dat

const raceEnabled = true
