// Package vm tests the scripts of vagrant/, the Vagrantfile, and the drivers of emulated NICs. It contains only tests.
//
// TestMachines boots machines under qemu without KVM, with another kernel than the host's, and runs the scripts on
// them. make vm prepares what it needs. TestNICs (make nics) boots one machine per kernel, with pairs of NICs in two of
// its namespaces. It compares the granted modes with support_test.go and writes docs/DRIVERS.md. One goroutine drives a
// test; each machine has another goroutine that waits for the machine's end.
package vm
