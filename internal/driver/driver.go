// Package driver knows a fault of a network driver that the kernel does not report. Any goroutine may call it.
package driver

import (
	"os"
	"strings"
)

// VirtioNet is the kernel's name of the driver of virtio NICs.
const VirtioNet = "virtio_net"

// modules lists the loaded modules, one per line. Tests replace it.
var modules = "/proc/modules"

// StrayHeader reports whether a driver gives the device a wrong address for the header of each frame that it sends in
// zero-copy mode, as virtio_net does if it is a loaded module. The device then reads memory that belongs to somebody
// else. If that memory is not zero, the device drops the frame or changes it.
//
// virtio_net maps a static variable for DMA. The kernel computes the address as for memory of the kernel image, which is
// wrong for a module; Documentation/core-api/dma-api-howto.rst forbids both. Seen with Linux 7.3 on x86-64.
func StrayHeader(name string) bool { return name == VirtioNet && isLoaded(name) }

// isLoaded reports whether a driver is a loaded module. A driver of the kernel image is none.
func isLoaded(name string) bool {
	data, err := os.ReadFile(modules)
	if err != nil {
		return false // a kernel without modules
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, name+" ") {
			return true
		}
	}
	return false
}
