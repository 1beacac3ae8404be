package dat

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

func init() { roles["listener"] = beListener }

// beListener is a process that opens an adapter, and executes lines of its standard input: "psp QUAL", "rsp QUAL" and
// "any 0" create a service point, "free QUAL" frees it, "close 0" closes the adapter. It answers each with the qualifier
// or the error.
func beListener() error {
	name, o := childOptions()
	ia, err := Open(name, o)
	if err != nil {
		return err
	}
	evd, err := ia.CreateEVD(8, nil, EVDCR)
	if err != nil {
		return err
	}
	points := make(map[ConnQual]func() error)
	calls := map[string]func(qual ConnQual) (ConnQual, error){
		"psp": func(qual ConnQual) (ConnQual, error) {
			p, err := ia.CreatePSP(qual, evd, PSPConsumer)
			points[qual] = p.Free
			return qual, err
		},
		"rsp": func(qual ConnQual) (ConnQual, error) {
			r, err := ia.CreateRSP(qual, nil, evd)
			points[qual] = r.Free
			return qual, err
		},
		"any": func(ConnQual) (ConnQual, error) {
			p, err := ia.CreatePSPAny(evd, PSPConsumer)
			if err != nil {
				return 0, err
			}
			points[p.Qual()] = p.Free
			return p.Qual(), nil
		},
		"free":  func(qual ConnQual) (ConnQual, error) { return qual, points[qual]() },
		"close": func(ConnQual) (ConnQual, error) { return 0, ia.CloseWith(CloseAbrupt) },
	}
	fmt.Println("open")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var call string
		var qual ConnQual
		if _, err := fmt.Sscan(in.Text(), &call, &qual); err != nil {
			return err
		}
		if qual, err = calls[call](qual); errors.Is(err, ErrConnQualInUse) {
			err = ErrConnQualInUse // without its text
		}
		fmt.Println(qual, err)
	}
	return nil
}

func startListener(t *testing.T, name string, within func(func() error) error) child {
	c := startChild(t, "listener", name, 0, 0, within)
	c.does(t, "", "open")
	return c
}

// does lets a listener make a call.
func (c child) does(t *testing.T, call, want string) {
	t.Helper()
	if call != "" {
		_ = must(fmt.Fprintln(c.in, call))(t)
	}
	if got := c.says(t); got != want {
		t.Errorf("%s: %s, want %s", call, got, want)
	}
}

func here(start func() error) error { return start() }

// TestQualifierOfAnotherProcess: over udp, one process of a host at a time listens on a qualifier of an address.
func TestQualifierOfAnotherProcess(t *testing.T) {
	const free, inUse = "5 <nil>", "5 DAT_CONN_QUAL_IN_USE"
	name := "udp:" + ownHost(20).String()
	a, b := startListener(t, name, here), startListener(t, name, here)
	for _, kinds := range [][2]string{{"psp", "psp"}, {"psp", "rsp"}, {"rsp", "psp"}, {"rsp", "rsp"}} {
		for _, side := range [][2]child{{a, b}, {b, a}} {
			side[0].does(t, kinds[0]+" 5", free)
			side[1].does(t, kinds[1]+" 5", inUse)
			side[0].does(t, "free 5", free)
			side[1].does(t, kinds[1]+" 5", free)
			side[1].does(t, "free 5", free)
		}
	}
	a.does(t, "any 0", "49153 <nil>")
	b.does(t, "any 0", "49154 <nil>")
	b.does(t, "psp 49153", "49153 DAT_CONN_QUAL_IN_USE")
	a.does(t, "psp 5", free)
	startListener(t, "udp:"+ownHost(21).String(), here).does(t, "psp 5", free) // another address
	startListener(t, name+" port=17611", here).does(t, "psp 5", free)          // clients are given this port
	a.does(t, "close 0", "0 <nil>")
	b.does(t, "psp 5", free)
	b.kill()
	a = startListener(t, name, here)
	a.does(t, "psp 5", free)
}

// TestRequestToOneOfTwoProcesses: a request reaches the process that has the qualifier, or fails.
func TestRequestToOneOfTwoProcesses(t *testing.T) {
	server, client := ownHost(22), ownHost(23)
	b := hostOn(t, server, "", Options{})
	b.listen(testQual, 8)
	other := startListener(t, "udp:"+server.String(), here)
	other.does(t, fmt.Sprint("psp ", testQual), fmt.Sprint(testQual, " DAT_CONN_QUAL_IN_USE"))
	a := hostOn(t, client, "", Options{})
	proves(pair(a, b, nil))
	ok(t, b.psp.Free())
	other.does(t, fmt.Sprint("psp ", testQual), fmt.Sprint(testQual, " <nil>"))
	p := a.point(nil)
	ok(t, p.Connect(server, testQual, patience, nil))
	p.expect(EventNonPeerRejected)
}

// TestQualifierBesideAFXDP: a process with an interface over AF_XDP, and one with the address of the interface over UDP,
// do not listen on the same qualifier.
func TestQualifierBesideAFXDP(t *testing.T) {
	x := newXDP(t).(xdpNet)
	a := newHost(t, x, 0, Options{})
	a.listen(5, 8)
	b := startListener(t, "udp:"+lab.A.Addr4().String(), func(start func() error) error { return x.Do(lab.A, start) })
	b.does(t, "psp 5", "5 DAT_CONN_QUAL_IN_USE")
	b.does(t, "psp 6", "6 <nil>")
	_, err := a.ia.CreatePSP(6, a.cr, PSPConsumer)
	explains(t, "qualifier 6", err, ErrConnQualInUse, "another process", lab.A.Addr4().String())
	ok(t, a.psp.Free())
	b.does(t, "psp 5", "5 <nil>")
}
