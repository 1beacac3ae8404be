package plan

import (
	"testing"

	"github.com/datxdp/datxdp/internal/result"
)

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		out  string
	}{
		{"64", 64, "64 B"}, {"64B", 64, "64 B"}, {"4KiB", 4096, "4 KiB"}, {"4K", 4096, "4 KiB"},
		{"1 MiB", 1 << 20, "1 MiB"}, {"1G", 1 << 30, "1 GiB"}, {"1514", 1514, "1514 B"},
		{"", 0, ""}, {"0", 0, ""}, {"-1", 0, ""}, {"x", 0, ""}, {"9999999999GiB", 0, ""}, {"1.5K", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			got, err := parseSize(tt.in)
			if got != tt.want || (err != nil) != (tt.want == 0) {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
			if err == nil && result.FormatSize(got) != tt.out {
				t.Errorf("printed: got %q, want %q", result.FormatSize(got), tt.out)
			}
		})
	}
}

func TestSizeList(t *testing.T) {
	tests := []struct {
		in   string
		want string
	}{
		{"64,1K,64K", "64 B,1 KiB,64 KiB"},
		{"64-512", "64 B,128 B,256 B,512 B"},
		{"64..1K*4", "64 B,256 B,1 KiB"},
		{"64-1000", "64 B,128 B,256 B,512 B,1000 B"},
		{"100-160+30,1M", "100 B,130 B,160 B,1 MiB"},
		{"64-64", "64 B"},
		{"64-", ""}, {"-64", ""}, {"1M-64", ""}, {"64-1M*1", ""}, {"64-1M*x", ""}, {"64-128+0", ""}, {"1-1G+1", ""}, {"", ""}, {"64,", ""},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			var l SizeList
			if err := l.Set(tt.in); (err != nil) != (tt.want == "") || err == nil && l.String() != tt.want {
				t.Errorf("got %s, %v, want %s", l.String(), err, tt.want)
			}
		})
	}
}

func TestCPUList(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "2,4-7": "2,4,5,6,7", "x": "", "3-1": "", "-1": "", "5000": "", "": "", "1-": ""} {
		var l CPUList
		if err := l.Set(in); (err != nil) != (want == "") || err == nil && l.String() != want {
			t.Errorf("%q: got %s, %v, want %s", in, l.String(), err, want)
		}
	}
}
