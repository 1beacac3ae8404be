package render

import (
	"testing"

	"github.com/datxdp/datxdp/internal/result"
)

func TestUnits(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{result.RoughSize(0), "0 B"}, {result.RoughSize(1023), "1023 B"}, {result.RoughSize(1536), "1.50 KiB"}, {result.RoughSize(3 << 30), "3.00 GiB"},
		{result.BitRate(9.414e9), "9.41 Gb/s"}, {result.BitRate(94.14e9), "94.1 Gb/s"}, {result.BitRate(941.4e6), "941 Mb/s"},
		{grouped(1234567), "1 234 567"}, {grouped(999), "999"}, {grouped(0), "0"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
