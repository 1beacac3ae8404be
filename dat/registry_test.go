package dat

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// String returns the line from which e is parsed.
func (e *entry) String() string {
	safe, standard := "nonthreadsafe", "nondefault"
	if e.ThreadSafe {
		safe = "threadsafe"
	}
	if e.standard {
		standard = "default"
	}
	return fmt.Sprintf("%s u%d.%d %s %s %s %s %s %s", quote(e.Name), e.Major, e.Minor, safe, standard,
		quote(e.library), quote(e.version), quote(e.instance), quote(e.platform))
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

const goodLine = `eth0 u2.0 threadsafe default libdatxdp.so datxdp.0.1 "xdp:eth0" ""`

func TestParseRegistry(t *testing.T) {
	good := entry{ProviderInfo{"eth0", 2, 0, true}, true, "libdatxdp.so", "datxdp.0.1", "xdp:eth0", ""}
	for _, tc := range []struct {
		name, text string
		want       []entry
		wrong      string // of the error; "" for none
	}{
		{"nothing", "", nil, ""},
		{"blank lines", "\n \t\r\n\v\f\n", nil, ""},
		{"comments", "# eth0\n  # eth1 \"\n", nil, ""},
		{"one", goodLine, []entry{good}, ""},
		{"line ends of DOS", goodLine + "\r\n", []entry{good}, ""},
		{"comment behind", goodLine + "# the first", []entry{good}, ""},
		{"tabs", strings.ReplaceAll(goodLine, " ", "\t"), []entry{good}, ""},
		{"all in quotation marks", good.String(), []entry{good}, ""},
		{"fields without a blank between", strings.ReplaceAll(good.String(), `" "`, `""`), []entry{good}, ""},
		{"of the kernel", "k" + goodLine + "\n" + strings.Replace(goodLine, "u2.0", "k1.2", 1), []entry{{ProviderInfo{"keth0", 2, 0, true}, true, "libdatxdp.so", "datxdp.0.1", "xdp:eth0", ""}}, ""},
		{"escapes", strings.Replace(goodLine, `""`, `"a \"b\" \\ # c"`, 1),
			[]entry{{good.ProviderInfo, true, good.library, good.version, good.instance, `a "b" \ # c`}}, ""},
		{"not thread-safe, not default", strings.NewReplacer("threadsafe", "nonthreadsafe", "default", "nondefault").Replace(goodLine),
			[]entry{{ProviderInfo{"eth0", 2, 0, false}, false, good.library, good.version, good.instance, ""}}, ""},
		{"good beside wrong", "eth1\n" + goodLine, []entry{good}, "line 1: 1 fields"},
		{"one field less", "\n\n" + strings.TrimSuffix(goodLine, `""`), nil, "line 3: 7 fields"},
		{"one field more", goodLine + " more", nil, "line 1: 9 fields"},
		{"no version", strings.Replace(goodLine, "u2.0", "2.0", 1), nil, `line 1: API version "2.0"`},
		{"no minor version", strings.Replace(goodLine, "u2.0", "u2", 1), nil, `API version "u2"`},
		{"version negative", strings.Replace(goodLine, "u2.0", "u-2.0", 1), nil, `API version "u-2.0"`},
		{"version too large", strings.Replace(goodLine, "u2.0", "u2147483648.0", 1), nil, "API version"},
		{"thread safety", strings.Replace(goodLine, "threadsafe", "safe", 1), nil, `"safe" is neither threadsafe nor nonthreadsafe`},
		{"default", strings.Replace(goodLine, "default", "standard", 1), nil, `"standard" is neither default nor nondefault`},
		{"open quotation mark", goodLine[:len(goodLine)-1], nil, "not closed"},
		{"backslash at the end", strings.TrimSuffix(goodLine, `""`) + `"\`, nil, "not closed"},
		{"no name", strings.Replace(goodLine, "eth0", `""`, 1), nil, "name"},
		{"long name", strings.Repeat("n", MaxName) + strings.TrimPrefix(goodLine, "eth0"), nil, "name"},
		{"two wrong", "a\nb", nil, "line 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseRegistry(tc.text)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("error %v, want %q", err, tc.wrong)
			}
		})
	}
}

// An entry that is parsed, formatted and parsed again stays the same. Every line gives an entry, an error, or nothing.
func FuzzConfig(f *testing.F) {
	for _, line := range []string{goodLine, goodLine + "\n" + goodLine, `"a" u1.2 nonthreadsafe nondefault x y "z \"\\" # "`,
		"# comment", `OpenIB-cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "ib0 0" ""`, "k1.2", `"`, `"\`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseRegistry(text)
		if n := strings.Count(text, "\n") + 1; len(entries) > n {
			t.Fatalf("%d entries of %d lines", len(entries), n)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("the error names no line: %v", err)
		}
		for _, e := range entries {
			again, err := parseRegistry(e.String())
			if err != nil || len(again) != 1 || again[0] != e {
				t.Errorf("%q became %+v, %v", e.String(), again, err)
			}
		}
	})
}
