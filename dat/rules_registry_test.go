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
		{"added providers are listed after the registry", func(t *testing.T, _ network) {
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
			ok(t, again.CloseWith(CloseGraceful))
			ok(t, ia.CloseWith(CloseGraceful))
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
			ok(t, must(d.openAs(0, "wire", Options{}))(t).CloseWith(CloseGraceful))
		}},
		{"an invalid registry does not affect an open that names a device", func(t *testing.T, n network) {
			d := deviceOf(t, n)
			setRegistry(t, "wrong\n")
			ok(t, must(d.openAs(0, d.device(0), Options{}))(t).CloseWith(CloseGraceful))
			_, err := Open("wire", Options{})
			wants(t, "open", err, ErrProviderNotFound)
			if err == nil || !strings.Contains(err.Error(), "line 1") {
				t.Errorf("the error does not say what is wrong with the registry: %v", err)
			}
		}},
	}},
	{"dat_registry_add_provider", []rule{
		{"an added provider opens by its name, with the options of the open", func(t *testing.T, n network) {
			add(t, ProviderInfo{"mine", 2, 0, true}, func(name string, o Options) (*IA, error) {
				if name != "mine" || o.AsyncQLen != 100 {
					t.Errorf("open was called with %s, %+v", name, o)
				}
				return n.open(0, o)
			})
			ia := must(Open("mine", Options{AsyncQLen: 100}))(t)
			ok(t, ia.CloseWith(CloseGraceful))
		}},
		{"it takes precedence over a registry entry and over a device", func(t *testing.T, n network) {
			setRegistry(t, goodLine)
			for _, name := range []string{"eth0", "udp:192.0.2.1"} {
				add(t, ProviderInfo{name, 2, 0, true}, func(_ string, o Options) (*IA, error) { return n.open(0, o) })
				ok(t, must(Open(name, Options{}))(t).CloseWith(CloseGraceful))
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
		{"it is an error if the provider returns nil or a closed adapter", func(t *testing.T, n network) {
			info := ProviderInfo{"mine", 2, 0, true}
			closed := must(n.open(0, Options{}))(t)
			ok(t, closed.CloseWith(CloseGraceful))
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
		{"a provider that was not added is refused", func(t *testing.T, _ network) {
			info := ProviderInfo{"mine", 2, 0, true}
			wants(t, "never added", RemoveProvider(info), ErrInvalidParameter)
			add(t, info, nil)
			for _, other := range []ProviderInfo{{"mine", 2, 0, false}, {"mine", 1, 0, true}, {"mine", 2, 1, true}, {"other", 2, 0, true}} {
				wants(t, "another", RemoveProvider(other), ErrInvalidParameter)
			}
			ok(t, RemoveProvider(info))
			wants(t, "again", RemoveProvider(info), ErrInvalidParameter)
		}},
		{"a provider with an open adapter is in use", func(t *testing.T, n network) {
			info := ProviderInfo{"mine", 2, 0, true}
			add(t, info, func(_ string, o Options) (*IA, error) { return n.open(0, o) })
			for _, flags := range []CloseFlags{CloseGraceful, CloseAbrupt} {
				ia := must(Open("mine", Options{}))(t)
				wants(t, "with an open adapter", RemoveProvider(info), ErrProviderInUse)
				ok(t, ia.CloseWith(flags))
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
}

// A deviceNetwork opens its adapters by name.
type deviceNetwork interface {
	network
	device(side int) string
	openAs(side int, name string, o Options) (*IA, error)
}

func (u udp) device(side int) string { return "udp:" + u.addr(side).String() }

func (u udp) openAs(_ int, name string, o Options) (*IA, error) {
	o.Port, o.NoOffload = u.port, o.NoOffload || u.noOffload
	return Open(name, sharedKeys.complete(o))
}

// deviceOf returns n or, if the adapters of n have no names, another network.
func deviceOf(t *testing.T, n network) deviceNetwork {
	warmDevices.leave()
	if d, named := n.(deviceNetwork); named {
		return d
	}
	return newUDP(t).(udp)
}

// setRegistry makes text the contents of the registry until the end of the test.
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
