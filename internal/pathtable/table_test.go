package pathtable

import (
	"errors"
	"testing"

	"github.com/datxdp/datxdp/link"
)

func add[T any](t *testing.T, table *Table[T], value *T) link.Path {
	t.Helper()
	p, err := table.Add(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTable(t *testing.T) {
	var table Table[int]
	values := map[link.Path]*int{}
	for range 3 * chunkSize {
		v := new(int)
		p := add(t, &table, v)
		if p == link.PathReply || values[p] != nil {
			t.Fatalf("number %d is taken", p)
		}
		values[p] = v
	}
	if n := table.Len(); n != len(values) {
		t.Errorf("Len is %d of %d", n, len(values))
	}
	for p, v := range values {
		if table.Get(p) != v || table.Remove(p) != v || table.Get(p) != nil || table.Remove(p) != nil {
			t.Fatalf("path %d", p)
		}
	}
	if n := table.Len(); n != 0 {
		t.Errorf("Len of the empty table is %d", n)
	}
	if p := add(t, &table, new(int)); values[p] != nil {
		t.Errorf("number %#x names a path that was removed", p)
	}
	for _, p := range []link.Path{link.PathReply, ^link.Path(0), Max, 1 << indexBits} {
		if table.Get(p) != nil || table.Remove(p) != nil {
			t.Errorf("path %#x exists", p)
		}
	}
}

func TestFullTable(t *testing.T) {
	var table Table[int]
	v := new(int)
	var last link.Path
	for range Max {
		last = add(t, &table, v)
	}
	if _, err := table.Add(v); !errors.Is(err, link.ErrTooManyPaths) {
		t.Fatalf("Add to a full table: %v", err)
	}
	table.Remove(last)
	if p := add(t, &table, v); p == last {
		t.Error("a number is used twice in a row")
	}
}

// TestNumbersComeRound checks that a slot uses all 2^14 generations before its first number comes back.
func TestNumbersComeRound(t *testing.T) {
	var table Table[int]
	first := add(t, &table, new(int))
	table.Remove(first)
	for range 1<<(32-indexBits) - 1 {
		p := add(t, &table, new(int))
		if p == first {
			t.Fatal("a number came back early")
		}
		table.Remove(p)
	}
	if p := add(t, &table, new(int)); p != first {
		t.Errorf("number %#x after a round, not %#x", p, first)
	}
}

func TestDrain(t *testing.T) {
	var table Table[int]
	for i := range 1000 {
		table.Remove(add(t, &table, new(int)))
		add(t, &table, &i)
	}
	seen := map[int]bool{}
	table.Drain(func(v *int) { seen[*v] = true })
	if len(seen) != 1000 || table.Len() != 0 {
		t.Errorf("%d values drained, %d left", len(seen), table.Len())
	}
}

// TestGetBesideChanges: a concurrent Get returns the value of its path, or nil.
func TestGetBesideChanges(t *testing.T) {
	type added struct {
		path  link.Path
		round int
	}
	const generations = 1 << (32 - indexBits)
	var table Table[int]
	numbers := make(chan added)
	go func() {
		defer close(numbers)
		for round := range 4 * generations {
			p, err := table.Add(&round)
			if err != nil {
				t.Error(err)
				return
			}
			if round%2 == 0 {
				numbers <- added{p, round}
			}
			table.Remove(p)
		}
	}()
	for a := range numbers {
		if v := table.Get(a.path); v != nil && (*v-a.round)%generations != 0 {
			t.Errorf("number %#x of round %d has the value of round %d", a.path, a.round, *v)
		}
	}
}
