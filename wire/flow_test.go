package wire

import (
	"testing"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Credit must only grow, by at most maxCredit, even if message numbers wrap.
func TestCredit(t *testing.T) {
	for _, msn := range []seq.Num{0, 1<<31 - 2, 1<<32 - 2} {
		f := flowControl{creditLimit: msn}
		for _, step := range []struct {
			name   string
			credit seq.Num
			more   bool
			limit  seq.Num
		}{
			{"some", 5, true, 5},
			{"the same again", 5, false, 5},
			{"less", 3, false, 5},
			{"less than was sent", ^seq.Num(0), false, 5},
			{"half the numbers", 1<<31 + 1, false, 5},
			{"more than anybody has", maxCredit + 1, false, 5},
			{"as much as may be", maxCredit, true, maxCredit},
		} {
			if more := f.updateCredit(&proto.Header{Credit: msn + step.credit}, msn); more != step.more || f.creditLimit != msn+step.limit {
				t.Errorf("message %d, %s: more %v, up to %d; want %v, %d", msn, step.name, more, f.creditLimit-msn, step.more, step.limit)
			}
		}
	}
}

func TestCreditAllows(t *testing.T) {
	f := flowControl{creditLimit: 2}
	if !f.allows(1) || f.allows(2) || f.allows(3) {
		t.Error("messages beyond the credit are allowed, or those within are not")
	}
	if f.updateCredit(&proto.Header{Flags: proto.NoCredit}, 2); !f.allows(3) {
		t.Error("a peer that gives no credit is not sent anything")
	}
	if f.updateCredit(&proto.Header{Credit: 2}, 2); f.allows(3) {
		t.Error("a peer that gives credit again is sent what it has no receive for")
	}
}
