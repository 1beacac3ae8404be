package ends

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// at returns a request from 10.0.0.n for a row of a job.
func at(n byte, job uint64, more bool) request {
	return request{from: netip.AddrFrom4([4]byte{10, 0, 0, n}),
		ask: workload.Ask{Spec: plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 1 << 20, Connections: 2}, More: more}, Job: job, Session: job}}
}

// TestDoor: if a target is reserved for one client, a second client learns which client has the target, and since when.
// The rows of a job are served one after the other. A job that sends no further request loses the target after jobGap.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newArbiter()
		take := func(want byte) []request {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, refused, ok := d.awaitHolder(ctx)
			if !ok || r.from.As4()[3] != want {
				t.Fatalf("took %v, %t, want that of 10.0.0.%d", r.from, ok, want)
			}
			return refused
		}
		enter := func(r request, want string) {
			t.Helper()
			err := d.admit(r)
			if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || want == "taken" && !workload.IsTaken([]byte(err.Error()))) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		enter(at(1, 1, true), "")
		enter(at(2, 2, false), "")
		if refused := take(1); len(refused) != 1 || refused[0].from != at(2, 2, false).from {
			t.Errorf("refused %v, want the second", refused)
		}
		time.Sleep(12 * time.Second)
		if got, want := d.refusal().Error(), "taken by 10.0.0.1 since "; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, " (12s): bandwidth send 1 MiB × 2") {
			t.Errorf("got %q", got)
		}
		enter(at(2, 2, false), "taken")
		second := at(1, 1, true)
		second.ask.Index = 1
		enter(second, "")
		other := at(1, 3, true)
		other.ask.Index = 1
		enter(other, "connection 2 is of a row that is not being measured")
		d.rowMeasured()
		enter(at(2, 2, false), "taken") // the job has announced another row
		d.endRow(true)
		enter(at(2, 2, false), "taken")
		enter(at(1, 1, true), "")
		take(1)
		if len(d.joinRequests) != 0 {
			t.Error("a connection of the row before is left")
		}
		d.endRow(true)
		began := time.Now()
		time.AfterFunc(jobGap+time.Millisecond, func() { enter(at(2, 2, false), "") })
		take(2)
		if took := time.Since(began); took > 2*jobGap {
			t.Errorf("the target was free after %s, want %s", took, jobGap)
		}
		d.rowMeasured()
		enter(at(3, 3, false), "") // the target will be free soon
		d.endRow(false)
		take(3)
		d.endRow(false)
	})
}

// TestPenalty: requests from an address whose row failed are refused for a time, which doubles with each failure.
// Requests from this address that were already waiting do not get the target. Requests from other addresses are not
// refused. A row that succeeds clears the penalty.
func TestPenalty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newArbiter()
		row := func(n byte) {
			t.Helper()
			if err := d.admit(at(n, uint64(n), false)); err != nil {
				t.Fatalf("10.0.0.%d: %v", n, err)
			}
			if r, _, ok := d.pop(); !ok || r.from != at(n, 0, false).from {
				t.Fatalf("took %v, %t, want that of 10.0.0.%d", r.from, ok, n)
			}
		}
		fail := func() {
			t.Helper()
			d.rowMeasured()
			for _, n := range []byte{1, 1, 2} { // these requests wait for the end of the row
				if err := d.admit(at(n, uint64(n), false)); err != nil {
					t.Fatal(err)
				}
			}
			if refused, _ := d.recordFailure(at(1, 0, false).from); len(refused) != 2 || refused[0].from != at(1, 0, false).from {
				t.Fatalf("refused %v, want two of 10.0.0.1", refused)
			}
			d.endRow(false)
			if r, _, ok := d.pop(); !ok || r.from != at(2, 0, false).from {
				t.Fatalf("took %v, %t, want that of 10.0.0.2", r.from, ok)
			}
			d.endRow(false)
		}
		for _, held := range []time.Duration{penaltyMin, 2 * penaltyMin, 4 * penaltyMin, 8 * penaltyMin, penaltyMax, penaltyMax} {
			row(1)
			fail()
			time.Sleep(held - time.Millisecond)
			err := d.admit(at(1, 1, false))
			if want := "kept for other clients for 1ms: the last row of 10.0.0.1 failed"; err == nil || err.Error() != want || !workload.IsTaken([]byte(want)) {
				t.Errorf("got %v, want %s", err, want)
			}
			time.Sleep(time.Millisecond)
		}
		row(1)
		d.served(at(1, 0, false).from)
		d.endRow(false)
		row(1)
		fail()
		time.Sleep(penaltyMin + penaltyMemory)
		row(1)
		fail()
		time.Sleep(penaltyMin)
		row(1)
	})
}

