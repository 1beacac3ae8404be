package dat

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// plainVeth is kernel UDP between two network namespaces, over interfaces without segmentation, merging and checksum
// offload. The kernel cuts groups of packets in software, or refuses them (before Linux 6.11), and merges none.
type plainVeth struct {
	*lab.Lab
	noOffload bool
}

func (v plainVeth) open(side int, o Options) (ia *IA, err error) {
	o.NoOffload = v.noOffload
	err = v.Do(lab.Side(side), func() (err error) {
		ia, err = Open("udp:"+v.addr(side).String(), o)
		return err
	})
	return ia, err
}

func (v plainVeth) addr(side int) netip.Addr { return lab.Side(side).Addr4() }
func (v plainVeth) absent() netip.Addr       { return xdpNet{v.Lab}.absent() }

// dataTopics has the topics whose rules depend on how packets move.
var dataTopics = []string{"dat_ep_post_send", "dat_ep_post_rdma_write", "dat_ep_post_rdma_read", "dat_ib_post_rdma_write_immed", "ordering"}

// TestConformancePlainVeth checks the rules of linkTopics over interfaces without offloads, where the link uses offloads
// and where it does not. With -short, it checks the rules of dataTopics.
func TestConformancePlainVeth(t *testing.T) {
	l := labtest.New(t, lab.Options{})
	if err := l.SetOffloads(false); err != nil {
		t.Fatal(err)
	}
	topics := linkTopics
	if testing.Short() {
		topics = dataTopics
	}
	for _, v := range []plainVeth{{l, false}, {l, true}} {
		name := "udp"
		if v.noOffload {
			name = plainUDP
		}
		t.Run(name, func(t *testing.T) {
			checked := 0
			for _, p := range conformance() {
				if !slices.Contains(topics, p.of) {
					continue
				}
				checked++
				for _, r := range p.rules {
					t.Run(p.of+"/"+r.name, func(t *testing.T) { r.test(t, v) })
				}
			}
			if checked != len(topics) {
				t.Errorf("checked %d of %d topics", checked, len(topics))
			}
		})
	}
}
