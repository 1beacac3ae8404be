package dat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var registryRules = []topic{
	{"dat_registry_list_providers", []rule{
		{"no file is an empty registry", func(t *testing.T, _ network) {
			t.Setenv(registryVar, filepath.Join(t.TempDir(), "absent"))
			if list := must(Providers())(t); len(list) != 0 {
				t.Errorf("%v", list)
			}
		}},
		{"the entries of the file that DAT_OVERRIDE names are listed in order", func(t *testing.T, _ network) {
			setRegistry(t, "# two\nb u2.0 threadsafe default libdatxdp.so v udp:127.0.0.1 \"\"\na u1.2 nonthreadsafe nondefault libother.so v \"\" \"\"\n")
			want := []ProviderInfo{{"b", 2, 0, true}, {"a", 1, 2, false}}
			if got := must(Providers())(t); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}},
		{"a line that is wrong is named, and the others are listed", func(t *testing.T, _ network) {
			setRegistry(t, "one\n"+goodLine+"\nthree\n")
			list, err := Providers()
			wants(t, "list", err, ErrInternalError)
			for _, where := range []string{"line 1:", "line 3:", os.Getenv(registryVar)} {
				if err == nil || !strings.Contains(err.Error(), where) {
					t.Errorf("%q is not in %v", where, err)
				}
			}
			if len(list) != 1 || list[0].Name != "eth0" {
				t.Errorf("%v", list)
			}
		}},
		{"a file that cannot be read is an internal error", func(t *testing.T, _ network) {
			large := filepath.Join(t.TempDir(), "large")
			ok(t, os.WriteFile(large, nil, 0o600))
			ok(t, os.Truncate(large, maxRegistry+1))
			for _, name := range []string{t.TempDir(), os.DevNull, large} {
				t.Setenv(registryVar, name)
				_, err := Providers()
				wants(t, name, err, ErrInternalError)
			}
		}},
		{"who was added is listed behind", func(t *testing.T, _ network) {
			setRegistry(t, goodLine)
			info := ProviderInfo{"added", 2, 0, true}
			add(t, info, nil)
			if list := must(Providers())(t); len(list) != 2 || list[1] != info {
				t.Errorf("%v", list)
			}
			ok(t, RemoveProvider(info))
			if list := must(Providers())(t); len(list) != 1 {
				t.Errorf("after it was removed: %v", list)
			}
		}},
		{"an entry of this provider opens by its name", func(t *testing.T, n network) {
			d := deviceOf(t, n)
			setRegistry(t, fmt.Sprintf("wire u2.0 threadsafe default /usr/lib/libdatxdp.so.2 datxdp.0.1 \"%s\" \"\"", d.device(0)))
			ia := must(d.openAs(0, "wire", Options{}))(t)
			again := must(d.openAs(0, d.device(0), Options{}))(t)
			if p := must(ia.Query())(t); p.Name != "wire" || p.Address != n.addr(0) && p.Address != d.addr(0) {
				t.Errorf("opened %s with address %v", p.Name, p.Address)
			}
			if p := must(again.Query())(t); p.Name != d.device(0) || again.a != ia.a {
				t.Errorf("the device by itself is %s, and another adapter", p.Name)
			}
			ok(t, again.Close(CloseGraceful))
			ok(t, ia.Close(CloseGraceful))
		}},
		{"an entry of another library is not found", func(t *testing.T, _ network) {
			setRegistry(t, "wire u2.0 threadsafe default libdaplofa.so.2 dapl.2.0 \"udp:127.0.0.1\" \"\"")
			_, err := Open("wire", Options{})
			wants(t, "open", err, with(ErrProviderNotFound, SubNameNotRegistered))
		}},
		{"an entry for another major version is not found", func(t *testing.T, _ network) {
			setRegistry(t, "wire u1.2 threadsafe default libdatxdp.so v \"udp:127.0.0.1\" \"\"")
			_, err := Open("wire", Options{})
			wants(t, "open", err, with(ErrProviderNotFound, SubMajorNotFound))
		}},
		{"a name that stands for several versions opens that of this API", func(t *testing.T, n network) {
			d := deviceOf(t, n)
			line := func(v string) string {
				return fmt.Sprintf("wire %s threadsafe default libdatxdp.so v \"%s\" \"\"\n", v, d.device(0))
			}
			setRegistry(t, line("u1.2")+line("u2.3")+line("u3.0"))
			ok(t, must(d.openAs(0, "wire", Options{}))(t).Close(CloseGraceful))
		}},
		{"a registry that is wrong is in nobody's way who names a device", func(t *testing.T, n network) {
			d := deviceOf(t, n)
			setRegistry(t, "wrong\n")
			ok(t, must(d.openAs(0, d.device(0), Options{}))(t).Close(CloseGraceful))
			_, err := Open("wire", Options{})
			wants(t, "open", err, ErrProviderNotFound)
			if err == nil || !strings.Contains(err.Error(), "line 1") {
				t.Errorf("the error does not say what is wrong with the registry: %v", err)
			}
		}},
	}},
	{"dat_registry_add_provider", []rule{
		{"what was added opens by its name, with the options of the open", func(t *testing.T, n network) {
			add(t, ProviderInfo{"mine", 2, 0, true}, func(name string, o Options) (*IA, error) {
				if name != "mine" || o.AsyncQLen != 100 {
					t.Errorf("open was called with %s, %+v", name, o)
				}
				return n.open(0, o)
			})
			ia := must(Open("mine", Options{AsyncQLen: 100}))(t)
			ok(t, ia.Close(CloseGraceful))
		}},
		{"it goes before an entry of the registry, and before a device", func(t *testing.T, n network) {
			setRegistry(t, goodLine)
			for _, name := range []string{"eth0", "udp:192.0.2.1"} {
				add(t, ProviderInfo{name, 2, 0, true}, func(_ string, o Options) (*IA, error) { return n.open(0, o) })
				ok(t, must(Open(name, Options{}))(t).Close(CloseGraceful))
			}
		}},
		{"a name can be added once", func(t *testing.T, _ network) {
			info := ProviderInfo{"mine", 2, 0, true}
			add(t, info, nil)
			for _, again := range []ProviderInfo{info, {"mine", 2, 1, true}, {"mine", 2, 0, false}} {
				wants(t, "again", AddProvider(again, openNothing), ErrProviderAlreadyRegistered)
			}
		}},
		{"no name, a long name and no function are refused", func(t *testing.T, _ network) {
			wants(t, "no name", AddProvider(ProviderInfo{}, openNothing), ErrInvalidParameter)
			wants(t, "long name", AddProvider(ProviderInfo{Name: strings.Repeat("n", MaxName)}, openNothing), ErrInvalidParameter)
			wants(t, "no function", AddProvider(ProviderInfo{Name: "mine"}, nil), ErrInvalidParameter)
			add(t, ProviderInfo{Name: strings.Repeat("n", MaxName-1)}, nil)
		}},
		{"its error is that of Open", func(t *testing.T, _ network) {
			info := ProviderInfo{"mine", 2, 0, true}
			add(t, info, func(string, Options) (*IA, error) { return nil, errors.ErrUnsupported })
			_, err := Open("mine", Options{})
			wants(t, "open", err, errors.ErrUnsupported)
			ok(t, RemoveProvider(info))
		}},
		{"an open that gives nothing, or an adapter that is closed, is an error", func(t *testing.T, n network) {
			info := ProviderInfo{"mine", 2, 0, true}
			closed := must(n.open(0, Options{}))(t)
			ok(t, closed.Close(CloseGraceful))
			for _, tc := range []struct {
				ia   *IA
				want error
			}{{nil, ErrInternalError}, {closed, ErrInvalidHandle}} {
				add(t, info, func(string, Options) (*IA, error) { return tc.ia, nil })
				_, err := Open("mine", Options{})
				wants(t, "open", err, tc.want)
				ok(t, RemoveProvider(info))
			}
		}},
	}},
	{"dat_registry_remove_provider", []rule{
		{"what was not added is refused", func(t *testing.T, _ network) {
			info := ProviderInfo{"mine", 2, 0, true}
			wants(t, "never added", RemoveProvider(info), ErrInvalidParameter)
			add(t, info, nil)
			for _, other := range []ProviderInfo{{"mine", 2, 0, false}, {"mine", 1, 0, true}, {"mine", 2, 1, true}, {"other", 2, 0, true}} {
				wants(t, "another", RemoveProvider(other), ErrInvalidParameter)
			}
			ok(t, RemoveProvider(info))
			wants(t, "again", RemoveProvider(info), ErrInvalidParameter)
		}},
		{"what has an open adapter is in use", func(t *testing.T, n network) {
			info := ProviderInfo{"mine", 2, 0, true}
			add(t, info, func(_ string, o Options) (*IA, error) { return n.open(0, o) })
			for _, flags := range []CloseFlags{CloseGraceful, CloseAbrupt} {
				ia := must(Open("mine", Options{}))(t)
				wants(t, "with an open adapter", RemoveProvider(info), ErrProviderInUse)
				ok(t, ia.Close(flags))
			}
			ok(t, RemoveProvider(info))
		}},
		{"its name is not found any more and can be added again", func(t *testing.T, _ network) {
			info := ProviderInfo{"mine", 2, 0, true}
			for range 2 {
				add(t, info, nil)
				ok(t, RemoveProvider(info))
				_, err := Open("mine", Options{})
				wants(t, "open", err, with(ErrProviderNotFound, SubNameNotRegistered))
			}
		}},
	}},
	{"dat_strerror", []rule{
		{"each type has its name and number", func(t *testing.T, _ network) {
			for i, want := range []struct {
				err  error
				name string
			}{1: {ErrAbort, "DAT_ABORT"}, 2: {ErrConnQualInUse, "DAT_CONN_QUAL_IN_USE"},
				3: {ErrInsufficientResources, "DAT_INSUFFICIENT_RESOURCES"}, 4: {ErrInternalError, "DAT_INTERNAL_ERROR"},
				5: {ErrInvalidHandle, "DAT_INVALID_HANDLE"}, 6: {ErrInvalidParameter, "DAT_INVALID_PARAMETER"},
				7: {ErrInvalidState, "DAT_INVALID_STATE"}, 8: {ErrLengthError, "DAT_LENGTH_ERROR"},
				9: {ErrModelNotSupported, "DAT_MODEL_NOT_SUPPORTED"}, 10: {ErrProviderNotFound, "DAT_PROVIDER_NOT_FOUND"},
				11: {ErrPrivilegesViolation, "DAT_PRIVILEGES_VIOLATION"}, 12: {ErrProtectionViolation, "DAT_PROTECTION_VIOLATION"},
				13: {ErrQueueEmpty, "DAT_QUEUE_EMPTY"}, 14: {ErrQueueFull, "DAT_QUEUE_FULL"}, 15: {ErrTimeoutExpired, "DAT_TIMEOUT_EXPIRED"},
				16: {ErrProviderAlreadyRegistered, "DAT_PROVIDER_ALREADY_REGISTERED"}, 17: {ErrProviderInUse, "DAT_PROVIDER_IN_USE"},
				18: {ErrInvalidAddress, "DAT_INVALID_ADDRESS"}, 19: {ErrInterruptedCall, "DAT_INTERRUPTED_CALL"},
				20: {ErrConnQualUnavailable, "DAT_CONN_QUAL_UNAVAILABLE"}, 21: {ErrReservedLMR, "DAT_RESERVED_LMR"},
				22: {ErrPortInUse, "DAT_PORT_IN_USE"}, 23: {ErrCommNotSupported, "DAT_COMM_NOT_SUPPORTED"},
				24: {ErrNotImplemented, "DAT_NOT_IMPLEMENTED"}}[1:] {
				r, number := want.err.(Return), Return(i+1)<<16
				if i == 23 {
					number = 0x3fff0000
				}
				if major, minor, err := r.Strings(); r != number || major != want.name || minor != "" || err != nil {
					t.Errorf("%#x is %q, %q, %v, want %#x, %s", uint32(r), major, minor, err, uint32(number), want.name)
				}
			}
		}},
		{"success has a name too", func(t *testing.T, _ network) {
			if major, minor, err := Success.Strings(); major != "DAT_SUCCESS" || minor != "" || err != nil {
				t.Errorf("%q, %q, %v", major, minor, err)
			}
		}},
		{"each subtype has a name of its own", func(t *testing.T, _ network) {
			seen := map[string]bool{"": true}
			for s := Subtype(1); s <= SubThreadSafetyNotFound; s++ {
				_, minor, err := with(ErrInvalidState, s).(Return).Strings()
				if err != nil || seen[minor] || !strings.HasPrefix(minor, "DAT_") {
					t.Errorf("%d is %q, %v", s, minor, err)
				}
				seen[minor] = true
			}
			for s, want := range map[Subtype]string{1: "DAT_SUB_INTERRUPTED", 10: "DAT_RESOURCE_SRQ", 12: "DAT_INVALID_HANDLE_EP",
				36: "DAT_INVALID_HANDLE10", 37: "DAT_INVALID_ARG1", 46: "DAT_INVALID_ARG10", 47: "DAT_INVALID_STATE_EP_UNCONNECTED",
				63: "DAT_INVALID_STATE_EP_UNCONFIGURED", 78: "DAT_INVALID_STATE_EVD_WAITER", 85: "DAT_INVALID_STATE_SRQ_OPERATIONAL",
				88: "DAT_INVALID_STATE_SRQ_SHUTDOWN", 89: "DAT_PRIVILEGES_READ", 100: "DAT_NAME_NOT_REGISTERED", 103: "DAT_THREAD_SAFETY_NOT_FOUND"} {
				if s.String() != want {
					t.Errorf("%d is %s, want %s", s, s, want)
				}
			}
		}},
		{"an unknown type and an unknown subtype are refused", func(t *testing.T, _ network) {
			for _, r := range []Return{0x00180000, 0x10000000, 0x3ffe0000, 0x00070000 | 104, 0x0007ffff, 104} {
				_, _, err := r.Strings()
				wants(t, fmt.Sprintf("%#x", uint32(r)), err, ErrInvalidParameter)
				if r.Error() == "" {
					t.Errorf("%#x has no text", uint32(r))
				}
			}
		}},
		{"the class is not looked at", func(t *testing.T, _ network) {
			if major, minor, err := Return(0x80000000 | 0x00070000 | 52).Strings(); major != "DAT_INVALID_STATE" ||
				minor != "DAT_INVALID_STATE_EP_DISCONNECTED" || err != nil {
				t.Errorf("%q, %q, %v", major, minor, err)
			}
		}},
		{"an error is its type whatever the subtype, and not another subtype", func(t *testing.T, _ network) {
			e := with(ErrInvalidState, SubInvalidStateEPConnected)
			if !errors.Is(e, ErrInvalidState) || !errors.Is(e, e) || errors.Is(e, ErrInvalidHandle) ||
				errors.Is(e, with(ErrInvalidState, SubInvalidStateEPReserved)) || errors.Is(ErrInvalidState, e) {
				t.Error("errors.Is compares otherwise")
			}
		}},
		{"calls say which handle, which argument and which state", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, &EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 1})
			idle := a.point(nil)
			none := struct {
				ep  *EP
				pz  *PZ
				lmr *LMR
				psp *PSP
				cr  *CR
			}{}
			ok(t, x.PostRecv(nil, 1, 0))
			outside := []LMRTriplet{x.lmr.Segment(pointMem, 1)}
			for want, err := range map[error]error{
				with(ErrInvalidHandle, SubInvalidHandleEP):          none.ep.PostRecv(nil, 1, 0),
				with(ErrInvalidHandle, SubInvalidHandlePZ):          none.pz.Free(),
				with(ErrInvalidHandle, SubInvalidHandleLMR):         none.lmr.Free(),
				with(ErrInvalidHandle, SubInvalidHandlePSP):         none.psp.Free(),
				with(ErrInvalidHandle, SubInvalidHandleCR):          none.cr.Reject(nil),
				with(ErrInvalidState, SubInvalidStateEPUnconnected): idle.PostSend(nil, 1, 0),
				with(ErrInvalidState, SubInvalidStatePZInUse):       a.pz.Free(),
				with(ErrInvalidState, SubInvalidStateIAInUse):       a.ia.Close(CloseGraceful),
				with(ErrInvalidParameter, SubInvalidArg2):           x.PostSend(make([]LMRTriplet, 17), 1, 0),
				with(ErrInvalidParameter, SubInvalidArg3):           x.PostSend(outside, 1, 0),
				with(ErrInvalidParameter, SubInvalidArg5):           x.PostSend(nil, 1, 0x80),
				with(ErrInvalidParameter, SubInvalidArg6):           x.PostRDMAWrite(nil, 1, y.lmr.Remote(0, 0), 0x80),
				with(ErrInsufficientResources, SubResourceMemory):   x.PostRecv(nil, 1, 0),
				with(ErrInvalidParameter, SubInvalidArg1):           openError1(strings.Repeat("n", MaxName)),
				with(ErrProviderNotFound, SubNameNotRegistered):     openError1("n"),
				with(ErrInvalidHandle, SubInvalidHandleIA):          (*IA)(nil).Close(0),
			} {
				wants(t, want.Error(), err, want)
			}
		}},
	}},
	{"dat_set_consumer_context", []rule{
		{"every object holds one context, the last that was set", func(t *testing.T, n network) {
			objects := everyObject(t, n)
			for i, o := range objects {
				ok(t, o.SetConsumerContext("before"))
				ok(t, o.SetConsumerContext(i))
			}
			for i, o := range objects {
				if v, err := o.ConsumerContext(); v != i || err != nil {
					t.Errorf("%T: %v, %v, want %d", o, v, err, i)
				}
			}
		}},
		{"nil takes it away", func(t *testing.T, n network) {
			for _, o := range everyObject(t, n) {
				ok(t, o.SetConsumerContext(1))
				ok(t, o.SetConsumerContext(nil))
				if v, err := o.ConsumerContext(); v != nil || err != nil {
					t.Errorf("%T: %v, %v", o, v, err)
				}
			}
		}},
		{"what is freed, closed or nothing has no context", func(t *testing.T, n network) {
			for _, o := range deadObjects(t, n) {
				wants(t, fmt.Sprintf("%T", o), o.SetConsumerContext(1), ErrInvalidHandle)
			}
		}},
	}},
	{"dat_get_consumer_context", []rule{
		{"it is nil where none was set", func(t *testing.T, n network) {
			for _, o := range everyObject(t, n) {
				if v, err := o.ConsumerContext(); v != nil || err != nil {
					t.Errorf("%T: %v, %v", o, v, err)
				}
			}
		}},
		{"what an event names has its context", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.SetConsumerContext(y))
			ok(t, y.recv.SetConsumerContext(b))
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSend(nil, 1, 0))
			ev := await(t, y.recv, EventDTOCompletion)
			if v := must(ev.EP.ConsumerContext())(t); v != y {
				t.Errorf("the endpoint has %v", v)
			}
			if v := must(ev.EVD.ConsumerContext())(t); v != b {
				t.Errorf("the dispatcher has %v", v)
			}
		}},
		{"what is freed, closed or nothing has none", func(t *testing.T, n network) {
			for _, o := range deadObjects(t, n) {
				_, err := o.ConsumerContext()
				wants(t, fmt.Sprintf("%T", o), err, ErrInvalidHandle)
			}
		}},
	}},
	{"dat_get_handle_type", []rule{
		{"every object has the type of its kind", func(t *testing.T, n network) {
			for _, o := range everyObject(t, n) {
				got, err := o.HandleType()
				if kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*dat."); got.String() != kind || err != nil {
					t.Errorf("%T: %v, %v", o, got, err)
				}
			}
		}},
		{"the numbers are those of the specification", func(t *testing.T, _ network) {
			for i, want := range []string{"CR", "EP", "EVD", "IA", "LMR", "PSP", "PZ", "RMR", "RSP", "CNO", "SRQ"} {
				if got := HandleType(i).String(); got != want {
					t.Errorf("%d is %s, want %s", i, got, want)
				}
			}
		}},
		{"what is freed, closed or nothing has none", func(t *testing.T, n network) {
			for _, o := range deadObjects(t, n) {
				_, err := o.HandleType()
				wants(t, fmt.Sprintf("%T", o), err, ErrInvalidHandle)
			}
		}},
	}},
}

