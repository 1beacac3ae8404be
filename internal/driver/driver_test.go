package driver

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStrayHeader(t *testing.T) {
	modules = filepath.Join(t.TempDir(), "modules")
	if StrayHeader(VirtioNet) {
		t.Error("a kernel without modules: the driver is in its image")
	}
	const loaded = "virtio_net_old 90112 0 - Live 0xffffffffc0100000\nigb 331776 0 - Live 0xffffffffc0200000\n"
	for _, tc := range []struct {
		modules, driver string
		want            bool
	}{
		{loaded, VirtioNet, false},
		{loaded, "igb", false},
		{loaded + "virtio_net 118784 0 - Live 0xffffffffc0300000\n", VirtioNet, true},
		{loaded + "virtio_net 118784 0 - Live 0xffffffffc0300000\n", "igb", false},
	} {
		if err := os.WriteFile(modules, []byte(tc.modules), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := StrayHeader(tc.driver); got != tc.want {
			t.Errorf("%s: %v with\n%s", tc.driver, got, tc.modules)
		}
	}
}
