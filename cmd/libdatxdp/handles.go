package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/datxdp/datxdp/dat"
)

// A handle of C knows the object that it stands for by an id: a slot of objects, and which of the
// slot's uses it means. C chooses slots and counts uses (arena.c).
const (
	pageBits = 12
	slotBits = 22 // SLOTS of arena.c
)

type (
	// entry is an object and the id by which it is found.
	entry struct {
		id     uint64
		object dat.Handle
	}
	page [1 << pageBits]atomic.Pointer[entry]
	// table finds objects by id without a lock.
	table [1 << (slotBits - pageBits)]atomic.Pointer[page]
)

// objects are those that C has a handle of.
var objects table

func (t *table) slot(id uint64) *atomic.Pointer[entry] {
	i := id & (1<<slotBits - 1)
	p := t[i>>pageBits].Load()
	if p == nil {
		return nil
	}
	return &p[i&(1<<pageBits-1)]
}

// put makes an object known.
func (t *table) put(id uint64, object dat.Handle) {
	i := id & (1<<slotBits - 1)
	if p := &t[i>>pageBits]; p.Load() == nil {
		p.CompareAndSwap(nil, new(page))
	}
	t.slot(id).Store(&entry{id, object})
}

// forget is put undone. A newer use of the slot stays.
func (t *table) forget(id uint64) {
	if s := t.slot(id); s != nil {
		if e := s.Load(); e != nil && e.id == id {
			s.CompareAndSwap(e, nil)
		}
	}
}

// get is the object with an id, or nil, on which every call of package dat is ErrInvalidHandle.
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

// handled is what has a handle: a pointer to an object.
type handled[T any] interface {
	*T
	dat.Handle
}

// outlived are the handles of objects by weak pointer. Events that wait may name an object that was freed;
// programs compare the handle that they get with the one that they freed. An entry goes with its object.
var outlived sync.Map

// bind gives an object its handle. Consumers in C have their context in C: that of the object is its
// handle.
func bind[T any, P handled[T]](object P, handle uint64) error {
	weakly := weak.Make((*T)(object))
	outlived.Store(weakly, handle)
	runtime.AddCleanup((*T)(object), func(key weak.Pointer[T]) { outlived.Delete(key) }, weakly)
	return object.SetConsumerContext(handle)
}

// introduce makes an object and its handle known to each other: the object finds its handle, and the id
// the object. An object that is gone by then is not made known.
func introduce[T any, P handled[T]](id, handle uint64, object P) error {
	if err := bind(object, handle); err != nil {
		return err
	}
	objects.put(id, object)
	return nil
}

// handleOf is the C handle of an object, 0 for none.
func handleOf[T any, P handled[T]](object P) uint64 {
	v, err := object.ConsumerContext()
	if err != nil && object != nil {
		v, _ = outlived.Load(weak.Make((*T)(object)))
	}
	handle, _ := v.(uint64)
	return handle
}
