package link_test

import (
	"reflect"
	"testing"

	"github.com/datxdp/datxdp/link"
)

func TestStatsAdd(t *testing.T) {
	var s link.Stats
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		v.Field(i).SetUint(uint64(i + 1))
	}
	sum := s
	sum.Add(s)
	for i := range v.NumField() {
		if got := reflect.ValueOf(sum).Field(i).Uint(); got != uint64(2*(i+1)) {
			t.Errorf("%s: got %d, want %d", v.Type().Field(i).Name, got, 2*(i+1))
		}
	}
}
