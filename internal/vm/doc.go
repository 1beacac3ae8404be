// Package vm tests the scripts of vagrant/ and the Vagrantfile, and the drivers of emulated NICs. It holds nothing else.
//
// TestMachines boots machines with another kernel than the host's under qemu without KVM, and runs the
// scripts on them; make vm prepares what it needs. TestNICs boots one machine a kernel, with pairs of NICs in two
// of its namespaces, holds what is granted to support_test.go, and writes docs/DRIVERS.md; make nics. One goroutine
// drives; each machine has one that waits for its end.
package vm
