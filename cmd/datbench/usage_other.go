//go:build !linux

package main

// usage is not known here: nobody is found to have starved.
type usage struct{}

func startUsage() usage { return usage{} }

func (usage) share() float64 { return -1 }
