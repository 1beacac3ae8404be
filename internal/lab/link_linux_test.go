package lab_test

import (
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
)

func queueCount(t *testing.T, index int) [2]int {
	t.Helper()
	link, err := netlink.LinkByIndex(index)
	if err != nil {
		t.Fatal(err)
	}
	return [2]int{link.Attrs().NumRxQueues, link.Attrs().NumTxQueues}
}

func lockThread() { runtime.LockOSThread() }
