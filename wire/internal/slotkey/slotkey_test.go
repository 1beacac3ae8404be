package slotkey

import "testing"

// Keys in use must differ, and none may have slot 0. A freed slot must be reused with the next generation, after
// MinFree other slots.
func TestReuse(t *testing.T) {
	var a Allocator
	first, ok := a.Take()
	if !ok || first&SlotMask == 0 {
		t.Fatalf("first key %#x", first)
	}
	a.Give(first)
	for i := range MinFree - 1 {
		key, _ := a.Take()
		if key&SlotMask == first&SlotMask {
			t.Fatalf("the slot comes back after %d keys", i)
		}
		a.Give(key)
	}
	if used, free := a.Counts(); used != MinFree || free != MinFree {
		t.Errorf("%d slots, %d free, want %d", used, free, MinFree)
	}
	if again, _ := a.Take(); again != first+1<<SlotBits {
		t.Errorf("key %#x after %#x", again, first)
	}
}

// All slots must be usable at the same time, each with a different key.
func TestFull(t *testing.T) {
	var a Allocator
	seen := make([]bool, Max+1)
	for i := range Max {
		key, ok := a.Take()
		if !ok || seen[key&SlotMask] || key&SlotMask == 0 {
			t.Fatalf("key %d is %#x, %v", i, key, ok)
		}
		seen[key&SlotMask] = true
	}
	if _, ok := a.Take(); ok {
		t.Fatal("a key beyond the last slot")
	}
	a.Give(77)
	if key, ok := a.Take(); !ok || key&SlotMask != 77 {
		t.Errorf("key %#x, %v, want the slot that was given back", key, ok)
	}
}

// A fifo must keep its order while it grows and wraps.
func TestFIFO(t *testing.T) {
	var q fifo
	in, out := uint32(0), uint32(0)
	for i := range 1000 {
		for range i % 7 {
			q.push(in)
			in++
		}
		for range i % 5 {
			if q.n == 0 {
				break
			}
			if v := q.pop(); v != out {
				t.Fatalf("%d came out, want %d", v, out)
			}
			out++
		}
	}
}
