package main

import (
	"strings"
	"testing"
)

// TestDoctorUsage: a target that cannot be examined gives a one-line error and exit status 2.
func TestDoctorUsage(t *testing.T) {
	tests := []struct{ args, want string }{
		{"eth0", `datbench: datbench doctor takes no argument "eth0"; see datbench doctor --help`},
		{"--ia eth0", `datbench: --ia: "eth0" is not an adapter: write xdp:INTERFACE, auto:INTERFACE or udp:ADDRESS`},
		{"--ia xdp:eth0 --peer=", `datbench: --peer: host "": lookup : no such host`},
		{"--ia xdp:eth0,fast", `datbench: --ia: no mode is called "fast": use zero-copy, copy or generic`},
		{"--port 0", `datbench: --port: 0 is not a port; choose one from 1 to 65535, the same on both hosts`},
		{"--try", `datbench: --try needs --ia: the adapter to open`},
	}
	for _, tt := range tests {
		got := datbench(t, append([]string{"doctor"}, strings.Fields(tt.args)...)...)
		if got.code != exitUsage || got.stderr != tt.want+"\n" || got.stdout != "" {
			t.Errorf("%s: exit %d, %q, %q\nwant exit %d, %q", tt.args, got.code, got.stdout, got.stderr, exitUsage, tt.want)
		}
	}
}

// TestDoctorText: the report of the command "doctor" ends with a verdict. The exit status tells whether the interface
// works in the requested way.
func TestDoctorText(t *testing.T) {
	got := datbench(t, "doctor", "--ia", "udp:127.0.0.6", "--port", "17649")
	if got.code != exitValid || got.stderr != "" || !strings.HasSuffix(got.stdout, "\nUDP will work on 127.0.0.6.\n") {
		t.Errorf("exit %d, %q\n%s", got.code, got.stderr, got.stdout)
	}
	for kind, says := range map[string]string{"xdp": "AF_XDP will not work on nope0: ", "udp": "UDP will not work on nope0: "} {
		got = datbench(t, "doctor", "--ia", kind+":nope0")
		if got.code != exitInvalid || got.lastLine() != "datbench: "+errNotFit.Error() || !strings.Contains(got.stdout, "\n"+says) {
			t.Errorf("exit %d, %q, want %q in\n%s", got.code, got.stderr, says, got.stdout)
		}
	}
}
