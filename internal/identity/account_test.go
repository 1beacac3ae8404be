package identity

import (
	"testing"
	"time"
)

func newAccount(l Limits) *Account {
	a := new(Account)
	a.setLimits(l)
	return a
}

// TestAccountLimits: each limit stands against a request as long as it is reached, and says whether waiting helps.
func TestAccountLimits(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, tc := range []struct {
		name string
		l    Limits
		n    int // requests that find room
		want Shortage
		free func(*Account)
	}{
		{"connections", Limits{Connections: 3}, 3, Lasting, func(a *Account) { a.Confirm(); a.Disconnect() }},
		{"half-open", Limits{HalfOpen: 2}, 2, Passing, (*Account).Confirm},
		{"bytes", Limits{Bytes: 2*ConnectionBytes + 1}, 2, Lasting, func(a *Account) { a.Confirm(); a.Disconnect() }},
		{"bytes of early packets", Limits{Bytes: 3 * ConnectionBytes}, 3, Lasting, func(a *Account) { a.Hold(-ConnectionBytes) }},
		{"rate", Limits{Rate: 5}, 5, Passing, func(*Account) { at = at.Add(time.Second / 5) }},
		{"half-open before connections", Limits{Connections: 2, HalfOpen: 2}, 2, Passing, func(a *Account) { a.Confirm(); a.Disconnect() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAccount(tc.l)
			for i := range tc.n {
				if got := a.Connect(at); got != NoShortage {
					t.Fatalf("request %d: %v", i, got)
				}
			}
			for range 2 {
				if got := a.Connect(at); got != tc.want {
					t.Fatalf("one request too many: got %v, want %v", got, tc.want)
				}
			}
			tc.free(a)
			if got := a.Connect(at); got != NoShortage {
				t.Errorf("there is room again: got %v", got)
			}
		})
	}
}

// TestAccountRate: the bucket has the requests of one second, however long nobody has asked.
func TestAccountRate(t *testing.T) {
	a, at := newAccount(Limits{Rate: 10}), time.Unix(1000, 0)
	for _, wait := range []time.Duration{0, time.Hour} {
		at = at.Add(wait)
		n := 0
		for a.Connect(at) == NoShortage {
			n++
		}
		if n != 10 {
			t.Errorf("after %v: %d requests at once, want 10", wait, n)
		}
	}
}

// TestAccountHold: the bytes of a peer are bounded.
func TestAccountHold(t *testing.T) {
	a := newAccount(Limits{Bytes: ConnectionBytes + 4096})
	if a.Connect(time.Time{}) != NoShortage || !a.MayHold(4096) || a.MayHold(4097) {
		t.Error("the limit is another")
	}
	a.Hold(4096)
	if a.MayHold(1) {
		t.Error("no room, but the account has some")
	}
	a.Hold(-4096)
	if !a.MayHold(4096) {
		t.Error("the room does not come back")
	}
	if unlimited := new(Account); !unlimited.MayHold(1 << 40) {
		t.Error("an account without a limit has one")
	}
}

// TestAccountsOutliveReload: an account keeps its counts at a Reload, and gets the new limits. That of a peer who is gone
// ends with its last connection.
func TestAccountsOutliveReload(t *testing.T) {
	s := open(t, files(t, text(1)+" connections=1\n"+text(2)+"\n"))
	at := time.Unix(1000, 0)
	find := func(n byte) *Peer { return s.Current().Policy.Find(peerID(n)) }
	one, two := s.Account(find(1)), s.Account(find(2))
	if one.Connect(at) != NoShortage || one.Connect(at) != Lasting || two.Connect(at) != NoShortage {
		t.Fatal("the first connections")
	}
	reload := func(peers string) {
		t.Helper()
		write(t, s.files.Peers, peers, 0o600)
		if _, err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	reload(text(1) + " connections=2\n")
	if s.Account(find(1)) != one || one.Connect(at) != NoShortage || one.Connect(at) != Lasting {
		t.Error("the account has not the new limit, or has lost its counts")
	}
	if len(s.accounts.byID) != 2 {
		t.Errorf("%d accounts, but a connection of the second peer is open", len(s.accounts.byID))
	}
	two.Confirm()
	two.Disconnect()
	reload(text(1) + "\n")
	if len(s.accounts.byID) != 1 {
		t.Errorf("%d accounts after the last connection of a peer who is gone", len(s.accounts.byID))
	}
}

// TestAccountGuesses: a peer with too many wrong remote keys waits a second for each further connection.
func TestAccountGuesses(t *testing.T) {
	a, at := new(Account), time.Unix(1000, 0)
	for range maxGuesses {
		if a.Connect(at) != NoShortage {
			t.Fatal("a peer with few wrong keys may not connect")
		}
		a.Guess(at)
	}
	for range 3 {
		if got := a.Connect(at); got != Passing {
			t.Errorf("after too many wrong keys: %v", got)
		}
		at = at.Add(time.Second)
		if got := a.Connect(at); got != NoShortage {
			t.Errorf("a second later: %v", got)
		}
		a.Guess(at)
	}
}
