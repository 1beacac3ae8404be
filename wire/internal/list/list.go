// Package list is an intrusive doubly linked list: the links are part of the elements, so adding and removing an
// element allocates nothing.
//
// A list and its elements belong to one goroutine, or are guarded by one lock.
package list

// Node is the position of an element in a list. It is a field of the element, so an element can be in as many lists as
// it has nodes. The zero value is in no list.
type Node[T any] struct {
	prev, next *Node[T]
	elem       *T // nil: in no list
}

// Listed reports whether the element is in a list.
func (n *Node[T]) Listed() bool { return n.elem != nil }

// Next returns the next node. It returns nil after the last one, and if the node is in no list.
func (n *Node[T]) Next() *Node[T] { return n.next }

// Elem returns the element that contains the node, or nil if the node is in no list.
func (n *Node[T]) Elem() *T { return n.elem }

// List is a list of elements of one type. The zero value is empty.
type List[T any] struct {
	first, last *Node[T]
	n           int
}

// Len returns the number of elements.
func (l *List[T]) Len() int { return l.n }

// Empty reports whether the list has no element.
func (l *List[T]) Empty() bool { return l.first == nil }

// First returns the node of the first element, or nil if the list is empty.
func (l *List[T]) First() *Node[T] { return l.first }

// Front returns the first element, or nil if the list is empty.
func (l *List[T]) Front() *T {
	if l.first == nil {
		return nil
	}
	return l.first.elem
}

// PushBack appends e to the list. n is a node of e that is in no list.
func (l *List[T]) PushBack(n *Node[T], e *T) {
	n.prev, n.next, n.elem = l.last, nil, e
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	l.n++
}

// Rotate moves the first element to the end. The list must not be empty.
func (l *List[T]) Rotate() {
	if n := l.first; n != l.last {
		e := n.elem
		l.Remove(n)
		l.PushBack(n, e)
	}
}

// Remove removes the element with node n from the list.
func (l *List[T]) Remove(n *Node[T]) {
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	*n = Node[T]{}
	l.n--
}
