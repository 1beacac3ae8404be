package dat

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
)

// rule is one rule of the specification, which is its name, and a test of the rule.
type rule struct {
	name string
	test func(t *testing.T, n network)
}

// topic has the rules of one DAT call, or of one subject that concerns several calls, such as ordering (docs/DAT.md).
type topic struct {
	of    string
	rules []rule
}

// conformance returns all topics. Each file rules_*_test.go has the rules of one kind of object or of one subject.
func conformance() []topic {
	return slices.Concat(iaRules, iaCloseRules, registryRules, strerrorRules, handleRules, cnoRules, evdRules, serviceRules,
		epRules, postRules, srqRules, memoryRules, rmrRules, extensionRules)
}

// linkTopics has the topics whose rules depend on the link. These rules open a device, wait until the link wakes a
// sleeping goroutine, transfer data, or check that the end of a peer is noticed. All other rules test code above the
// links, which does not depend on the link. A request of the extensions is in the same packets as a write or a read.
var linkTopics = []string{"dat_ia_open", "dat_ia_query", "dat_ia_close", "dat_evd_wait", "dat_evd_dequeue", "dat_cno_wait",
	"dat_psp_create", "dat_ep_connect", "dat_ep_disconnect", "dat_lmr_create", "dat_lmr_free", "dat_ep_post_send", "dat_ep_post_recv",
	"dat_ep_post_rdma_write", "dat_ep_post_rdma_read", "errors", "flush", "ordering"}

// secureTopics has the topics that depend most on secure mode: connections, their ends, and the order of data.
var secureTopics = []string{"dat_ia_close", "dat_psp_create", "dat_ep_connect", "dat_ep_disconnect", "dat_ep_post_send", "dat_ep_post_recv",
	"dat_ep_post_rdma_write", "flush", "ordering"}

// TestConformance checks every rule over every link that this host has, in plaintext mode and in secure mode. With -short,
// it still checks all rules over the simulated link, but over other links it checks only the rules of linkTopics, and in
// secure mode only those of secureTopics over the simulated link. Then it also leaves out kernel UDP without offload,
// unless DATXDP_CONFORMANCE is "links".
func TestConformance(t *testing.T) {
	var failed atomic.Int32
	all, rules := conformance(), 0
	everyLink := !testing.Short() || os.Getenv("DATXDP_CONFORMANCE") == "links"
	for _, tr := range transports {
		topics := linkTopics
		if !testing.Short() || tr.name == "sim" {
			topics = nil
		}
		if everyLink || tr.name != plainUDP {
			t.Run(tr.name, func(t *testing.T) { conform(t, tr, topics, &failed) })
		}
	}
	for _, tr := range transports {
		topics := secureTopics
		if !testing.Short() {
			topics = nil
		} else if tr.name != "sim" {
			continue
		}
		t.Run("secure "+tr.name, func(t *testing.T) {
			useSharedKeys(t)
			conform(t, tr, topics, &failed)
		})
	}
	for _, p := range all {
		rules += len(p.rules)
	}
	if os.Getenv("DATXDP_CONFORMANCE") != "" {
		fmt.Printf("%d rules, %d failures\n", rules, failed.Load())
	}
}

// conform checks the rules of topics over a link; nil means all topics.
func conform(t *testing.T, tr transport, topics []string, failed *atomic.Int32) {
	defer warmDevices.end()
	for _, p := range conformance() {
		if topics != nil && !slices.Contains(topics, p.of) {
			continue
		}
		t.Run(p.of, func(t *testing.T) {
			for _, r := range p.rules {
				t.Run(r.name, func(t *testing.T) {
					t.Cleanup(func() {
						if t.Failed() {
							failed.Add(1)
						}
					})
					warmDevices.begin()
					r.test(t, tr.make(t))
				})
			}
		})
	}
}

// TestConformanceNames: the names of topics are unique, and so are the names of the rules of a topic.
func TestConformanceNames(t *testing.T) {
	topics := map[string]bool{}
	for _, p := range conformance() {
		if topics[p.of] {
			t.Errorf("topic %s is there twice", p.of)
		}
		topics[p.of] = true
		names := map[string]bool{}
		for _, r := range p.rules {
			if names[r.name] {
				t.Errorf("%s: rule %q is there twice", p.of, r.name)
			}
			names[r.name] = true
		}
	}
	for _, name := range slices.Concat(linkTopics, secureTopics) {
		if !topics[name] {
			t.Errorf("linkTopics or secureTopics has %s, which is no topic", name)
		}
	}
}
