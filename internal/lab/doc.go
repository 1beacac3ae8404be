// Package lab makes throw-away networks: two unnamed network namespaces joined by a veth pair that
// is created inside them, so that nothing ever appears in the namespace of the caller. It serves
// the root tests and the main job of datbench. It exists on Linux only.
//
// Ordering: a constructor returns when both ends are up and addressed. Ownership: namespaces live
// exactly as long as their holders, which are file descriptors of this process ([New]) or child
// processes that the kernel kills with it ([Start], [Join], [Lab.Start]): a process that dies, however it dies,
// leaves no namespace, no child and no interface behind. Threading: every method of [Lab] may be
// called by any goroutine; [Lab.Close] comes last.
package lab
