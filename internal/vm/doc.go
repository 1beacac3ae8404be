// Package vm tests the scripts of vagrant/ and the Vagrantfile. It holds nothing else.
//
// TestMachines boots machines with another kernel than the host's under qemu without KVM, and runs the
// scripts on them; make vm prepares what it needs. One goroutine drives; each machine has one that waits
// for its end.
package vm
