package dat

import (
	"bytes"
	"testing"
)

// TestPrivateDataOfAPeerIsBounded: a consumer gets at most MaxPrivateData bytes, though the wire protocol has room for
// more.
func TestPrivateDataOfAPeerIsBounded(t *testing.T) {
	a, b := newHosts(t, newSim(t), Options{})
	asks(a, b, testQual)
	cr := b.request(t)
	cr.req.Private = bytes.Repeat([]byte("y"), 512)
	q, err := cr.Query()
	ok(t, err)
	if len(q.PrivateData) != maxPrivateData {
		t.Errorf("the consumer gets %d bytes, want %d", len(q.PrivateData), maxPrivateData)
	}
	ok(t, cr.Reject(nil))
}
