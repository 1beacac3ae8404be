package doctor

import (
	"fmt"
	"strings"

	"github.com/datxdp/datxdp/dat"
)

// queueFindings reports for each queue of an open adapter whether its receive and transmit sides work. The receive side
// is unproven until the first packet arrives: without a peer nothing can test it.
func queueFindings(queues []dat.QueueStats) (all []Finding) {
	if len(queues) == 0 {
		return nil
	}
	var quiet, unproven []string
	for _, q := range queues {
		name := fmt.Sprint(q.Queue)
		switch {
		case q.Stalled:
			all = append(all, failure("packets wait on queue "+name+" and its transmit ring stands still", "The driver does not transmit them.",
				"see what the log of the program and the kernel's (dmesg) say of the interface", "")...)
		case q.Stalls > 0:
			all = append(all, warning(fmt.Sprintf("the transmit ring of queue %s has stood still %s and moves again; the queue was opened again %s",
				name, times(q.Stalls), times(q.Reopens)), "Packets were late or were sent again.", "see what the log of the program says of it", "")...)
		case !q.TxProven:
			quiet = append(quiet, name)
		}
		if !q.RxProven {
			unproven = append(unproven, name)
		}
	}
	if len(quiet) > 0 {
		all = append(all, warning("nothing has been transmitted on "+queueList(quiet), "The interface has had no carrier, or is down.",
			"plug the cable in, or bring the interface up", "")...)
	}
	if len(unproven) > 0 {
		all = append(all, Finding{Severity: Info, Found: "no packet has arrived on " + queueList(unproven) + " yet: the receive side is unproven",
			Means: "A NIC spreads connections over its queues by their ports. A queue that stays like this with many connections open is set up wrong.",
			Fix:   "run a program with --metrics ADDRESS and move data over several connections, then: datbench doctor --metrics ADDRESS"})
	}
	if len(all) == 0 {
		all = ok("%s: every one has transmitted and received", queueCount(len(queues)))
	}
	return all
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func queueCount(n int) string {
	if n == 1 {
		return "1 queue"
	}
	return fmt.Sprintf("%d queues", n)
}

func queueList(numbers []string) string {
	if len(numbers) == 1 {
		return "queue " + numbers[0]
	}
	return "queues " + strings.Join(numbers, ", ")
}
