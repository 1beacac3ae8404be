//go:build datprovider

package main_test

import (
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// TestLoss runs test programs over a link that loses 1 % of the frames in each direction. The test also fails if no
// frame was lost.
func TestLoss(t *testing.T) {
	pairs := []struct{ line, want string }{
		{"dtest -P ia -b 4096 -B 50", passed},
		{"dtest -P ia -b 4096 -B 50 -p", passed},
		{"dtest -P ia -b 4096 -B 50 -w -u", passed},
		{"dtest -P ia -b 65536 -B 50", passed},
		{"dtestcm -P ia -c 100 -b 10", connected},
	}
	library := requireProvider(t)
	for _, link := range []string{"xdp", "udp"} {
		t.Run(link, func(t *testing.T) {
			network, wire := labtest.NewLossy(t, lab.Options{}, 0.01)
			h := &hosts{t: t, lab: network}
			h.configure(library)
			h.leavesNothing()
			for _, p := range pairs {
				t.Run(p.line, func(t *testing.T) { h.in(t).pair(p.line, p.want) })
			}
			server := h.start(lab.A, "dapltest -T S -D ia")
			server.awaitText(t, "Service Point Ready", 1)
			const line = "dapltest -T T -i 100 -t 2 -w 4 -V client RW 4096 1 server RR 4096 2 client SR 1024 4 server SR 65536 1"
			h.start(lab.B, h.client(line)).judge(verdict{want: []string{"----- Stats ----", "End of Work"}, bad: dapltestBad})
			server.awaitText(t, "Service Point Ready", 2)
			h.start(lab.B, h.client("dapltest -T Q")).judge(verdict{bad: dapltestBad})
			server.judge(verdict{want: []string{"Transaction Test Finished"}, bad: dapltestBad})
			for _, to := range []lab.Side{lab.A, lab.B} {
				n, err := wire.Lost(to)
				must(t, err)
				t.Logf("%d frames to side %s were lost", n, to)
				if n == 0 {
					t.Errorf("no frame to side %s was lost", to)
				}
			}
		})
	}
}
