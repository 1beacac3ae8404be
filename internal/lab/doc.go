// Package lab creates temporary networks for the root tests and for the main job of datbench. A lab is two unnamed
// network namespaces that are joined by a veth pair. The pair is created inside the namespaces, so nothing appears in
// the namespace of the caller. The package exists on Linux only.
//
// Ordering: a constructor returns when both ends are up and have addresses. Ownership: a namespace lives as long as its
// holders. These are file descriptors of this process ([New]), or child processes that the kernel kills together with
// this process ([Start], [Join], [Lab.Start]). A process that dies for any reason therefore leaves no namespace, child
// or interface behind. Threading: any goroutine may call any method of [Lab]; [Lab.Close] is the last call.
package lab
