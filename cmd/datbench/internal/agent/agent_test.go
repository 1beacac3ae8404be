package agent

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
)

func TestTailLastLine(t *testing.T) {
	tests := []struct{ name, log, want string }{
		{"silent", "", "EOF"},
		{"one line", "what it said\n\n", "what it said"},
		{"panic", "x\npanic: boom\n\ngoroutine 1 [running]:\n", "panic: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l tail
			if _, err := l.Write([]byte(strings.Repeat("old\n", tailSize) + "\n")); err != nil {
				t.Fatal(err)
			}
			l.buf = nil
			if _, err := l.Write([]byte(tt.log)); err != nil {
				t.Fatal(err)
			}
			if got := l.lastLine(io.EOF); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestAgentProtocol: an agent refuses a command that is not allowed in its state, and continues.
func TestAgentProtocol(t *testing.T) {
	in := strings.NewReader(`{"do":"run","row":{}}` + "\n" + `{"do":"serve","station":{"kind":"smoke"}}` + "\n" + `{"do":"stop"}` + "\n")
	var out bytes.Buffer
	if err := New(&workload.Host{}).Serve(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	want := `{"error":"agent cannot \"run\" now"}` + "\n" + `{"error":"no traffic of kind \"smoke\""}` + "\n" + "{}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