// A deviceNetwork opens its adapters by name.
type deviceNetwork interface {
	network
	device(side int) string
	openAs(side int, name string, o Options) (*IA, error)
}

func (u udp) device(side int) string { return "udp:" + u.addr(side).String() }

func (u udp) openAs(_ int, name string, o Options) (*IA, error) {
	o.Port = u.port
	return Open(name, o)
}

// deviceOf is n, or another network in place of one without names.
func deviceOf(t *testing.T, n network) deviceNetwork {
	warm.leave()
	if d, named := n.(deviceNetwork); named {
		return d
	}
	return newUDP(t).(udp)
}

// setRegistry makes text the registry until the end of the test.
func setRegistry(t *testing.T, text string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "dat.conf")
	ok(t, os.WriteFile(name, []byte(text), 0o600))
	t.Setenv(registryVar, name)
}

func openNothing(string, Options) (*IA, error) { return nil, ErrInternalError }

// add adds a provider until the end of the test.
func add(t *testing.T, info ProviderInfo, open func(string, Options) (*IA, error)) {
	t.Helper()
	if open == nil {
		open = openNothing
	}
	ok(t, AddProvider(info, open))
	t.Cleanup(func() { _ = RemoveProvider(info) }) // the test may have removed it
}

func openError1(name string) error {
	_, err := Open(name, Options{})
	return err
}

