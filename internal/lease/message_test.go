package lease

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// A message that can be read is the encoding of what it means.
func FuzzDecode(f *testing.F) {
	for k := range kind(256) {
		if b := newBody(k); b != nil {
			f.Add(encode(k, 1, b))
		}
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		h, body, err := decode(message)
		if err != nil {
			return
		}
		if h.Version == Version && !bytes.Equal(encode(h.Kind, h.Sequence, body), message) {
			t.Errorf("%x is read as %+v", message, body)
		}
		switch b := body.(type) {
		case *requestBody:
			if r, err := b.parse(); err == nil {
				r.setDefaults()
				_ = r.validate()
			}
		case *grantBody:
			_, _ = b.parse()
		case *failedBody:
			if b.parse() == nil {
				t.Error("a Failed without an error")
			}
		case *listedBody:
			for _, l := range b.Leases {
				_, _ = l.parse()
			}
		}
	})
}

// An error keeps its meaning and its text, without control characters.
func TestFailure(t *testing.T) {
	for _, known := range statuses[1:] {
		err := failure(errors.Join(errors.New("why\x1b[31m"), known)).parse()
		if !errors.Is(err, known) || !strings.HasPrefix(err.Error(), "datxdpd: why[31m") {
			t.Errorf("%v: %v", known, err)
		}
	}
	if err := failure(errors.New(strings.Repeat("x", 2000))).parse(); !errors.Is(err, ErrFailed) {
		t.Error(err)
	}
	if err := (&failedBody{Status: 99}).parse(); !errors.Is(err, errMalformed) {
		t.Error(err)
	}
}
