package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/park"
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

// forget removes the object with an id, and reports whether there was one. It does not remove a newer object in the
// same slot.
func (t *table) forget(id uint64) bool {
	if s := t.slot(id); s != nil {
		if e := s.Load(); e != nil && e.id == id {
			return s.CompareAndSwap(e, nil)
		}
	}
	return false
}

// collectEvery is the number of freed handles after which a garbage collection is started. It bounds the number of
// handles that wait for a collection, and thus their memory in C: 72 bytes each, and 568 more for an endpoint or a
// request. Small heaps are collected more often than that, because each object needs memory in Go too.
const collectEvery = 1 << 17

// retired counts the calls of retire that removed an object.
var retired atomic.Uint64

// retire removes the object with an id from the table of all objects, and reports whether there was one. The handle of
// a removed object is given back when the object is garbage-collected.
func retire(id uint64) bool {
	if !objects.forget(id) {
		return false
	}
	if retired.Add(1)%collectEvery == 0 {
		go runtime.GC() // not in this goroutine: the caller holds the lock of arena.c, which the cleanups need
	}
	return true
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
// program sets is kept in the handle instead. When the object is garbage-collected, no queued event can refer to it any
// more, and giveBack is called with the handle.
func bind[T any, P handled[T]](object P, handle uint64, giveBack func(uint64)) error {
	weakly := weak.Make((*T)(object))
	outlived.Store(weakly, handle)
	runtime.AddCleanup((*T)(object), func(key weak.Pointer[T]) {
		outlived.Delete(key)
		giveBack(handle)
	}, weakly)
	return object.SetConsumerContext(handle)
}

// introduce connects an object and its handle. It adds the object to the table of all objects, and stores the handle in
// the object. It fails if the object has already been freed. The object is in the table even then, so that retire tells
// the caller that the garbage collector will give the handle back.
func introduce[T any, P handled[T]](id, handle uint64, object P, giveBack func(uint64)) error {
	objects.put(id, object)
	return bind(object, handle, giveBack)
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

// settled returns the handle of a service point. The first request may arrive while another thread is still creating
// the service point. In that case settled waits until that thread has given the service point its handle.
func settled[T any, P handled[T]](sp P) uint64 {
	var p park.Patience
	for {
		if h := handleOf(sp); h != 0 {
			return h
		}
		p.Wait()
	}
}