// TestTurns: an address that begins one job after the other does not keep other clients out, also if it disconnects
// before each row ends, which has no penalty. Nobody waits for a client that has given up.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newArbiter()
		try := func(n byte, job uint64, want string) {
			t.Helper()
			if err := d.admit(at(n, job, false)); (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), want) || !workload.IsTaken([]byte(err.Error()))) {
				t.Errorf("10.0.0.%d got %v, want %q", n, err, want)
			}
		}
		for job := range uint64(3) {
			try(1, job, "")
			d.pop()
			try(2, 9, "taken by 10.0.0.1")
			time.Sleep(waitEvery)
			try(2, 9, "taken by 10.0.0.1")
			d.endRow(false)
			try(1, job+1, "kept for other clients for 500ms: another client is waiting")
			time.Sleep(waitEvery)
			try(2, 9, "")
			d.pop()
			d.rowMeasured()
			try(2, 10, "") // nobody else waits
			d.endRow(false)
			d.pop()
			d.endRow(false)
		}
		try(1, 4, "")
		d.pop()
		try(2, 9, "taken by 10.0.0.1")
		d.endRow(false)
		time.Sleep(yieldTime)
		try(1, 5, "")
	})
}

// TestPenaltiesBounded: the number of penalties is limited; a new penalty replaces the oldest one.
func TestPenaltiesBounded(t *testing.T) {
	p, now := penalties{}, time.Unix(1, 0)
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for i := range 2 * maxPenalties {
		p.add(address(i), now)
		now = now.Add(time.Microsecond)
	}
	if len(p) != maxPenalties || p.left(address(maxPenalties-1), now) != 0 || p.left(address(maxPenalties), now) <= 0 {
		t.Errorf("%d addresses, the first of them are kept", len(p))
	}
}

// TestDoorFull: the number of waiting requests is limited.
func TestDoorFull(t *testing.T) {
	d := newArbiter()
	for i := range maxWaiting + 3 {
		if err := d.admit(at(byte(i), uint64(i), false)); (err != nil) != (i >= maxWaiting) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// TestAwait: a client requests a busy target again until the target is free or the given time is over.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, notes := time.Now(), 0
		try := func() error {
			if time.Since(began) < 3*time.Second {
				return &workload.TakenError{Station: plan.Station{Peer: netip.MustParseAddr("10.0.0.1")}, By: "taken by 10.0.0.2 since 11:12:13 (4s): bandwidth send 1 MiB"}
			}
			return nil
		}
		note := func(string) { notes++ }
		if err := retryWhileTaken(t.Context(), 10*time.Second, note, try); err != nil || time.Since(began) > 3*time.Second+waitEvery || notes < 10 {
			t.Errorf("%v after %s with %d notes", err, time.Since(began), notes)
		}
		began = time.Now()
		const want = "10.0.0.1 is taken by 10.0.0.2 since 11:12:13 (4s): bandwidth send 1 MiB, after waiting for 2s: " +
			"try again later, or wait longer as with --wait 1m"
		if err := retryWhileTaken(t.Context(), 2*time.Second, note, try); err == nil || err.Error() != want || time.Since(began) > 3*time.Second {
			t.Errorf("after %s\n%v\nwant\n%s", time.Since(began), err, want)
		}
	})
}

// TestSampler: the number of log lines about refused requests is limited, and every refusal is counted in one of these
// lines.
func TestSampler(t *testing.T) {
	var s sampler
	now, lines := time.Unix(1, 0), 0
	for range 1000 {
		if s.allow(now) {
			lines++
		}
		now = now.Add(refusalEvery / 100)
	}
	if lines != 10 || s.note() != " (and 99 refused before)" {
		t.Errorf("%d lines of 1000, the last with%s", lines, s.note())
	}
}
