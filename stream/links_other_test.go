//go:build !linux

package stream

var systemLinks []linkType
