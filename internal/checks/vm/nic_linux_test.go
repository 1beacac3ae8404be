package vm

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// nic is a pair of emulated interfaces. The machine has one in each of its two namespaces, both with this name.
type nic struct {
	name, driver string
	// device is qemu's device with its properties.
	device string
	// taps is the number of queues of its tap device; only virtio has more than one.
	taps int
	// queues lists the numbers to set with ethtool -L; 0 keeps the default.
	queues []int
}

// nics lists every pair, in the order of the MAC addresses.
var nics = []nic{
	{"virtio", "virtio_net, iommu_platform=on", "virtio-net-pci,mq=on,vectors=10,iommu_platform=on,disable-legacy=on,host_mtu=9000", 4, []int{4, 2, 1}},
	{"plain", "virtio_net", "virtio-net-pci,mq=on,vectors=10,host_mtu=9000", 4, []int{4}},
	{"igb", "igb", "igb", 1, []int{1, 2}},
	{"vmxnet3", "vmxnet3", "vmxnet3", 1, []int{0}},
	{"e1000e", "e1000e", "e1000e", 1, []int{0}},
}

func nicNamed(name string) nic {
	for _, n := range nics {
		if n.name == name {
			return n
		}
	}
	panic("no NIC is called " + name)
}

const (
	nicMemory = "3G"
	tapMTU    = 9216
)

// end returns the name of one end's tap, which its device in qemu has too.
func (n nic) end(i int) string { return fmt.Sprintf("%s%d", n.name, i) }

// join creates a bridge and the two taps of a pair.
func (n nic) join(t *testing.T) {
	t.Helper()
	commands := [][]string{{"link", "add", n.name, "type", "bridge"}}
	for i := range 2 {
		tap := []string{"tuntap", "add", n.end(i), "mode", "tap"}
		if n.taps > 1 {
			tap = append(tap, "multi_queue")
		}
		commands = append(commands, tap,
			[]string{"link", "set", n.end(i), "mtu", fmt.Sprint(tapMTU), "master", n.name, "up"})
	}
	commands = append(commands, []string{"link", "set", n.name, "mtu", fmt.Sprint(tapMTU), "up"})
	t.Cleanup(func() { // the pairs of the next kernel have the same names
		for _, name := range []string{n.end(0), n.end(1), n.name} {
			_ = exec.Command("ip", "link", "delete", name).Run()
		}
	})
	for _, c := range commands {
		if out, err := exec.CommandContext(t.Context(), "ip", c...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", c, err, out)
		}
	}
}

// arguments returns qemu's arguments for the pair. number is the index of the pair, from 1.
func (n nic) arguments(number int) (args []string) {
	for i := range 2 {
		tap := fmt.Sprintf("tap,id=tap-%s,ifname=%[1]s,script=no,downscript=no,vhost=off", n.end(i))
		if n.taps > 1 {
			tap += fmt.Sprintf(",queues=%d", n.taps)
		}
		// Each PCI Express device has its own port, because the functions of igb need one.
		port := fmt.Sprintf("port-%s", n.end(i))
		args = append(args, "-netdev", tap,
			"-device", fmt.Sprintf("pcie-root-port,id=%s,chassis=%d", port, 2*number+i),
			"-device", fmt.Sprintf("%s,id=%s,netdev=tap-%[2]s,mac=52:54:00:57:%02x:%02x,bus=%s,romfile=", n.device, n.end(i), number, i, port))
	}
	return args
}

// monitor is a connection to qemu that can unplug the cable of a NIC.
type monitor struct {
	conn net.Conn
	json *json.Decoder
}

// monitorSocket returns the path of the socket on which qemu accepts the monitor's connection.
func monitorSocket(dir string) string { return filepath.Join(dir, "monitor") }

func openMonitor(t *testing.T, dir string) *monitor {
	t.Helper()
	conn, err := net.Dial("unix", monitorSocket(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m := &monitor{conn, json.NewDecoder(conn)}
	if err := m.json.Decode(new(json.RawMessage)); err != nil { // the greeting of qemu
		t.Fatal(err)
	}
	m.command(t, "qmp_capabilities", nil)
	return m
}

// command sends a command and waits for its answer. It skips events.
func (m *monitor) command(t *testing.T, name string, arguments map[string]any) {
	t.Helper()
	request := map[string]any{"execute": name}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := m.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		t.Fatal(err)
	}
	for {
		var answer struct {
			Return, Error *json.RawMessage
		}
		if err := m.json.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if answer.Error != nil {
			t.Fatalf("qemu: %s %v: %s", name, arguments, *answer.Error)
		}
		if answer.Return != nil {
			return
		}
	}
}

// carrier switches the carrier of one end of a pair on or off.
func (m *monitor) carrier(t *testing.T, n nic, end int, up bool) {
	t.Helper()
	m.command(t, "set_link", map[string]any{"name": n.end(end), "up": up})
}
