//go:build !linux

package stream

var systemLinks, mtuLinks []linkType
