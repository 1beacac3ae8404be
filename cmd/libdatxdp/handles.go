package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/datxdp/datxdp/dat"
)

// A C handle refers to its Go object by an id. The lower slotBits bits of the id are a slot, an index into the table of
// all objects. The upper 32 bits are a generation, which counts the uses of the slot. The C part of this library
// assigns slots and generations (arena.c).
const (
	pageBits = 12
	slotBits = 22 // SLOTS of arena.c is 1<<slotBits
)

type (
	// entry is an object and its id.
	entry struct {
		id     uint64
		object dat.Handle
	}
	page [1 << pageBits]atomic.Pointer[entry]
	// table maps ids to objects. Lookups take no lock.
	table [1 << (slotBits - pageBits)]atomic.Pointer[page]
)

// objects are the objects that have a C handle.
var objects table

func (t *table) slot(id uint64) *atomic.Pointer[entry] {
	i := id & (1<<slotBits - 1)
	p := t[i>>pageBits].Load()
	if p == nil {
		return nil
	}
	return &p[i&(1<<pageBits-1)]
}

// put adds an object.
func (t *table) put(id uint64, object dat.Handle) {
	i := id & (1<<slotBits - 1)
	if p := &t[i>>pageBits]; p.Load() == nil {
		p.CompareAndSwap(nil, new(page))
	}
	t.slot(id).Store(&entry{id, object})
}

// forget removes the object with an id. It does not remove a newer object in the same slot.
func (t *table) forget(id uint64) {
	if s := t.slot(id); s != nil {
		if e := s.Load(); e != nil && e.id == id {
			s.CompareAndSwap(e, nil)
		}
	}
}

// get returns the object with an id, or nil if there is none. Every method of package dat returns ErrInvalidHandle for
// a nil object.
func get[T dat.Handle](id uint64) T {
	if s := objects.slot(id); s != nil {
		if e := s.Load(); e != nil && e.id == id {
			object, _ := e.object.(T)
			return object
		}
	}
	var none T
	return none
}

// handled is the constraint of functions for all kinds of objects: a pointer *T that implements dat.Handle.
type handled[T any] interface {
	*T
	dat.Handle
}

// outlived is a map. Its keys are weak pointers to objects, and its values are the handles of these objects. It has
// entries for freed objects too: a queued event may refer to a freed object, and programs compare the handle in the
// event with the handle that they freed. An entry is removed when its object is garbage-collected.
var outlived sync.Map

// bind stores the handle as the consumer context of the object, and in the map outlived. The consumer context that a C
// program sets is kept in the handle instead.
func bind[T any, P handled[T]](object P, handle uint64) error {
	weakly := weak.Make((*T)(object))
	outlived.Store(weakly, handle)
	runtime.AddCleanup((*T)(object), func(key weak.Pointer[T]) { outlived.Delete(key) }, weakly)
	return object.SetConsumerContext(handle)
}

// introduce connects an object and its handle. It stores the handle in the object, and adds the object to the table of
// all objects. It fails if the object has already been freed.
func introduce[T any, P handled[T]](id, handle uint64, object P) error {
	if err := bind(object, handle); err != nil {
		return err
	}
	objects.put(id, object)
	return nil
}

// handleOf returns the C handle of an object, also of a freed object. It returns 0 if the object has no handle or is
// nil.
func handleOf[T any, P handled[T]](object P) uint64 {
	v, err := object.ConsumerContext()
	if err != nil && object != nil {
		v, _ = outlived.Load(weak.Make((*T)(object)))
	}
	handle, _ := v.(uint64)
	return handle
}
