package list

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type item struct {
	id         int
	node, also Node[item]
}

// check compares the elements of a list, from the front, with those expected.
func check(t *testing.T, l *List[item], want []*item) {
	t.Helper()
	var got []*item
	var last *Node[item]
	for n := l.First(); n != nil; n = n.Next() {
		if n.prev != last || !n.Listed() || &n.Elem().node != n {
			t.Fatalf("element %d: broken links", n.Elem().id)
		}
		got, last = append(got, n.Elem()), n
	}
	if !slices.Equal(got, want) || l.last != last || l.Len() != len(want) || l.Empty() != (len(want) == 0) {
		t.Fatalf("%d elements, want %d; Len %d, Empty %v", len(got), len(want), l.Len(), l.Empty())
	}
	if len(want) > 0 && l.Front() != want[0] || len(want) == 0 && l.Front() != nil {
		t.Fatal("Front is not the first element")
	}
}

// A list must behave like a slice from which elements are removed at any place, and whose first element may move to the
// end.
func TestListAgainstSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l List[item]
	items := make([]item, 20)
	var model []*item
	check(t, &l, model)
	for range 10_000 {
		if len(model) > 0 && r.IntN(4) == 0 {
			l.Rotate()
			model = append(model[1:], model[0])
			check(t, &l, model)
		}
		x := &items[r.IntN(len(items))]
		if i := slices.Index(model, x); i >= 0 {
			l.Remove(&x.node)
			model = slices.Delete(model, i, i+1)
			if x.node != (Node[item]{}) {
				t.Fatal("a node that was removed keeps links")
			}
		} else {
			l.PushBack(&x.node, x)
			model = append(model, x)
		}
		check(t, &l, model)
	}
}

// An element with two nodes must be in two lists independently.
func TestListTwoNodes(t *testing.T) {
	var a, b List[item]
	var x item
	a.PushBack(&x.node, &x)
	b.PushBack(&x.also, &x)
	a.Remove(&x.node)
	if x.node.Listed() || !x.also.Listed() || a.Front() != nil || b.Front() != &x {
		t.Error("removing from one list changed the other")
	}
}

func TestListAllocatesNothing(t *testing.T) {
	var l List[item]
	var x item
	if n := testing.AllocsPerRun(100, func() {
		l.PushBack(&x.node, &x)
		l.Remove(&x.node)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
