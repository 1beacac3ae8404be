package lease

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func uid() string { return fmt.Sprint(os.Getuid()) }

func policy(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy("policy", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The first rule that matches decides.
func TestVerdicts(t *testing.T) {
	p := policy(t, `
# who       what
user:7      interface=eth0 leases=2 memory=64M rate=8M weight=3
user:7      interface=eth* mode=shared,direct	# wider
group:100   mode=direct interface=lo,enp?
`)
	who := func(uid, gid uint32, groups ...uint32) Subject { return Subject{Holder{uid, gid, 1}, groups} }
	for _, c := range []struct {
		who    Subject
		ifname string
		mode   Mode
		rule   string // or "" if denied
	}{
		{who(7, 7), "eth0", Shared, "policy:3"},
		{who(7, 7), "eth0", Direct, "policy:4"},
		{who(7, 7), "eth17", Shared, "policy:4"},
		{who(7, 7), "lo", Shared, ""},
		{who(8, 7), "eth0", Shared, ""},
		{who(0, 0), "eth0", Shared, ""}, // root has no right of its own
		{who(9, 100), "lo", Direct, "policy:5"},
		{who(9, 9, 50, 100), "enp1", Direct, "policy:5"},
		{who(9, 9, 50, 100), "enp10", Direct, ""},
		{who(9, 9, 50, 100), "lo", Shared, ""},
		{who(100, 9), "lo", Direct, ""}, // a user is not a group
	} {
		r, err := p.find(&c.who, &Request{Interface: c.ifname, Mode: c.mode})
		got := ""
		if err == nil {
			got = r.name
		} else {
			wants(t, "denied", err, ErrDenied)
		}
		if got != c.rule {
			t.Errorf("%v %s %s: rule %q, want %q", c.who, c.ifname, c.mode, got, c.rule)
		}
	}
	if r := p.rules[0]; r.leases != 2 || r.bytes != 64<<20 || r.limits != (Limits{Rate: 1e6, Weight: 3}) {
		t.Errorf("rule %+v", r)
	}
	nobody := who(9, 9)
	if n := p.connections(&nobody); n != 0 {
		t.Errorf("a user without rules may have %d connections", n)
	}
}

// An error names the line and the word.
func TestPolicyErrors(t *testing.T) {
	for text, want := range map[string]string{
		"user":                             `policy:2: "user" is neither user:NAME nor group:NAME`,
		"host:1":                           `policy:2: "host:1" is neither user:NAME nor group:NAME`,
		"user:":                            `policy:2: "user:" is neither user:NAME nor group:NAME`,
		"user:no-such-user":                "policy:2: user: unknown user no-such-user",
		"group:no-such-group":              "policy:2: group: unknown group no-such-group",
		"user:4294967295":                  "not a number of a user",
		"user:7x":                          "not a number of a user",
		"user:1 leases":                    "leases has no value: write leases=VALUE, without spaces",
		"user:1 leases=0":                  "leases=: \"0\" is not a number",
		"user:1 leases=1000000":            "leases=: \"1000000\" is not a number",
		"user:1 leases=1K":                 "leases=: \"1K\" is not a number",
		"user:1 memory=64m":                "memory=: \"64m\" is not a size: write it as 256M or 2G",
		"user:1 memory=9999999T":           "memory=: \"9999999T\" is not a size",
		"user:1 memory=K":                  "memory=: \"K\" is not a size",
		"user:1 memory=-1":                 "memory=: \"-1\" is not a size",
		"user:1 rate=7":                    "rate=: \"7\" is less than a byte a second",
		"user:1 weight=1001":               "weight=: \"1001\" is not a number from 1 to 1000",
		"user:1 mode=shared,":              "mode=: \"\" is not a mode",
		"user:1 interface=eth0,":           "interface=: \"\" is not a pattern",
		"user:1 interface=[":               "interface=: \"[\" is not a pattern",
		"user:1 color=red":                 "\"color\" is not a word: write one of interface= mode= leases= memory= rate= weight=",
		"user:1 leases=1 leases=2":         "leases= is there twice",
		"user:1 " + strings.Repeat("x", 9): "is not a word",
		"user:1\x00":                       "not a text in UTF-8",
		"\xff":                             "not a text in UTF-8",
	} {
		_, err := ParsePolicy("policy", []byte("\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := new(Policy).Allow(" "); err == nil {
		t.Error("an empty rule is allowed")
	}
}

// --allow takes a rule, and names are looked up.
func TestAllow(t *testing.T) {
	p := new(Policy)
	if err := p.Allow("user:root mode=direct"); err != nil {
		t.Fatal(err)
	}
	who := Subject{}
	if r, err := p.find(&who, &Request{Interface: "x", Mode: Direct}); err != nil || r.name != `"user:root mode=direct"` {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte("user:1 interface=eth0 mode=shared leases=2 memory=64M rate=8M weight=3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePolicy("f", text)
		if err != nil {
			return
		}
		who := Subject{Holder: Holder{UID: 1}}
		if r, err := p.find(&who, &Request{Interface: "eth0", Mode: Shared}); err == nil {
			_ = r.room(1, 1, nil)
		}
	})
}
