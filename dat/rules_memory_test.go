package dat

import "testing"

var memoryRules = []topic{
	{"dat_pz_create", []rule{
		{"a zone can be freed when nothing uses it", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			pz := must(h.ia.CreatePZ())(t)
			ok(t, pz.Free())
			wants(t, "a second free", pz.Free(), ErrInvalidHandle)
		}},
	}},
}
