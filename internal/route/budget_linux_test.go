package route

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"github.com/datxdp/datxdp/internal/lab"
)

// TestBudget: work that is repeated as soon as the budget permits it takes its share of the time, after a burst.
func TestBudget(t *testing.T) {
	const cost = 40 * time.Millisecond
	start := time.Now()
	var b budget
	var worked time.Duration
	now := start
	for now.Sub(start) < time.Minute {
		now = later(now, b.paid)
		b.charge(cost, now.Add(cost))
		now = now.Add(cost)
		worked += cost
	}
	if most := (lookupBurst+now.Sub(start))/lookupShare + cost; worked > most {
		t.Errorf("%v of work in %v, want at most %v", worked, now.Sub(start), most)
	}
	if least := now.Sub(start) / lookupShare; worked < least {
		t.Errorf("%v of work in %v, want at least %v", worked, now.Sub(start), least)
	}
	if now = now.Add(2 * lookupBurst); !b.paid.Before(now) {
		t.Errorf("no work is permitted after %v", 2*lookupBurst)
	}
}

// A router advertisement makes the kernel report an address, also if only its lifetime has changed. However many such
// reports arrive, the lookups of all routes take only their share of the processor.
func TestAddressReportsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.resolve(lab.B.Addr4().String())
	w.table.mu.Lock()
	now := time.Now()
	w.table.lookups.charge(time.Minute, now) // a lookup that took long
	paid := w.table.lookups.paid
	w.table.mu.Unlock()
	before := w.table.fib.Load()
	w.reportAddress()
	w.table.lookupDue(paid.Add(-1))
	if w.table.fib.Load() != before {
		t.Error("the routes were looked up beyond the budget")
	}
	w.table.lookupDue(paid)
	if w.table.fib.Load() == before {
		t.Error("the routes were not looked up after the budget permitted it")
	}
}

// reportAddress makes the kernel report an address again, with another lifetime, and waits until the table has the report.
func (w *world) reportAddress() {
	w.Helper()
	never := time.Now().Add(time.Hour)
	due := func() time.Time {
		w.table.mu.Lock()
		defer w.table.mu.Unlock()
		return w.table.routesAt
	}
	addr, err := netlink.ParseAddr("fd99::1/64")
	w.must(err)
	addr.Flags = syscall.IFA_F_NODAD // a tentative address is not served
	for _, addr.ValidLft = range []int{1000, 2000} {
		addr.PreferedLft = addr.ValidLft
		w.table.mu.Lock()
		w.table.routesAt = never
		w.table.mu.Unlock()
		w.must(w.nl[lab.A].AddrReplace(w.veth[lab.A], addr))
		w.until("the report of the address", func() bool { return due() != never })
	}
}

// A host that floods the kernel with changes of neighbours makes messages to the table get lost. Reading everything again
// takes only its share of the processor.
func TestLostMessagesAreBounded(t *testing.T) {
	w := newWorld(t)
	var events *nl.NetlinkSocket
	w.on(lab.A, func() (err error) {
		events, err = nl.Subscribe(syscall.NETLINK_ROUTE, syscall.RTNLGRP_NEIGH)
		return err
	})
	const cost = 20 * time.Millisecond
	var worked atomic.Int64
	done, ended := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		follow(events, done, func(*syscall.NetlinkMessage) {}, func() {
			worked.Add(int64(cost))
			for began := threadTime(); threadTime()-began < cost; { // work
			}
		})
	}()
	most := func() time.Duration { return (lookupBurst+time.Since(start))/lookupShare + cost }
	n := netlink.Neigh{LinkIndex: w.table.index, State: netlink.NUD_PERMANENT, IP: lab.B.Addr4().AsSlice(), HardwareAddr: lab.B.MAC()}
	for i := 0; time.Since(start) < 5*most(); i++ {
		n.HardwareAddr[5] = byte(i)
		w.must(w.nl[lab.A].NeighSet(&n))
	}
	close(done)
	if got := time.Duration(worked.Load()); got == 0 || got > most() {
		t.Errorf("%v of work in %v, want some and at most %v", got, time.Since(start), most())
	}
	events.Close()
	<-ended
}

// TestWaitsAreFree: reading everything again takes a second, in which the goroutine waits, as for RTNL while a user of the host
// keeps it. The next reading need not wait, because the first one has cost no processor time.
func TestWaitsAreFree(t *testing.T) {
	w := newWorld(t)
	var events *nl.NetlinkSocket
	w.on(lab.A, func() (err error) {
		events, err = nl.Subscribe(syscall.NETLINK_ROUTE, syscall.RTNLGRP_NEIGH)
		return err
	})
	const wait = time.Second // charged, it would cost 40 s
	done, ended := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	go func() {
		defer close(ended)
		follow(events, done, func(*syscall.NetlinkMessage) {}, func() {
			calls.Add(1)
			time.Sleep(wait)
		})
	}()
	n := netlink.Neigh{LinkIndex: w.table.index, State: netlink.NUD_PERMANENT, IP: lab.B.Addr4().AsSlice(), HardwareAddr: lab.B.MAC()}
	start := time.Now()
	for i := 0; calls.Load() < 2 && time.Since(start) < 20*wait; i++ {
		n.HardwareAddr[5] = byte(i)
		w.must(w.nl[lab.A].NeighSet(&n))
	}
	if calls.Load() < 2 {
		t.Errorf("the table does not read everything again for %v", time.Since(start))
	}
	close(done)
	events.Close()
	<-ended
}