// everyObject makes an object of each kind.
func everyObject(t *testing.T, n network) []Handle {
	a, b := newHosts(t, n, Options{})
	x := a.point(nil)
	x.dial(b, nil)
	rsp := must(a.ia.CreateRSP(testQual, must(a.ia.CreateEP(a.pz, nil, nil, nil, nil))(t), must(a.ia.CreateEVD(1, nil, EVDCR))(t)))(t)
	return []Handle{a.ia, x.EP, x.recv, a.ia.AsyncEVD(), b.request(t), b.psp, a.pz, x.lmr, rsp,
		must(a.pz.CreateRMR())(t), must(a.ia.CreateCNO(nil))(t), must(a.ia.CreateSRQ(a.pz, SRQAttr{MaxRecvDTOs: 1}))(t)}
}

// deadObjects are objects of each kind that are freed, or whose adapter is closed, and that never were.
func deadObjects(t *testing.T, n network) []Handle {
	a, b := newHosts(t, n, Options{})
	x := a.point(nil)
	x.dial(b, nil)
	cr := b.request(t)
	ok(t, cr.Reject(nil))
	ok(t, b.psp.Free())
	pz := must(b.ia.CreatePZ())(t)
	lmr := must(b.ia.CreateLMR(make([]byte, 1), pz, 0))(t)
	ep := must(b.ia.CreateEP(pz, nil, nil, nil, nil))(t)
	evd := must(b.ia.CreateEVD(1, nil, EVDDTO))(t)
	rmr := must(pz.CreateRMR())(t)
	srq := must(b.ia.CreateSRQ(pz, SRQAttr{MaxRecvDTOs: 1}))(t)
	cno := must(b.ia.CreateCNO(nil))(t)
	crs := must(b.ia.CreateEVD(1, nil, EVDCR))(t)
	rsp := must(b.ia.CreateRSP(1, nil, crs))(t)
	for _, o := range []interface{ Free() error }{ep, lmr, rmr, srq, cno, rsp, crs, pz, evd} {
		ok(t, o.Free())
	}
	dead := []Handle{cr, b.psp, pz, lmr, ep, evd, rmr, srq, cno, rsp, crs, a.ia, x.EP, x.recv, a.ia.AsyncEVD(), a.pz, x.lmr,
		(*IA)(nil), (*EP)(nil), (*EVD)(nil), (*CR)(nil), (*PSP)(nil), (*PZ)(nil), (*LMR)(nil),
		(*RMR)(nil), (*SRQ)(nil), (*CNO)(nil), (*RSP)(nil)}
	ok(t, a.ia.Close(CloseAbrupt))
	return dead
}
