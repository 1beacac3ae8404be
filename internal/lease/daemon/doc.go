// Package daemon runs a lease.Server as a service: the socket, also by systemd's socket activation; the policy, which is
// read again on request; notifications to systemd; and a page of metrics. The caller makes and closes the lease.Kernel.
package daemon
